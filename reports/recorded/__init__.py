"""Records of machines that not everybody has, kept as they were written there (packed with xz), and how a run's page shows them.

A recorded answer is a measurement with its date, not of this run: it gets a column of its own, in which the words are derived
again by today's code wherever the question is still the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from adapters.targets import Selector, SelectorError, parse
from cases import catalogue
from reports.cells import Cell, Target
from reports.derive import Side
from reports.matrix import Column, Matrix
from reports.record import Record, RecordError, read

FOLDER = Path(__file__).parent


class Beside:
    """The recorded targets that a run may show beside its own: those that it asked for, of several records of a target the newest."""

    def __init__(self, asked: Sequence[str], cases: Set[str]) -> None:
        """Take what a run asks for: targets as they were written, and cases. Records' headers alone are read yet."""
        self._cases = cases
        #: What can't be read.
        self._notes: list[str] = []
        self._cells: dict[str, Mapping[str, Cell] | None] = {}
        selectors = list(_selectors(asked))
        # Which record a target is taken from, its header tells: most of the cells need not be read.
        self._chosen: dict[str, Record] = {}
        for record in kept(self._notes, of=frozenset()):
            for target in record.targets.values():
                if target.available and any(one.chose(target.name, target.framework, target.device) for one in selectors):
                    self._chosen[target.name] = record

    def shown(self, here: Mapping[str, str]) -> list[str]:
        """Return which aren't on this machine, whose targets (name -> evidence) are `here`.

        One that is only simulated here is shown too where it was measured elsewhere.
        """
        targets = {name: record.targets[name] for name, record in self._chosen.items()}
        return [n for n, target in targets.items() if n not in here or (target.evidence, here[n]) == ("measured", "simulated")]

    def absent(self, globs: Iterable[str]) -> list[str]:
        """Return which are among the targets that are known not to be here before any worker has said so."""
        return [name for name in self._chosen if any(fnmatchcase(name, glob) for glob in globs)]

    def read(self, names: Iterable[str]) -> None:
        """Read and judge some of them, for `add`: that takes as long as making the page, and a run's begin leaves time for it."""
        wanted = [name for name in names if name not in self._cells]
        for path in dict.fromkeys(self._chosen[name].path for name in wanted):
            these = {name for name in wanted if self._chosen[name].path == path}
            try:
                record = read(path, of=these)
            except RecordError as error:
                self._notes.append(str(error))
                self._cells.update(dict.fromkeys(these))
                continue
            self._cells.update({name: _judged(record, record.targets[name], self._cases) for name in these})

    def add(self, matrix: Matrix) -> Matrix:
        """Return a run's matrix with a column for each of them. A record that can't be read is named in a note."""
        here = {column.target.name: column.target.evidence for column in matrix.columns}
        names = self.shown(here)
        self.read(names)
        shown = {name: self._chosen[name] for name in names if self._cells[name] is not None}
        rows = set(matrix.rows())
        columns = [self._column(f"{name} (recorded)" if name in here else name, name, rows) for name in shown]
        notes = list(self._notes)
        for date in dict.fromkeys(column.recorded for column in columns):
            those = [column.target.name for column in columns if column.recorded == date]
            when = f"recorded on another machine on {date}, not asked in this run"
            notes.append(f"{', '.join(those)}: {when}; --no-recorded leaves such answers out")
        used = sorted({(record.started, record.path.name, record.suite) for record in shown.values()})
        return replace(
            matrix, columns=(*matrix.columns, *columns), notes=(*matrix.notes, *notes),
            absent={name: why for name, why in matrix.absent.items() if name not in shown},
            records=(*matrix.records, *((name, started, suite) for started, name, suite in used)),
        )  # fmt: skip

    def _column(self, key: str, name: str, rows: Set[str]) -> Column:
        record, cells = self._chosen[name], self._cells[name] or {}
        shown = {case: cell for case, cell in cells.items() if case in rows}
        return Column(key, record.targets[name], (), (record.path.name,), shown, recorded=record.started[:10])


def kept(notes: list[str], *, of: Set[str] | None = None) -> list[Record]:
    """Return what is recorded, with its cells `of` some targets or of all, oldest first; what can't be read is added to the notes."""
    found: list[Record] = []
    for path in sorted(FOLDER.glob("*.jsonl.xz")):
        try:
            found.append(read(path, of=of))
        except RecordError as error:
            notes.append(str(error))
    return sorted(found, key=lambda record: record.started)


def _selectors(asked: Sequence[str]) -> Iterator[Selector]:
    """Yield what a run asked for, without interpreters: those are not the ones that were recorded."""
    for text in asked:
        try:
            selector = parse(text)
        except SelectorError:
            continue
        if selector.command is None:
            yield selector


def _judged(record: Record, target: Target, cases: Set[str]) -> Mapping[str, Cell]:
    """Return a target's cells, with the words of today where the question is known."""
    own = {cell.case: cell for cell in record.cells.values() if cell.target == target.name}
    side, known = Side(target, own), catalogue()
    return {case: side.cell(case) if case in known else cell for case, cell in own.items() if case in cases}
