"""The matrix as the end of a run: one block, questions that are answered alike put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tabulate import SEPARATING_LINE, DataRow, Line, TableFormat, tabulate

from reports import marks
from reports.cells import Cell
from reports.matrix import Column, Matrix
from reports.style import Style, folded, wrapped

#: Columns two spaces apart, without the padding that tabulate gives to heads; a line where one is asked for.
FORMAT = TableFormat(
    lineabove=None, linebelowheader=Line("", "-", "  ", ""), linebetweenrows=None, linebelow=None,
    headerrow=None, datarow=DataRow("", "  ", ""), padding=0, with_header_hide=None,
)  # fmt: skip
#: The same, one space apart.
CLOSE = FORMAT._replace(linebelowheader=Line("", "-", " ", ""), datarow=DataRow("", " ", ""))
#: Word lengths that are tried; the longest with which all targets stand side by side is used.
_LIMITS = (20, 16, 13, 10, 8, 6, 5, 4, 3)
#: Up to this length it is a code, close to its mark.
_CODE = 5
#: Lines that a row's label may take.
_LINES = 3
#: Up to so many rows all are listed.
_FEW = 40


def short(matrix: Matrix, style: Style) -> tuple[str, dict[str, str]]:
    """Return the text and the words that it uses.

    Where every target that answers gives the same answer there is nothing to compare: such questions
    are counted. The others are rows, one for all that have the same answers; a deviating one stands alone,
    and so does every row where there are few. Targets that were asked nothing are left out.
    """
    asked = [column for column in matrix.columns if any(case in column.cells for case in matrix.rows())]
    matrix = matrix.chosen(asked or matrix.columns, matrix.rows())
    every = len(list(matrix.rows())) <= _FEW
    return _text(matrix, style, every=every)


def _text(matrix: Matrix, style: Style, *, every: bool) -> tuple[str, dict[str, str]]:
    groups = {area: list(_alone(cases) if every else _groups(matrix, cases)) for area, cases in matrix.areas.items()}
    rows = [group for found in groups.values() for group in found]
    outcomes = [cell.outcome for _, cell in matrix.cells() if _worded(matrix, cell)]
    layout = next((found for limit in _LIMITS if (found := _Layout(matrix, rows, style, marks.shorten(outcomes, limit), limit)).fits), None)
    if layout is None:  # too many targets for one block
        half = len(matrix.columns) // 2
        halves = [matrix.chosen(columns, matrix.rows()) for columns in (matrix.columns[:half], matrix.columns[half:])]
        texts = [_text(part, style, every=every) for part in halves]
        return "\n\n".join(text for text, _ in texts), {word: brief for _, words in texts for word, brief in words.items()}
    key = [f"{n:>2}  {_described(column)}" for n, column in enumerate(matrix.columns, 1)]
    shown = {column.cell(group[0]).outcome for group in rows for column in matrix.columns}
    return "\n".join([*wrapped(key, style, 4), "", *layout.lines(groups)]), {w: brief for w, brief in layout.words.items() if w in shown}


@dataclass(frozen=True)
class _Layout:
    """One way to lay the rows out: long words two spaces apart, or codes close together."""

    matrix: Matrix
    rows: list[tuple[str, ...]]
    style: Style
    words: dict[str, str]
    limit: int

    @property
    def label(self) -> int:
        """The width of the rows' names."""
        return max(20 if self.limit <= _CODE else 24, self.style.width // 4)

    @property
    def fits(self) -> bool:
        """Whether all targets stand side by side; one alone always does."""
        return self.label + self.wide <= self.style.width or (len(self.matrix.columns) < 2 and self.limit == _LIMITS[-1])

    @cached_property
    def wide(self) -> int:
        """The width of all columns but the rows' names."""
        gap = 1 if self.limit <= _CODE else 2
        columns = self.matrix.columns
        return sum(gap + max((len(self.text(column, group, plain=True)) for group in self.rows), default=2) for column in columns)

    def text(self, column: Column, group: tuple[str, ...], *, plain: bool = False) -> str:
        """Return what stands for a group of cases in a column."""
        cell = column.cell(group[0])
        kind = marks.kind(cell)
        mark = self.style.mark(kind)
        word = self.words.get(cell.outcome, "") if _worded(self.matrix, cell) else ""
        text = f"{mark}{' ' if word and self.limit > _CODE else ''}{word}{marks.flags(cell)}"
        return text if plain else self.style.paint(text, marks.tone(cell))

    def lines(self, groups: dict[str, list[tuple[str, ...]]]) -> list[str]:
        """Return the table with what is said between its rows."""
        body: list[list[str] | str] = [["", *(self.style.paint(str(n), "title") for n in range(1, len(self.matrix.columns) + 1))]]
        label = max(self.label, self.style.width - self.wide)
        after: dict[int, list[str]] = {}  # lines that aren't the table's, by the row they follow
        for area, cases in self.matrix.areas.items():
            body += [SEPARATING_LINE, [self.style.paint(area, "title")]]
            for group in groups[area]:
                name, *rest = folded(_label([case.partition("/")[2] for case in group]), label, _LINES)
                body.append([name, *(self.text(column, group) for column in self.matrix.columns)])
                body += [[line] for line in rest]
            after[len(body)] = list(wrapped(_alike(self.matrix, cases, groups[area]), self.style, 2))
        table = str(tabulate(body, tablefmt=CLOSE if self.limit <= _CODE else FORMAT, disable_numparse=True))
        return [text for n, line in enumerate(table.splitlines(), 1) for text in (line, *after.get(n, ()))]


def _described(column: Column) -> str:
    apart = "".join(f", {fact}" for fact in column.apart if fact != column.target.version)
    return f"{column.target.name} {column.target.version}{apart}: {column.target.evidence}"


def _groups(matrix: Matrix, cases: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    alike: dict[object, list[str]] = {}
    for case in cases:
        cells = [column.cell(case) for column in matrix.columns]
        if marks.differs(cells):
            alone = case if any(marks.deviates(cell) or cell.stale for cell in cells) else None
            alike.setdefault((alone, *map(_look, cells)), []).append(case)
    yield from map(tuple, alike.values())


def _alone(cases: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield from ((case,) for case in cases)


def _look(cell: Cell) -> tuple[str, str]:
    return (cell.outcome if cell.behaves else "", marks.flags(cell))


def _alike(matrix: Matrix, cases: tuple[str, ...], groups: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield what is said of the cases that no row shows."""
    shown = {case for group in groups for case in group}
    counts = Counter(_said([column.cell(case) for column in matrix.columns]) for case in cases if case not in shown)
    if counts:
        listed = ", ".join(f"{count} × {outcome}" for outcome, count in counts.most_common())
        number = sum(counts.values())
        what = "more" if shown else "question" if number == 1 else "questions"
        yield f"{number} {what}, the same everywhere: {listed}"


def _said(cells: list[Cell]) -> str:
    """Return the one answer of a row, or why nobody answers where that is one reason; what was not asked is none."""
    if answers := {cell.outcome for cell in cells if cell.behaves}:
        return min(answers)
    statuses = {cell.status for cell in cells}
    return min(statuses - {"not-run"} or statuses) if len(statuses - {"not-run"}) < 2 else marks.SAYS[marks.NONE]


def _worded(matrix: Matrix, cell: Cell) -> bool:
    """Say whether a word stands behind a cell's mark: one target alone has room to say why there is no answer."""
    return cell.outcome not in marks.PLAIN_WORDS and (cell.behaves or len(matrix.columns) == 1)


def _label(names: list[str]) -> str:
    """Name a group of cases by the patterns of their ids, and the first of what the patterns leave open."""
    if len(names) == 1:
        return names[0]
    by_last = _patterns(names, lambda first, last: (f"*/{last}", first))
    by_first = _patterns(names, lambda first, last: (f"{first}/*", last))
    found = min(by_last, by_first, key=len)
    patterns = [pattern if len(left) > 1 else pattern.replace("*", left[0]) for pattern, left in found[:2]]
    return f"{len(names)} × {', '.join(patterns)}{', …' if len(found) > 2 else ''}: {', '.join(found[0][1])}"


def _patterns(names: list[str], split: Callable[[str, str], tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return pattern -> what it leaves open, the most frequent first."""
    found: dict[str, list[str]] = {}
    for name in names:
        first, _, last = name.rpartition("/")
        pattern, rest = split(first, last) if first else (last, "")
        found.setdefault(pattern, []).append(rest)
    return sorted(found.items(), key=lambda item: -len(item[1]))
