"""Every kind of change: a second version with exactly that change, asked by a real run, is found by the gate and named so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

import pytest

from reports.accept import read as read_accepted
from reports.changes import Change
from reports.compare import compare
from reports.gate import Settings, gate
from reports.kinds import KINDS
from reports.record import read
from tests.pairs import NAME
from tests.running import ask, surroundings
from tests.test_changes import DEFECTS

pytestmark = pytest.mark.slow
ADD, MIXED, SUB = "placement/add/device-device", "placement/add/host-accelerator", "placement/sub/device-device"
MATMUL, PRODUCT = "placement/matmul/device-device", "dtypes/float32/matmul"
SECOND = ("--adapter", "dummy=tests.second:Second")
#: Kind -> case, device kinds before and after: what the dummy's defects make, and what only its second version does.
CHANGES: dict[str, tuple[str, str, str]] = {
    **DEFECTS,
    "crash": (MATMUL, "accel", "dies"),
    "damage": (MIXED, "accel", "spoils"),
    "error-class": (MIXED, "accel", "renames"),
    "precision": (PRODUCT, "accel", "rounds"),
    "commitment": (ADD, "accel", "commits"),
    "evidence": (ADD, "accel", "measures"),
    "unmodelled": (SUB, "accel", "unmodels"),
    "modelled": (SUB, "unmodels", "accel"),
}
Lines = Mapping[str, list[str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """Ask every kind that is needed, in one run, and one more elsewhere; return each record's lines."""
    folder = tmp_path_factory.mktemp("runs")
    targets = dict.fromkeys(kind for _, *kinds in CHANGES.values() for kind in kinds)
    words = [*(f"--target=dummy:{kind}" for kind in targets), *(f"--case={case}" for case, *_ in CHANGES.values())]
    ask(*SECOND, *words, f"--record={folder / 'all.jsonl'}", expect=1)
    elsewhere = surroundings(SECOND_MACHINE="other", DUMMY_WIDE="0")
    ask(*SECOND, "--target=dummy:accel", f"--case={ADD}", f"--record={folder / 'elsewhere.jsonl'}", env=elsewhere)
    return {path.stem: path.read_text("utf-8").splitlines() for path in folder.glob("*.jsonl")}


def version(path: Path, lines: list[str], kind: str, cases: Iterable[str]) -> Path:
    """Write one kind's part of a run, as a record of the one target that both versions have."""
    name, wanted = f"dummy:{kind}", set(cases)
    header, footer = json.loads(lines[0]), json.loads(lines[-1])
    header["targets"] = {NAME: {**header["targets"][name], "target": NAME, "device": "accel"}}
    cells = [cell for cell in map(json.loads, lines[1:-1]) if cell["target"] == name and cell["case"] in wanted]
    header["scope"]["selected"] = footer["cells"] = len(cells)
    texts = [json.dumps(line) for line in (header, *({**cell, "target": NAME} for cell in cells), footer)]
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def changes(folder: Path, runs: Lines, case: str, old: str, new: str) -> list[Change]:
    sides = [read(version(folder / f"{name}.jsonl", runs["all"], kind, [case])) for name, kind in (("old", old), ("new", new))]
    return compare(sides[0], sides[1]).changes


@pytest.mark.parametrize("kind", CHANGES)
def test_exactly_that_change_is_found_and_named(tmp_path: Path, runs: Lines, kind: str) -> None:
    case, old, new = CHANGES[kind]
    assert [(one.kind, one.case or case) for one in changes(tmp_path, runs, case, old, new)] == [(kind, case)]


@pytest.mark.parametrize("kind", CHANGES)
def test_against_itself_nothing_is_found(tmp_path: Path, runs: Lines, kind: str) -> None:
    case, *both = CHANGES[kind]
    assert [changes(tmp_path, runs, case, side, side) for side in both] == [[], []]


def test_what_keeps_records_from_being_compared_is_named(tmp_path: Path, runs: Lines) -> None:
    both = version(tmp_path / "both.jsonl", runs["all"], "accel", [ADD, MATMUL])
    one = version(tmp_path / "one.jsonl", runs["all"], "accel", [ADD])
    other = version(tmp_path / "other.jsonl", runs["elsewhere"], "accel", [ADD])
    (tmp_path / "cut.jsonl").write_text("".join(both.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")

    def kinds(old: Path, new: Path) -> list[str]:
        return [change.kind for change in gate(read(old), read(new), Settings()).comparison.changes]

    assert kinds(both, one) == ["missing"]
    assert kinds(one, both) == ["incomparable"]
    assert kinds(both, tmp_path / "cut.jsonl") == ["incomplete"]
    assert kinds(one, other) == ["machine", "environment"]


def test_what_was_accepted_and_isn_t_there_or_has_run_out_is_named(tmp_path: Path, runs: Lines) -> None:
    entry = f'[[accept]]\ncase = "{ADD}"\nkind = ["silent"]\nold = "*"\nnew = "*"\nreason = "r"\nexpires = '
    for kind, day, new in (("stale", "2026-12-31", "accel"), ("expired", "2026-01-31", "garbles-computing")):
        (tmp_path / "accepted.toml").write_text(f"{entry}{day}\n")
        sides = [version(tmp_path / f"{name}.jsonl", runs["all"], of, [ADD]) for name, of in (("old", "accel"), ("new", new))]
        entries = read_accepted(tmp_path / "accepted.toml")
        found = gate(read(sides[0]), read(sides[1]), Settings(), entries, today=date(2026, 5, 1))
        assert kind in [finding.change.kind for finding in found.findings]
        assert found.status == 1


def test_no_kind_is_left_out() -> None:
    tested = {*CHANGES, "missing", "incomparable", "incomplete", "machine", "environment", "stale", "expired"}
    assert tested == set(KINDS)
