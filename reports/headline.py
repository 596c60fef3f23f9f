"""The sentences over every view: what deviates, on what evidence, what is gone, or that nothing was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cases.contract import contract_for
from reports import marks
from reports.cells import Cell
from reports.matrix import Column, Matrix

#: Reasons that are told where nothing was answered.
_REASONS = 5


def headline(matrix: Matrix) -> list[str]:
    """Return the sentences; where nothing was answered there is nothing that could deviate or conform."""
    if not any(cell.behaves for _, cell in matrix.cells()):
        return ["Nothing was answered."]
    cells = [cell for column, cell in matrix.cells() if not column.recorded]
    found = [cell for cell in cells if marks.deviates(cell)]
    gone = sum(bool(cell.stale) for cell in cells)
    lines = []
    if found:
        verb = "answer deviates" if len(found) == 1 else "answers deviate"
        lines.append(f"{len(found)} {verb} from what a framework promises{_simulated(found)}")
    if gone:
        text = "1 known deviation is gone: take its entry" if gone == 1 else f"{gone} known deviations are gone: take their entries"
        lines.append(f"{text} out of the contract")
    return lines or ["Nothing deviates from what the frameworks promise."]


def reasons(matrix: Matrix) -> Iterator[str]:
    """Yield the most frequent reasons why there is no answer."""
    cells = [cell for column, cell in matrix.cells() if cell.case in column.cells and not cell.behaves]
    counts = Counter(f"{cell.status}: {cell.why}" if cell.why else cell.status for cell in cells)
    for reason, count in counts.most_common(_REASONS):
        yield f"{count} × {reason}"
    if len(counts) > _REASONS:
        yield f"and {len(counts) - _REASONS} more reasons"


def promised(column: Column, cell: Cell) -> str:
    """Return in a sentence what an answer was held against."""
    entry = contract_for(column.target.framework).promise(cell.case, column.target.device, column.target.version)
    pinned = entry is not None and bool(entry.answers)
    promise = f"{entry.strength} is {' or '.join(entry.answers)}: {entry.says} ({entry.source})" if entry and pinned else ""
    said = "" if cell.answer else cell.why  # what a crash or a hang was
    return "; ".join(filter(None, (said, promise))) or "nobody promises that"


def named(column: Column, cell: Cell) -> str:
    """Return a column's name with the evidence where it is not a device that was measured."""
    return column.key if cell.evidence == "measured" else f"{column.key} ({cell.evidence})"


def _simulated(cells: list[Cell]) -> str:
    count = sum(cell.evidence == "simulated" for cell in cells)
    if not count:
        return ""
    if len(cells) == 1:
        return ", on a simulated device"
    return ", all on simulated devices" if count == len(cells) else f", {count} of them on simulated devices"
