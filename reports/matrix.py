"""The matrix: records merged, cases as rows, targets as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cases import Case, catalogue
from cases.case import AREAS
from reports.cells import Cell, Target
from reports.record import Record

#: Facts by which columns of one name are told apart, in the order in which they are shown.
_DISTINCTIONS = ("version", "label", "build", "machine", "environment")


@dataclass(frozen=True)
class Column:
    """One target, as one or more records know it."""

    #: Unique in its matrix: the target's name, and what distinguishes it where that isn't enough.
    key: str
    target: Target
    #: Facts that tell it from other columns of the same name.
    apart: tuple[str, ...]
    #: Names of the records that its cells are from.
    records: tuple[str, ...]
    #: Case -> cell.
    cells: Mapping[str, Cell]
    #: The day on which another machine answered, where a run's page shows that beside its own answers.
    recorded: str = ""

    def cell(self, case: str) -> Cell:
        """Return the cell of a case; one that says `not-run` where no record has it."""
        found = self.cells.get(case)
        return found or Cell(self.target.name, case, "", "not-run", None, None, {}, self.target.evidence, None, None, "no record has it")


@dataclass(frozen=True)
class Matrix:
    """Cases times targets."""

    columns: tuple[Column, ...]
    #: Area -> its cases, both in the catalogue's order.
    areas: Mapping[str, tuple[str, ...]]
    #: Every case that this catalogue knows, by id.
    cases: Mapping[str, Case]
    #: Targets that started in no record -> why.
    absent: Mapping[str, str]
    #: What a reader has to know before the first cell: records that are incomplete.
    warnings: tuple[str, ...]
    #: What a reader should know besides: which record won, what isn't comparable.
    notes: tuple[str, ...]
    #: (file name, start, suite) of each record, oldest first.
    records: tuple[tuple[str, str, str], ...]

    def rows(self) -> Iterator[str]:
        """Yield every case, in order."""
        for cases in self.areas.values():
            yield from cases

    def cells(self) -> Iterator[tuple[Column, Cell]]:
        """Yield every cell row by row."""
        for case in self.rows():
            for column in self.columns:
                yield column, column.cell(case)

    def chosen(self, columns: Iterable[Column], cases: Iterable[str]) -> Matrix:
        """Return the part with these columns and cases."""
        wanted = set(cases)
        areas = {area: tuple(c for c in found if c in wanted) for area, found in self.areas.items()}
        return replace(self, columns=tuple(columns), areas={area: found for area, found in areas.items() if found})

    def to_json(self) -> dict[str, Any]:
        """Return the matrix as plain data."""
        return {
            "columns": [
                {"key": c.key, "apart": list(c.apart), "records": list(c.records), "evidence": c.target.evidence, **_provenance(c.target)}
                for c in self.columns
            ],
            "absent": [{"target": name, "why": why} for name, why in self.absent.items()],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "rows": [
                {
                    "case": case, "area": area,
                    "question": self.cases[case].question if case in self.cases else None,
                    "cells": {c.key: _plain(c.cell(case)) for c in self.columns},
                }
                for area, cases in self.areas.items() for case in cases
            ],
        }  # fmt: skip


def _plain(cell: Cell) -> dict[str, Any]:
    data = cell.to_json(observation=False)
    return {key: value for key, value in data.items() if key not in ("type", "target", "case")}


def _provenance(target: Target) -> dict[str, Any]:
    data = target.to_json()
    return {key: data[key] for key in ("target", "framework", "device", "label", "version", "build", "machine", "environment", "roles")}


def build(records: Sequence[Record]) -> Matrix:
    """Merge records. Of the same target the newer record wins, cell by cell, and a note says so."""
    known = catalogue()
    ordered = sorted(records, key=lambda record: record.started)
    merged: dict[tuple[str, ...], _Merge] = {}
    for record in records:  # the order of columns is the order in which somebody named the records
        for target in record.targets.values():
            if target.available:
                merged.setdefault(target.provenance, _Merge(target))
    absent: dict[str, str] = {}
    won: dict[str, list[str]] = {}
    for record in ordered:
        by_target: dict[str, dict[str, Cell]] = {}
        for cell in record.cells.values():
            by_target.setdefault(cell.target, {})[cell.case] = cell
        for name, target in record.targets.items():
            if target.available:
                for text in merged[target.provenance].take(record, by_target.get(name, {})):
                    won.setdefault(text, []).append(name)
            else:
                absent[name] = target.why
    notes = [f"{', '.join(names)}: {text}" for text, names in won.items()]
    started = {merge.target.name for merge in merged.values()}
    notes += [f"{name} didn't start in one of the records: {why}" for name, why in absent.items() if name in started]
    columns = _columns(list(merged.values()))
    notes += _changed(columns, known)
    return Matrix(
        columns, _areas({case for column in columns for case in column.cells}, known), known,
        {name: why for name, why in absent.items() if name not in started},
        tuple(record.warning for record in records if record.warning), tuple(notes),
        tuple((record.path.name, record.started, record.suite) for record in ordered),
    )  # fmt: skip


class _Merge:
    """A column while records are merged, oldest first."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cells: dict[str, Cell] = {}
        self.records: list[str] = []

    def take(self, record: Record, cells: Mapping[str, Cell]) -> Iterator[str]:
        """Take a newer record's cells, and say what that changed."""
        again = [case for case in cells if case in self.cells]
        changed = sum(self.cells[case].outcome != cells[case].outcome for case in again)
        if self.records:
            rest = len(self.cells) - len(again)
            yield (
                f"in {' and '.join([*self.records, record.path.name])}, of which the newer one wins in {len(again)} cells, "
                f"{changed} of them with another answer" + (f"; {rest} are only in the older" if rest else "")
            )
        self.cells.update(cells)
        self.records.append(record.path.name)


def _columns(merged: list[_Merge]) -> tuple[Column, ...]:
    columns: list[Column] = []
    for merge in merged:
        same = [other.target for other in merged if other.target.name == merge.target.name]
        apart = tuple(_apart(merge.target, same)) if len(same) > 1 else ()
        key = plain = f"{merge.target.name} ({', '.join(apart)})" if apart else merge.target.name
        for number in range(2, len(merged) + 1):
            if all(column.key != key for column in columns):
                break
            key = f"{plain} #{number}"
        columns.append(Column(key, merge.target, apart, tuple(merge.records), merge.cells))
    return tuple(columns)


def _apart(target: Target, same: list[Target]) -> Iterator[str]:
    """Yield the facts in which a target differs from others of its name."""
    for name in _DISTINCTIONS:
        if name in ("version", "label"):
            if len({getattr(other, name) for other in same}) > 1:
                yield getattr(target, name) or f"no {name}"
            continue
        facts: list[Mapping[str, str]] = [getattr(other, name) for other in same]
        own: Mapping[str, str] = getattr(target, name)
        keys = sorted({key for fact in facts for key in fact})
        for key in keys:
            if len({fact.get(key) for fact in facts}) > 1:
                yield f"{key} {own[key]}" if key in own else f"no {key}"


def _changed(columns: tuple[Column, ...], known: Mapping[str, Case]) -> Iterator[str]:
    """Say which cells answer another question than the catalogue asks today."""
    strange = {case for column in columns for case in column.cells if case not in known}
    if strange:
        yield f"{len(strange)} cases are not in this catalogue, such as {min(strange)}"
    digests = {case: known[case].program.digest for case in {case for column in columns for case in column.cells} if case in known}
    old = {case for column in columns for case, cell in column.cells.items() if cell.program not in ("", digests.get(case, cell.program))}
    if old:
        yield f"{len(old)} cases are asked otherwise today than when they were recorded, such as {min(old)}"


def _areas(cases: set[str], known: Mapping[str, Case]) -> dict[str, tuple[str, ...]]:
    """Return area -> cases in catalogue order; what the catalogue doesn't know stands last in its area."""
    order = [case for case in known if case in cases] + sorted(case for case in cases if case not in known)
    names = list(dict.fromkeys([*AREAS, *(case.partition("/")[0] for case in order)]))
    found = {area: tuple(case for case in order if case.partition("/")[0] == area) for area in names}
    return {area: members for area, members in found.items() if members}
