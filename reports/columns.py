"""Which column of which records a target's name means, for verbs that are told targets."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import reports.record
from reports.compare import bare, plain
from reports.matrix import Column, Matrix, build
from reports.record import RecordError, read
from reports.recorded import kept
from reports.verbs import ProblemError, say


def known(*names: str) -> Matrix:
    """Return the matrix of the last record; where it lacks a target that of a recorded one which has them all, or of all of these."""

    def has(matrix: Matrix) -> bool:
        try:
            return all(column_of(matrix.columns, name) for name in names)
        except ProblemError:
            return False

    try:
        last = [read(reports.record.LATEST)]
    except RecordError:
        if reports.record.LATEST.exists():
            raise
        last = []
    matrix = build(last)
    if last and has(matrix):
        return matrix
    notes: list[str] = []
    recorded = kept(notes)
    for records in (*([one] for one in reversed(recorded)), [*last, *recorded]):
        other = build(records)
        if has(other):
            say(f"taken from {', '.join(record.path.name for record in records)}")
            return other
    for note in notes:
        say(note)
    return matrix if last else build(recorded)


def column_of(columns: Sequence[Column], name: str) -> Column:
    """Return the column that a name means: its key, or its target's name where that is enough. Raises ProblemError."""
    for key in (lambda c: c.key, lambda c: c.target.name, lambda c: plain(c.target), lambda c: bare(c.target)):
        found = [column for column in columns if key(column) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise ProblemError(f"{name} is more than one target: {', '.join(repr(column.key) for column in found)}; name one of them")
    keys = [column.key for column in columns]
    near = get_close_matches(name, keys, n=3, cutoff=0.5)
    raise ProblemError(
        f"no target {name!r} in the record; {'did you mean ' + ' or '.join(near) if near else 'there are ' + ', '.join(keys)}"
    )
