"""`python -m reports norm`: answers that differ from the array API standard, by the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.verbs import main
from tests import sample

MIXED, SAME = "placement/add/host-accelerator", "placement/add/device-device"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return sample.record(tmp_path / "r.jsonl", ("accel", "moves-to-first"), (SAME, MIXED))


def test_answers_stand_under_the_rule_that_they_differ_from(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["norm", "dummy:accel", "dummy:moves-to-first", "--record", str(record)]) == 0
    healthy, broken = capsys.readouterr().out.split("\n\ndummy:", 1)
    assert healthy.startswith("dummy:accel, dummy 1.0, simulated: 0 of 2 answers differ")
    assert "1 of 2 answers differ" in " ".join(broken.split())
    assert "recommended is raises: " in broken
    assert "https://data-apis.org/" in broken
    assert f"  moves-to-host: {MIXED}" in broken
    assert "print('result:'" in broken


def test_brief_is_without_code(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["norm", "dummy:moves-to-first", "--brief", "--record", str(record)]) == 0
    assert "print(" not in capsys.readouterr().out


def test_a_target_that_is_not_there_is_a_sentence(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["norm", "dummy:acel", "--record", str(record)]) == 2
    assert "did you mean dummy:accel" in capsys.readouterr().err
