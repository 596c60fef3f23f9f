"""What was answered: records, the matrix made of them, and the ways to show it.

Nothing here imports a framework. `python -m reports --help` says what can be asked.
"""

from __future__ import annotations

#: The suite's version, as records carry it.
SUITE = "0.1.0"
