"""Records to test with: real cells of the dummy, asked in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from adapters.base import Adapter
from adapters.interpret import run
from cases import catalogue
from cases.judge import applicable, judge
from reports.matrix import Matrix, build
from reports.record import Writer, read
from tests.dummy import Dummy

#: Small questions: one that works, one that is refused, one that a defect gets wrong, one without a peer, equality.
CASES = (
    "placement/create/device", "scalars/zero-dim/device-device/left", "scalars/zero-dim/host-accelerator/left",
    "scalars/one-element/host-accelerator/left", "moving/to-same/object", "moving/equality/host-accelerator",
    "moving/equality/accelerator-peer",
)  # fmt: skip
ROOT = Path(__file__).parent.parent
KINDS = ("accel", "no-peer", "copies-on-same-to")


def lines(path: Path) -> list[dict[str, Any]]:
    """Return what the lines of a record say."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@cache
def _dummy(kind: str) -> tuple[Dummy, Mapping[str, Any]]:
    roles = Dummy.kinds()[kind]
    target = {
        "target": f"dummy:{kind}", "available": True, "framework": "dummy", "device": kind, "version": "1.0", "label": None, "roles": roles,
        "build": {"flavour": "plain"}, "machine": {"python": "3.11", "system": "Linux"}, "environment": {},
        "operations": [n for n in dir(Dummy) if n not in dir(Adapter) and not n.startswith("_")],
        "dtypes": Dummy.offered_dtypes(), "environments": sorted(Dummy.environments), "adapter": "tests.dummy:Dummy",
    }  # fmt: skip
    return Dummy(kind, roles), target


def target(kind: str, /, **changes: Any) -> dict[str, Any]:
    """Return what a header says of a dummy, with changes."""
    return {**_dummy(kind)[1], **changes}


@cache
def _answer(kind: str, case: str) -> str:
    dummy, said = _dummy(kind)
    one = catalogue()[case]
    known = applicable(one, said)
    reply = {"status": known[0], "why": known[1]} if known else {"observation": run(dummy, json.loads(json.dumps(one.program.wire())))}
    return json.dumps(judge(one, said, reply))


def cell(kind: str, case: str, /, **changes: Any) -> dict[str, Any]:
    """Return a cell of a dummy, with changes."""
    return {**json.loads(_answer(kind, case)), **changes}


def header(kinds: Iterable[str] = KINDS, cases: Iterable[str] = CASES, **changes: Any) -> dict[str, Any]:
    """Return what a run tells its writer."""
    names = list(kinds)
    found = {f"dummy:{kind}": target(kind, **changes) for kind in names}
    return {"scope": {"targets": ["dummy:*"], "cases": ["*"], "selected": len(names) * len(list(cases))}, "targets": found}


def record(path: Path, kinds: Iterable[str] = KINDS, cases: Iterable[str] = CASES, **changes: Any) -> Path:
    """Write a complete record."""
    names, asked = list(kinds), list(cases)
    writer = Writer(path, header(names, asked, **changes))
    for kind in names:
        for case in asked:
            writer.write(cell(kind, case))
    writer.close(complete=True)
    return path


def one_cell(path: Path, cell: dict[str, Any], **changes: Any) -> Path:
    """Write a record of the healthy dummy with one cell."""
    writer = Writer(path, header(["accel"], [cell["case"]], **changes))
    writer.write(cell)
    writer.close(complete=True)
    return path


def matrix(*paths: Path) -> Matrix:
    """Merge records."""
    return build([read(path) for path in paths])
