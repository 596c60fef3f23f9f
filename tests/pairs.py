"""Pairs of records to compare: what the dummy answered healthy, and with a defect, as two versions of one target."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from reports.record import Record, Writer, read
from tests import sample

NAME = "dummy:accel"
Cells = list[dict[str, Any]]


def asked(kind: str, *cases: str) -> Cells:
    """Return a kind's cells under the healthy one's name, as if it were another version of it."""
    return [sample.cell(kind, case, target=NAME) for case in cases]


def edited(cell: Mapping[str, Any], mark: str, **facts: Any) -> dict[str, Any]:
    """Return a cell whose observation has other facts about the value at a mark."""
    from cases import catalogue

    copy: dict[str, Any] = json.loads(json.dumps(cell))
    value = copy["observation"]["steps"][catalogue()[copy["case"]].program.marks[mark]]["value"]
    value.update(facts)
    return copy


def failing(case: str, **error: Any) -> dict[str, Any]:
    """Return a refused cell whose errors have something else to say."""
    cell = sample.cell("accel", case)
    for fact in cell["observation"]["steps"].values():
        if "error" in fact:
            fact["error"] = {**fact["error"], **error}
    return cell


def written(
    path: Path, cells: Iterable[Mapping[str, Any]], *, complete: bool = True, selected: int | None = None, target: str = NAME,
    case_set: str | None = None, **changes: Any,
) -> Path:  # fmt: skip
    """Write a record of one target; `changes` are to what the header says of it."""
    lines = list(cells)
    facts = sample.target("accel", **{"target": target, **changes})
    header: dict[str, Any] = {
        "scope": {"targets": [target], "cases": ["*"], "selected": len(lines) if selected is None else selected},
        "targets": {target: facts},
    }
    writer = Writer(path, header | ({"case_set": case_set} if case_set else {}))
    for cell in lines:
        writer.write({**cell, "target": target})
    missing = 0 if complete else 1
    writer.close(complete=complete, missing=missing, why="" if complete else "interrupted")
    return path


def pair(folder: Path, old: Cells, new: Cells, **changes: Any) -> tuple[Record, Record]:
    """Return two records, of version 1.0 and of version 2.0; `changes` are to the new one."""
    return read(written(folder / "old.jsonl", old)), read(written(folder / "new.jsonl", new, **{"version": "2.0", **changes}))


def lines(path: Path, change: Callable[[int, dict[str, Any]], dict[str, Any] | None]) -> Path:
    """Rewrite a record line by line; None takes a line out."""
    kept = [change(n, json.loads(text)) for n, text in enumerate(path.read_text("utf-8").splitlines())]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept if one is not None), "utf-8")
    return path
