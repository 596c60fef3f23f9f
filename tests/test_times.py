"""`python -m reports times`: the rounds of timed loops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.verbs import main
from tests import sample

LOOP, READ = "time/loop/matmul", "time/read/result"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return sample.record(tmp_path / "r.jsonl", ("accel", "blocks", "host-only"), (LOOP, READ, "placement/create/device"))


def test_each_round_is_a_line_with_its_part(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["times", str(record), "--target", "dummy:accel", "--target", "dummy:blocks", "--case", LOOP]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{LOOP}: ")
    assert lines[1].split() == ["target", "answer", "calls", "edge", "round", "returned", "synchronised", "returned/synchronised"]
    rounds = [line.split() for line in lines[2:]]
    assert [words[0] for words in rounds if words[0].startswith("dummy:")] == ["dummy:accel", "dummy:blocks"]
    parts = {words[0]: float(words[-2]) for words in rounds[1:4]}
    assert list(parts) == ["1", "2", "3"]
    assert max(parts.values()) <= 50
    assert all(float(words[-2]) >= 80 for words in rounds[5:])


def test_a_read_has_a_time_of_its_own(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["times", str(record), "--case", READ, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["case"] for one in found} == {READ}
    assert all({"returned", "read", "synchronised"} <= times.keys() for one in found for times in one["rounds"])


def test_where_nothing_was_timed_a_sentence_says_what_to_ask(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["times", str(record), "--case", "placement/*"]) == 2
    assert "no loop was timed there" in capsys.readouterr().err
