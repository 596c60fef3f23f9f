"""What was answered: records, the matrix made of them, and the ways to show it.

Nothing here imports a framework. `python -m reports --help` says what can be asked.
"""

from __future__ import annotations

import os
from pathlib import Path

#: The suite's version, as records carry it.
SUITE = "0.1.0"


def caches() -> Path:
    """Return the folder of all that is kept from run to run and can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "device-semantics"
