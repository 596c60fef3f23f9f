"""Texts of frameworks and files as a terminal may show them: what would steer it is written out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.cells import Cell
    from reports.matrix import Column, Matrix

#: Control characters, marks that turn the direction of writing, separators of lines, and halves of characters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text with what would steer a terminal written out, an escape as `\x1b`."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def line(text: str) -> str:
    """Return a text on one line, and visible."""
    return visible(" ".join(text.split()))


def shown(matrix: Matrix) -> Matrix:
    """Return a matrix with every text in it visible; words, ids and times are of a form that needs nothing."""
    return replace(
        matrix,
        columns=tuple(map(_column, matrix.columns)),
        absent={line(name): line(why) for name, why in matrix.absent.items()},
        warnings=tuple(map(line, matrix.warnings)),
        notes=tuple(map(line, matrix.notes)),
        records=tuple((line(name), started, suite) for name, started, suite in matrix.records),
    )


def _column(column: Column) -> Column:
    target = replace(column.target, name=line(column.target.name), version=line(column.target.version))
    cells = {case: _cell(cell) for case, cell in column.cells.items()}
    return replace(column, key=line(column.key), target=target, apart=tuple(map(line, column.apart)), cells=cells)


def _cell(cell: Cell) -> Cell:
    why, stale = line(cell.why), line(cell.stale)
    return cell if (why, stale) == (cell.why, cell.stale) else replace(cell, why=why, stale=stale)
