"""A target's answers, derived again from what was observed, so that all are made by the same code.

A record keeps facts, and the words of the suite that wrote it. Where today's catalogue asks the same
program, the words are made anew; where it doesn't, they stay as they were recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cases import catalogue
from cases.controls import held
from cases.judge import BEHAVIOUR, observed, verdicts
from reports.cells import Cell, Target


class Side:
    """One target's cells, each judged when it is first looked at."""

    def __init__(self, target: Target, cells: Mapping[str, Cell], *, verdicts: bool = True) -> None:
        """Take the target and its cells by case; without verdicts, none is held against a contract."""
        self.target = target
        self.cells = cells
        self._verdicts = verdicts
        self._said = target.to_json()
        self._judged: dict[str, dict[str, Any] | None] = {}
        self._placed: tuple[Side, bool] | None = None

    def cell(self, case: str) -> Cell:
        """Return a cell with its answer and facets derived again, where its question is known."""
        found = self.cells[case]
        judged = self._judge(case)
        if judged is None:  # nobody has looked at what such facets are
            return replace(
                found, facets={key: value if key == "warnings" or _plain(value) else str(value) for key, value in found.facets.items()}
            )
        if self._verdicts and judged["status"] in BEHAVIOUR:
            judged = judged | verdicts(catalogue()[case], self._said, judged["answer"] or judged["status"])
        judged = held(catalogue()[case], judged, self.control(case))
        answers = tuple(dict.fromkeys(judged["answer"] or judged["status"] if a == found.outcome else a for a in found.answers))
        return replace(
            found, status=judged["status"], answer=judged["answer"], kind=judged["class"], facets=judged["facets"], why=judged["why"],
            verdict=judged["verdict"], norm=judged["norm"], stale=judged.get("stale", ""),
            control=judged.get("control", ""), answers=answers if len(answers) > 1 else (),
        )  # fmt: skip

    def placed_as(self, other: Side) -> bool:
        """Say whether another side has the same devices in the same roles."""
        if self._placed is None or self._placed[0] is not other:
            self._placed = other, self.target.roles == other.target.roles
        return self._placed[1]

    def control(self, case: str) -> str | None:
        """Return what the case's control came to: by its own cell, else as the record says beside the answer."""
        control = catalogue()[case].control
        judged = self._judge(control) if control is not None and control in self.cells else None
        return (judged["answer"] or judged["status"]) if judged else self.cells[case].control or None

    def _judge(self, case: str) -> dict[str, Any] | None:
        """Return a cell before its control is held against it; None where today's catalogue asks something else."""
        if case not in self._judged:
            self._judged[case] = self._judged_anew(case)
        return self._judged[case]

    def _judged_anew(self, case: str) -> dict[str, Any] | None:
        found, one = self.cells[case], catalogue().get(case)
        if one is None or one.program.digest != found.program:
            return None
        if found.observation is None:
            return observed(one, self._said, {"status": found.status, "why": found.why})
        try:
            return observed(one, self._said, {"observation": found.observation})
        except Exception as error:
            why = f"the observation isn't made as the protocol says: {type(error).__name__}: {error}"
            return observed(one, self._said, {"status": "inconclusive", "why": why})


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def unchanged(old: Side, new: Side, case: str) -> bool:
    """Say whether two sides observed the very same, so that no judge can tell them apart: most cells of most upgrades."""
    one, other = old.cells[case], new.cells[case]
    if one.answers or other.answers or one.status != other.status or not old.placed_as(new):
        return False
    known = catalogue().get(case)
    if known is None:
        return (one.answer, one.facets) == (other.answer, other.facets)
    return _alike(one, other) and _controls_alike(old, new, case, known.control)


def _alike(one: Cell, other: Cell) -> bool:
    """Say whether two cells hold the same observation; those of lines that are alike share it."""
    return one.observation is other.observation or one.observation == other.observation


def _controls_alike(old: Side, new: Side, case: str, control: str | None) -> bool:
    """Say whether the controls came to the same; what was observed tells it sooner than judging it does."""
    if control is None:
        return True
    if control in old.cells and control in new.cells:
        one, other = old.cells[control], new.cells[control]
        if one.status == other.status and one.program == other.program and _alike(one, other):
            return True
    return old.control(case) == new.control(case)
