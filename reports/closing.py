"""The end of a pytest run in the terminal: the matrix, deviations first, and the page's path."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def closing(path: Path, reporter: Any) -> None:
    """Write the matrix of the record that was just closed, and say where page and record are."""
    reporter.section("device semantics")
    reporter.write_line(f"record: {path}")
