"""What a page shows as native code is kept from run to run, and never shown where it would be another."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import reports.scripts
from cases import Case, catalogue
from reports.cells import Target
from reports.record import read
from reports.recorded import FOLDER
from reports.scripts import Script, Scripts

CASE = catalogue()["placement/add/device-device"]
TIMED = catalogue()["time/first/round"]


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return next(iter(read(max((FOLDER / "history" / "numpy").glob("*.xz"))).targets.values()))


def kept(target: Target) -> Script:
    scripts = Scripts(target)
    script = scripts.of(CASE, None)
    scripts.keep()
    return script


def test_what_was_written_is_read_the_next_time(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept(target)
    assert "import numpy" in "\n".join(first.lines)
    assert set(first.at) & {"s1", "s2", "s3"}
    assert all(0 <= line < len(first.lines) for line in first.at.values())
    monkeypatch.setattr(Scripts, "_write", lambda *_: Script(("written anew",), {}))
    assert Scripts(target).of(CASE, {"steps": {}}) == first
    assert Scripts(target).of(catalogue()["placement/sub/device-device"], None).lines == ("written anew",), "another question"
    assert Scripts(dataclasses.replace(target, version="9.9")).of(CASE, None).lines == ("written anew",), "another release"


@pytest.mark.parametrize(
    ("case", "observation", "other"),
    [
        (CASE, {"spelled": {"absent/object": "'elsewhere'"}}, {"spelled": {"absent/object": "'nowhere'"}}),
        (TIMED, {"steps": {"s3": {"value": {"size": 256}}}}, {"steps": {"s3": {"value": {"size": 512}}}}),
    ],
    ids=["spelled", "sized"],
)
def test_what_hangs_on_an_observation_is_kept_for_such_observations(
    case: Case, observation: dict[str, Any], other: dict[str, Any], target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = Scripts(target)
    first = scripts.of(case, observation)
    scripts.keep()
    monkeypatch.setattr(Scripts, "_write", lambda *_: Script(("written anew",), {}))
    assert Scripts(target).of(case, observation) == first
    assert Scripts(target).of(case, other).lines == ("written anew",)
    assert Scripts(target).of(case, None).lines == ("written anew",)


def test_other_sources_write_anew_and_leave_nothing_behind(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(target)
    monkeypatch.setattr(reports.scripts, "_sources", lambda: "0123456789ab")
    monkeypatch.setattr(Scripts, "_write", lambda *_: Script(("written anew",), {}))
    assert kept(target).lines == ("written anew",)
    assert [path.name[:13] for path in (tmp_path / "device-semantics" / "scripts").iterdir()] == ["0123456789ab-"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"texts": [], "scripts": {"x": 1}}', '{"texts": [], "scripts": {"x": [[3], {}]}}']
)
def test_a_damaged_file_is_written_anew(target: Target, tmp_path: Path, text: str) -> None:
    first = kept(target)
    (path,) = (tmp_path / "device-semantics" / "scripts").iterdir()
    path.write_text(text)
    assert kept(target) == first
    assert json.loads(path.read_text())["texts"] == list(dict.fromkeys(first.lines))


def test_a_cache_that_cannot_be_written_costs_nothing_else(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert kept(target).lines


def test_an_adapter_from_elsewhere_is_not_kept(target: Target, tmp_path: Path) -> None:
    # Its source may change while the suite's doesn't.
    elsewhere = dataclasses.replace(target, framework="dummy", more={**target.more, "adapter": "tests.dummy:Dummy"})
    assert kept(elsewhere).lines
    assert not (tmp_path / "device-semantics").exists()
