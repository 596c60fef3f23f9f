"""Compare a run's deviations with the ones that were looked at: `python .ci/deviations.py RECORD`.

The default run fails where a framework breaks a promise of its own that nobody has reported yet. On the pinned
versions that list is known; a change must neither add to it nor shorten it without a word.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from reports.record import read

KNOWN = Path(__file__).parent / "deviations.txt"


def main(path: str) -> int:
    """Print what differs and return 1 if anything does."""
    record = read(Path(path))
    cells = record.cells.values()
    found = {f"{cell.target} {cell.case} {cell.answer or cell.status}" for cell in cells if cell.verdict == "deviates" or cell.stale}
    known = {line for line in KNOWN.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}
    for line in sorted(found - known):
        print(f"new: {line}")
    for line in sorted(known - found):
        print(f"gone: {line}")
    if not record.complete:
        print(f"the record is incomplete: {record.why}")
    return 0 if found == known and record.complete else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
