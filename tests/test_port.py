"""`python -m reports port`: two columns side by side, what bites first first."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reports.record
import reports.recorded
from cases import catalogue
from reports.verbs import main
from tests import sample

ADD, SUB = "placement/add/device-device", "placement/sub/device-device"
MIXED = "placement/add/host-accelerator"
PEER = "placement/add/accelerator-peer"
KINDS = ("accel", "garbles-computing", "moves-to-first", "no-peer", "widens-computing", "host-only")
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.record(tmp_path_factory.mktemp("port") / "r.jsonl", KINDS, (ADD, SUB, MIXED, PEER, "moving/absent/create-object"))


@pytest.fixture
def ask(record: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what runs the verb in this process: status, output, and what is said on standard error."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> tuple[int, str, str]:
        return main(["port", *map(str, arguments), "--record", str(record)]), *capsys.readouterr()

    return run


def test_differences_are_grouped_by_what_bites_with_the_code_of_both(ask: Ask) -> None:
    status, out, err = ask("dummy:accel", "dummy:garbles-computing")
    assert (status, err) == (0, "")
    assert out.startswith("dummy:accel, dummy 1.0, simulated → dummy:garbles-computing, dummy 1.0, simulated: 5 of 5 ")
    assert "\nsilent, silently wrong there (" in out
    assert f"  {ADD}: works → garbage" in out
    assert catalogue()[ADD].question in " ".join(out.split())
    code = next(line for line in out.splitlines() if line.startswith("        print("))
    assert out.count(code) >= 2
    brief = ask("dummy:accel", "dummy:garbles-computing", "--brief")[1]
    assert "print(" not in brief
    assert f"  {ADD}: works → garbage" in brief


def test_the_direction_matters(ask: Ask) -> None:
    assert "loosened, refused here, works there (" in ask("dummy:accel", "dummy:moves-to-first")[1]
    assert "tightened, works here, refused there (" in ask("dummy:moves-to-first", "dummy:accel")[1]


def test_what_answers_alike_and_what_a_target_can_t_be_asked_is_not_listed(ask: Ask) -> None:
    status, out, _ = ask("dummy:accel", "dummy:no-peer")
    assert (status, out) == (
        0,
        "dummy:accel, dummy 1.0, simulated → dummy:no-peer, dummy 1.0, simulated: 0 of 4 questions are answered differently\n",
    )


def test_each_target_s_own_device_is_its_own(ask: Ask) -> None:
    assert ": 0 of 3 questions" in ask("dummy:accel", "dummy:host-only")[1]


def test_facets_that_bite_are_told_and_texts_of_errors_are_not(ask: Ask) -> None:
    out = ask("dummy:accel", "dummy:widens-computing")[1]
    assert f"  {ADD}: works → works; result.dtype: float32 → float64" in out
    assert "error-" not in out


def test_json_has_both_scripts(ask: Ask) -> None:
    data = json.loads(ask("dummy:accel", "dummy:garbles-computing", "--json", "--case", ADD)[1])
    (one,) = data["differences"]
    assert (data["from"], data["to"], data["compared"]) == ("dummy:accel", "dummy:garbles-computing", 1)
    assert (one["kind"], one["case"]) == ("silent", ADD)
    compile(one["from_script"], "script", "exec")
    compile(one["to_script"], "script", "exec")


def test_columns_of_several_records_are_told_apart(tmp_path: Path, ask: Ask) -> None:
    other = sample.record(tmp_path / "other.jsonl", ("accel",), (ADD,), version="2.0")
    status, _, err = ask("dummy:accel", "dummy:no-peer", "--record", other)
    assert status == 2
    assert "dummy:accel is more than one target: 'dummy:accel (" in err
    status, out, _ = ask("dummy:accel (2.0)", "dummy:garbles-computing", "--record", other)
    assert (status, f"  {ADD}: works → garbage" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("dummy:acel", "dummy:accel"), "no target 'dummy:acel' in the record; did you mean dummy:accel"),
        (("torch:cuda", "dummy:accel"), "no target 'torch:cuda' in the record; there are dummy:accel, "),
        (("dummy:accel", "dummy:accel"), "FROM and TO are the same target, dummy:accel"),
        (("dummy:accel", "dummy:no-peer", "--case", "time/*"), "no case matches 'time/*'"),
        (("dummy:no-peer", "dummy:accel", "--case", PEER), "dummy:no-peer and dummy:accel have no answered question in common"),
        (("dummy:accel", "dummy:no-peer", "--record", "nope.jsonl"), "no record at nope.jsonl"),
        (("dummy:accel", "dummy:no-peer", "--output", "README.md/x"), "README.md/x can't be written"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_status_2(ask: Ask, arguments: tuple[str, ...], says: str) -> None:
    status, out, err = ask(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


# --- what is recorded ----------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let what is recorded be two records, and the last run one of the first kind alone."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    for name, kinds in (("both", ("accel", "widens-computing")), ("one", ("no-peer",))):
        plain = sample.record(tmp_path / f"{name}.jsonl", kinds, (ADD, SUB))
        (folder / f"{name}.jsonl.xz").write_bytes(lzma.compress(plain.read_bytes()))
    monkeypatch.setattr(reports.recorded, "FOLDER", folder)
    monkeypatch.setattr(reports.record, "LATEST", sample.record(tmp_path / "latest.jsonl", ("accel", "garbles-computing"), (ADD, SUB)))
    return folder


@pytest.mark.parametrize(
    ("here", "there", "taken"),
    [
        ("dummy:accel", "dummy:garbles-computing", ""),
        ("dummy:accel", "dummy:widens-computing", "taken from both.jsonl.xz\n"),
        ("dummy:garbles-computing", "dummy:no-peer", "taken from latest.jsonl, "),
    ],
)
@pytest.mark.usefixtures("kept")
def test_a_target_that_the_last_run_lacks_is_taken_from_what_is_recorded(
    capsys: pytest.CaptureFixture[str], here: str, there: str, taken: str
) -> None:
    assert main(["port", here, there, "--brief"]) == 0
    said = capsys.readouterr()
    assert taken in said.err
    assert bool(said.err) is bool(taken)
    assert said.out.startswith(f"{here}, dummy 1.0, simulated → {there}")


@pytest.mark.usefixtures("kept")
def test_a_target_that_nobody_has_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["port", "dummy:accel", "dummy:nothing"]) == 2
    assert "no target 'dummy:nothing' in the record" in capsys.readouterr().err


def test_without_a_run_what_is_recorded_is_enough(kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports.record, "LATEST", kept / "none.jsonl")
    assert main(["port", "dummy:accel", "dummy:widens-computing", "--brief"]) == 0
    assert "taken from both.jsonl.xz" in capsys.readouterr().err


def test_an_error_is_told_whole_and_code_that_is_the_same_on_both_sides_once(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, record: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = ask("dummy:moves-to-first", "dummy:accel", "--case", MIXED)[1]
    text, *_ = (fact["error"]["text"] for fact in _steps(record, "dummy:accel", MIXED) if "error" in fact)
    assert len(text) > 60
    said = out.split("which says ")[1].split("        ")[0]
    assert " ".join(said.split()).endswith(text)
    assert out.count("        print('result:'") == 1


def _steps(record: Path, target: str, case: str) -> list[dict[str, Any]]:
    found = reports.record.read(record).cells[(target, case)].observation or {}
    return list(found["steps"].values())
