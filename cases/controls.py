"""A case's control: what must work for a refusal to mean anything."""

from __future__ import annotations

from typing import Any

from cases.answers import NEUTRAL, REFUSES, WORKS
from cases.case import Case, catalogue


def held(case: Case, cell: dict[str, Any], control: str | None) -> dict[str, Any]:
    """Return the cell as its control lets it stand; `control` is that case's outcome on the same target.

    Who can't add on one device says nothing about devices by refusing to add across two. So an
    answer that refuses stands only where the control works. One that works stands by itself, a
    wrong value is wrong whatever else is, and a worker that died did so.
    """
    if case.control is None or control is None or cell["class"] != REFUSES:
        return cell
    cell = {**cell, "control": control}
    words = catalogue()[case.control].answers.words
    if control in words and words[control][0] in (WORKS, NEUTRAL):
        return cell
    why = f"its control, {case.control}, doesn't work either ({control}), so that the answer {cell['answer']} says nothing of devices"
    cell.pop("stale", None)
    return cell | {"status": "inconclusive", "answer": None, "class": None, "verdict": None, "norm": None, "why": why}

