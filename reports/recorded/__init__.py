"""Records of machines that not everybody has, kept as they were written there (packed with xz), and how a run's page shows them.

A recorded answer is a measurement with its date, not of this run: it gets a column of its own, in which the words are derived
again by today's code wherever the question is still the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.targets import Selector, SelectorError, parse
from reports.cells import Target
from reports.derive import Side
from reports.matrix import Column, Matrix
from reports.record import Record, RecordError, read

FOLDER = Path(__file__).parent


def beside(matrix: Matrix, run: Record) -> Matrix:
    """Return a run's matrix with a column for each recorded target that the run asked for and that isn't on this machine.

    One that is only simulated here is shown too where it was measured elsewhere. Of several records of a target the newest is taken.
    One that can't be read is named in a note.
    """
    notes: list[str] = []
    selectors = list(_selectors(run.scope))
    here = {column.target.name: column.target.evidence for column in matrix.columns}
    # Which record a target is taken from, its header tells: most of the cells need not be read.
    chosen: dict[str, Record] = {}
    for record in kept(notes, of=frozenset()):
        for target in record.targets.values():
            better = target.name not in here or (target.evidence, here[target.name]) == ("measured", "simulated")
            if target.available and better and _wanted(target, selectors):
                chosen[target.name] = record
    newest: dict[str, tuple[Record, Target]] = {}
    for path in dict.fromkeys(record.path for record in chosen.values()):
        these = {name for name, other in chosen.items() if other.path == path}
        try:
            record = read(path, of=these)
        except RecordError as error:
            notes.append(str(error))
            continue
        newest.update({name: (record, record.targets[name]) for name in these})
    newest = {name: newest[name] for name in chosen if name in newest}
    columns = [_column(f"{name} (recorded)" if name in here else name, *found, matrix) for name, found in newest.items()]
    for date in dict.fromkeys(column.recorded for column in columns):
        names = [column.target.name for column in columns if column.recorded == date]
        when = f"recorded on another machine on {date}, not asked in this run"
        notes.append(f"{', '.join(names)}: {when}; --no-recorded leaves such answers out")
    used = sorted({(record.started, record.path.name, record.suite) for record, _ in newest.values()})
    return replace(
        matrix, columns=(*matrix.columns, *columns), notes=(*matrix.notes, *notes),
        absent={name: why for name, why in matrix.absent.items() if name not in newest},
        records=(*matrix.records, *((name, started, suite) for started, name, suite in used)),
    )  # fmt: skip


def kept(notes: list[str], *, of: Set[str] | None = None) -> list[Record]:
    """Return what is recorded, with its cells `of` some targets or of all, oldest first; what can't be read is added to the notes."""
    found: list[Record] = []
    for path in sorted(FOLDER.glob("*.jsonl.xz")):
        try:
            found.append(read(path, of=of))
        except RecordError as error:
            notes.append(str(error))
    return sorted(found, key=lambda record: record.started)


def _selectors(scope: Mapping[str, Any]) -> Iterator[Selector]:
    """Yield what a run asked for, without interpreters: those are not the ones that were recorded."""
    for text in scope["targets"]:
        try:
            selector = parse(text)
        except SelectorError:
            continue
        if selector.command is None:
            yield selector


def _wanted(target: Target, selectors: Sequence[Selector]) -> bool:
    return any(selector.chose(target.name, target.framework, target.device) for selector in selectors)


def _column(key: str, record: Record, target: Target, matrix: Matrix) -> Column:
    rows = set(matrix.rows())
    own = {cell.case: cell for cell in record.cells.values() if cell.target == target.name}
    side = Side(target, own)
    cells = {case: side.cell(case) if case in matrix.cases else cell for case, cell in own.items() if case in rows}
    return Column(key, target, (), (record.path.name,), cells, recorded=record.started[:10])
