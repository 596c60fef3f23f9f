"""The matrix as Markdown: a table for each area, answers in words, evidence where it isn't the column's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tabulate import tabulate

from cases.case import AREAS
from reports import marks
from reports.cells import Cell
from reports.headline import headline, named, promised, reasons
from reports.matrix import Column, Matrix
from reports.visible import shown

#: Characters that Markdown or HTML would read as markup in running text.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~])")


def render(matrix: Matrix, *, deviations_first: bool = False) -> str:
    """Return the whole document."""
    return "\n".join(_document(shown(matrix), deviations_first)) + "\n"


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _document(matrix: Matrix, deviations_first: bool) -> Iterator[str]:
    yield "# Device semantics\n"
    for warning in matrix.warnings:
        yield f"> **{plain(warning)}**\n"
    if not matrix.columns:
        yield "No target started, so there is no matrix.\n"
    if deviations_first:
        yield from _deviations(matrix)
    for area, cases in matrix.areas.items():
        yield f"## {area}\n"
        if area in AREAS:
            yield f"{plain(AREAS[area])}\n"
        rows = [[f"`{case.partition('/')[2]}`", *(_cell(column, column.cell(case)) for column in matrix.columns)] for case in cases]
        yield str(tabulate(rows, ["question", *map(_head, matrix.columns)], tablefmt="pipe", disable_numparse=True)) + "\n"
    yield from _legend(matrix)


def _head(column: Column) -> str:
    facts = [column.target.version, *(fact for fact in column.apart if fact != column.target.version)]
    return f"{plain(column.target.name)}<br>{plain(', '.join(facts))}<br>*{column.target.evidence}*"


def _cell(column: Column, cell: Cell) -> str:
    evidence = f" *({cell.evidence})*" if marks.evidence_mark(column, cell) else ""
    word = f"**{cell.outcome}**" if marks.kind(cell) == "wrong" or marks.deviates(cell) else cell.outcome
    flags = plain(marks.flags(cell))
    return f"{marks.MARKS[marks.kind(cell)].replace('~', '&#126;')} {word}{flags}{evidence}"


def _deviations(matrix: Matrix) -> Iterator[str]:
    yield "## Deviations\n"
    yield from (f"{plain(line)}\n" for line in headline(matrix))
    if not any(cell.behaves for _, cell in matrix.cells()):
        yield from (f"- {plain(reason)}" for reason in reasons(matrix))
    for column, cell in matrix.cells():
        if marks.deviates(cell):
            yield f"- {plain(named(column, cell))}, `{cell.case}`: **{cell.outcome}**; {plain(promised(column, cell))}"
        if cell.stale:
            yield f"- {plain(named(column, cell))}, `{cell.case}`: {cell.outcome}; {plain(cell.stale)}"
    yield ""


def _legend(matrix: Matrix) -> Iterator[str]:
    yield "## Legend\n"
    for kind in marks.KINDS:
        yield f"- {marks.MARKS[kind].replace('~', '&#126;')} {marks.SAYS[kind]}"
        yield from (f"  - {word}: {plain(says)}" for word, (of, says) in marks.meanings(matrix).items() if of == kind and says)
    yield from (f"- {plain(flag)} {says}" for flag, says in marks.FLAGS.items())
    yield ""
    if matrix.absent:
        yield "Not here:\n"
        yield from (f"- {plain(name)}: {plain(why)}" for name, why in matrix.absent.items())
        yield ""
    yield from (f"{plain(note)}.\n" for note in matrix.notes)
    yield "Records: " + ", ".join(f"{plain(name)} ({start})" for name, start, _ in matrix.records)
