"""What is asked, and what it means: cases, their program, answers and contracts.

`catalogue()` is the public face: every case by its id. Nothing here imports a framework or an adapter.
"""

from __future__ import annotations

from cases.case import Case, catalogue

__all__ = ["Case", "catalogue"]
