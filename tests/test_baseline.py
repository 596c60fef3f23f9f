"""`pytest --baseline FILE`: a run held against a record, as the gate holds two."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from reports.asking import Asker
from reports.baseline import Baseline
from reports.cells import RecordError
from reports.record import read
from reports.style import Style
from reports.verbs import ProblemError
from tests import sample
from tests.pairs import Cells, asked, written
from tests.running import DUMMY, FEW, ask

ADD = "placement/add/device-device"
MATMUL = [f"placement/matmul/{name}" for name in ("device-device", "host-accelerator", "accelerator-host", "accelerator-peer")]


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """Return a baseline of two targets and five cases."""
    path = written(tmp_path / "kept" / "baseline.jsonl", asked("accel", *MATMUL, ADD))
    return header(path, targets={"dummy:accel": sample.target("accel"), "dummy:no-peer": sample.target("no-peer")})


def header(path: Path, **changes: Any) -> Path:
    """Change a record's header; `scope` is added to."""
    first, *lines = path.read_text().splitlines()
    facts = json.loads(first)
    facts["scope"] |= changes.pop("scope", {})
    path.write_text("\n".join([json.dumps(facts | changes), *lines]) + "\n")
    return path


def held(folder: Path, baseline: Path, cells: Cells, *targets: str, config: Path | None = None, **scope: Any) -> tuple[int, str]:
    """Return the status of a run of the healthy dummy, and what is said of it."""
    option = Namespace(baseline=str(baseline), record=None, gate_config=config, target=list(targets), adapter=[], deadline=30)
    held_against = Baseline(option)
    run = header(written(folder / "run.jsonl", cells), scope={"targets": list(targets) or ["dummy:*"], **scope})
    status = held_against.held(run)
    return status, "\n".join(held_against.lines(Style(width=300)))


# --- what is compared ------------------------------------------------------------------------------


def test_what_was_not_asked_is_not_missing(tmp_path: Path, baseline: Path) -> None:
    status, said = held(tmp_path, baseline, asked("accel", *MATMUL), "new=dummy:acc*@/some/python", cases=["placement/matmul/*"])
    assert (status, said.splitlines()[-1]) == (0, "no change: 4 cells compared, 4 of them answered")


def test_a_choice_of_pytest_s_own_is_a_choice(tmp_path: Path, baseline: Path) -> None:
    status, said = held(tmp_path, baseline, asked("accel", MATMUL[0]), selected=1)
    assert (status, said.splitlines()[-1]) == (0, "no change: 1 cell compared, 1 of them answered")


def test_a_target_or_a_case_that_was_asked_for_and_is_gone_is_missing(tmp_path: Path, baseline: Path) -> None:
    everything = 10**6  # as if no choice was made
    status, said = held(tmp_path, baseline, asked("accel", *MATMUL, ADD), selected=everything)
    assert (status, "dummy:no-peer: NEW has no such target" in said) == (1, True)
    status, said = held(tmp_path, baseline, asked("accel", *MATMUL), "dummy:accel", selected=everything)
    assert (status, f"1 case, such as {ADD}: NEW wasn't asked" in said) == (1, True)


def test_levels_and_accepted_changes_are_the_gate_s(tmp_path: Path, baseline: Path) -> None:
    cells = asked("moves-to-first", *MATMUL)
    status, said = held(tmp_path, baseline, cells, "dummy:accel", cases=["placement/matmul/*"])
    assert (status, "to look at: loosened" in said) == (0, True)
    config = tmp_path / "gate.toml"
    config.write_text('deny = ["loosened"]\n')
    status, said = held(tmp_path, baseline, cells, "dummy:accel", config=config, cases=["placement/matmul/*"])
    assert (status, "denied: loosened" in said) == (1, True)
    (tmp_path / "accepted.toml").write_text(
        '[[accept]]\ncase = "*"\nkind = ["loosened"]\nold = "*"\nnew = "*"\nreason = "wanted"\nuntil = "99"\n'
    )
    config.write_text('deny = ["loosened"]\naccept = "accepted.toml"\n')
    assert held(tmp_path, baseline, cells, "dummy:accel", config=config, cases=["placement/matmul/*"])[0] == 0


def test_what_isn_t_settled_is_asked_again_of_the_very_targets(tmp_path: Path, baseline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wavering: Cells = [{**cell, "answers": ["raises", "moves-to-accelerator"]} for cell in asked("accel", MATMUL[1])]
    told: list[object] = []

    def run(self: Asker, _what: str, words: list[str], record: Path) -> None:
        told.extend([*self.selectors, *words])
        written(record, asked("accel", MATMUL[1]))

    monkeypatch.setattr(Asker, "_run", run)
    status, said = held(tmp_path, baseline, [*asked("accel", MATMUL[0]), *wavering], "dummy:ac*", "dummy:none", selected=2)
    assert told == ["dummy:accel", f"cases/__init__.py::dummy:accel::{MATMUL[1]}", "--repeat", "3"]
    assert (status, "to look at: unsettled" in said) == (0, True)
    assert len(read(tmp_path / "run.jsonl").cells) == 2


def test_a_baseline_that_can_t_be_used_is_refused_before_anything_is_asked(tmp_path: Path, baseline: Path) -> None:
    def option(path: Path, record: Path | None = None, config: Path | None = None) -> Namespace:
        return Namespace(baseline=str(path), record=record, gate_config=config)

    for path, words in ((tmp_path / "none.jsonl", "no record at"), (tmp_path, "can't be read"), (Path(__file__), "is no record of this")):
        with pytest.raises(RecordError, match=words):
            Baseline(option(path))
    with pytest.raises(ProblemError, match="are the same file"):
        Baseline(option(baseline, baseline))
    (tmp_path / "gate.toml").write_text('deny = ["nonsense"]\n')
    with pytest.raises(ProblemError, match="there is no kind 'nonsense'"):
        Baseline(option(baseline, None, tmp_path / "gate.toml"))


def test_nothing_in_common_could_not_be_compared(tmp_path: Path, baseline: Path) -> None:
    with pytest.raises(ProblemError, match="nothing could be compared"):
        held(tmp_path, baseline, asked("accel", "moving/equality/host-accelerator"), "dummy:accel", cases=["moving/*"])


# --- real runs -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_compared_at_its_end_and_contracts_don_t_fail_it(tmp_path: Path) -> None:
    base, record = tmp_path / "base.jsonl", f"--record={tmp_path / 'run.jsonl'}"
    dies = (*DUMMY, "--target", "dummy:dies", "--case", MATMUL[0])
    ask(*dies, f"--record={base}", expect=1)
    said = ask(*dies, record, f"--baseline={base}", "-n", "2")
    assert "1 xfailed" in said
    assert "no change: 1 cell compared, 1 of them answered" in said
    # As if it had been healthy before.
    facts = {"dummy:dies": {**json.loads(base.read_text().splitlines()[0])["targets"]["dummy:dies"]}}
    header(written(base, [{**cell, "target": "dummy:dies"} for cell in asked("accel", MATMUL[0])], target="dummy:dies"), targets=facts)
    said = ask(*dies, record, f"--baseline={base}", expect=1)
    assert "denied: crash, the process dies or never answers" in said
    assert "1 xfailed" in said


@pytest.mark.slow
def test_a_baseline_that_isn_t_there_is_a_sentence(tmp_path: Path) -> None:
    names = f"--record={tmp_path / 'run.jsonl'}", f"--baseline={tmp_path / 'no.jsonl'}"
    said = ask(*DUMMY, "--target", "dummy:accel", *FEW, *names, expect=2)
    assert f"ERROR: --baseline={tmp_path / 'no.jsonl'}: no record at" in said
    assert not (tmp_path / "run.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--baseline="], "--baseline= names no file"),
        (["--baseline=base.jsonl", "--gate-config="], "--gate-config= names no file"),
        (["--gate-config=gate.toml"], "--gate-config=gate.toml says what may differ from a baseline"),
    ],
)
def test_options_that_would_compare_nothing_are_refused(tmp_path: Path, options: list[str], says: str) -> None:
    said = ask(*DUMMY, "--target", "dummy:accel", *FEW, f"--record={tmp_path / 'run.jsonl'}", *options, expect=2)
    assert f"ERROR: {says}" in said
    assert not (tmp_path / "run.jsonl").exists()
