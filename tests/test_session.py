"""The run and its session piece by piece: numbers, paths, bad workers, reports."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from adapters.hello import misfit
from adapters.lane import Settings
from adapters.pool import Pool
from adapters.targets import adapters, parse, plan
from cases import contract
from reports import arguments
from reports.arguments import _joined
from reports.record import Writer, read
from reports.run import Failure, Run, _check_path, _number
from reports.session import ANSWER, Session, is_deviation
from tests import sample

BROKEN = f"{sys.executable} {Path(__file__).parent / 'broken.py'}"
CASE = "placement/add/device-device"


def option(**changes: Any) -> Namespace:
    """Return the options as they are by themselves."""
    default: dict[str, Any] = {
        "target": [],
        "case": [],
        "adapter": [],
        "record": None,
        "deadline": 30.0,
        "repeat": 1,
        "fresh": False,
        "shuffle": None,
    }
    return Namespace(**{**default, **changes})


def asked(tmp_path: Path, mode: str) -> dict[str, Any]:
    """Return the cell that comes of a worker that breaks the protocol."""
    run = Run(option(target=[f"numpy:cpu@{BROKEN} {mode}"], case=[CASE], record=str(tmp_path / "record.jsonl")), [], 1, lambda _: None)
    try:
        (target,) = run.targets()
        run.ask([(target, CASE)])
        cell = run.cell(target, CASE)
        run.finish("interrupted")
    finally:
        run.close()
    kept = read(tmp_path / "record.jsonl")
    assert kept.complete
    assert kept.cells[target, CASE].status == cell["status"]
    return cell


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": ["nonsense"]}, r"is not \[label=\]framework:device"),
        ({"target": ["trch:cpu"]}, "no framework 'trch'; there are"),
        ({"target": ["numpy:cpu@/no/such/python"]}, "no interpreter or command"),
        ({"case": ["placement/nothing"]}, "no case matches"),
        ({"deadline": "0"}, "--deadline wants seconds above 0"),
        ({"repeat": "0"}, "--repeat wants a whole number from 1 on"),
        ({"shuffle": "x"}, "--shuffle wants a whole number"),
        ({"adapter": ["x"]}, "is neither NAME=module:Class"),
        ({"record": "page.html"}, "give the record another"),
        ({"record": ""}, "--record= names no file"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.run.Pool", lambda *_: pytest.fail("a worker was started"))
    with pytest.raises(Failure, match=words):
        Run(option(**changes), [], 1, lambda _: None)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("dummy:acel", "named didn't start: dummy:acel: no device 'acel' in dummy; there are"),
        ("dummy:z*", r"no device 'z\*' in dummy; there are"),
        ("x:cpu", "named didn't start: x:cpu: x can't be imported"),
        ("x:*", r"target x:\*: nothing that it matches is here: x can't be imported"),
    ],
)
def test_a_target_that_is_not_here_is_said(target: str, words: str) -> None:
    run = Run(option(target=[target], adapter=["dummy=tests.dummy:Dummy", "x=tests.nowhere:X"]), [], 1, lambda _: None)
    try:
        with pytest.raises(Failure, match=words):
            run.targets()
    finally:
        run.close()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "86401", "1e300", "x", ""])
def test_a_number_out_of_its_range_is_refused(text: str) -> None:
    with pytest.raises(Failure, match=f"--deadline={text}: --deadline wants seconds"):
        _number("deadline", text, float, "seconds", 0.0, 86400.0)


def test_a_number_within_its_range_is_taken_as_it_is() -> None:
    assert _number("deadline", "0.5", float, "seconds", 0.0, 86400.0) == 0.5
    assert _number("repeat", 1, int, "a number", 0, 10) == 1
    with pytest.raises(Failure, match=r"--repeat=1\.5"):
        _number("repeat", "1.5", int, "a number", 0, 10)


def test_record_and_its_path_become_one_word() -> None:
    assert _joined(["--record", "a b", "-n", "2"]) == ("--record=a b", "-n", "2")
    assert _joined(["-q", "--record=x", "--record", "y", "--record"]) == ("-q", "--record=x", "--record=y", "--record")


def test_a_contract_that_cannot_be_read_ends_the_run_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(
        'framework = "mine"\n[[promise]]\ncases = 7\naccepts = ["works"]\nsource = "https://x"\nsays = "x"\n'
    )
    monkeypatch.setattr(contract, "FOLDER", tmp_path)
    contract.contracts.cache_clear()
    try:
        with pytest.raises(Failure, match=r"^mine\.toml: "):
            Run(option(), [], 1, lambda _: None)
    finally:
        monkeypatch.undo()
        contract.contracts.cache_clear()


# --- the record's path ---------------------------------------------------------------------------


def test_a_record_takes_the_place_of_nothing_but_a_record(tmp_path: Path) -> None:
    _check_path(None)
    _check_path(str(tmp_path / "new.jsonl"))
    _check_path(str(tmp_path))  # the writer says that it is a folder
    _check_path(str(sample.record(tmp_path / "old.jsonl")))
    (tmp_path / "empty").touch()
    _check_path(str(tmp_path / "empty"))
    (tmp_path / "foreign").write_text('{"type": "something else"}')
    for path in (tmp_path / "foreign", Path(__file__), Path("/dev/null")):
        with pytest.raises(Failure, match="there is a file that is no record; give another path"):
            _check_path(str(path))
    with pytest.raises(Failure, match="the page beside the record gets that name"):
        _check_path(str(tmp_path / "new.html"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failure, match="no record"):
        _check_path(str(tmp_path / "pipe"))


# --- workers that say odd things -----------------------------------------------------------------

GOOD: dict[str, Any] = {
    "version": "1.0", "build": {}, "machine": {}, "environment": {}, "environments": {}, "operations": [], "dtypes": [],
    "devices": {
        "cpu": {"available": True, "roles": {"host": {"name": "cpu", "expression": "cpu", "evidence": "measured"}}},
        "gpu": {"available": False, "why": "none here"},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({name: None}, f"{name} is None") for name in GOOD),
        ({"devices": {"cpu": "yes"}}, "device cpu is 'yes'"),
        ({"devices": {"cpu": {"available": True}}}, "device cpu is"),
        ({"devices": {"cpu": {"available": True, "roles": {"host": "cpu"}}}}, "role host of cpu is 'cpu'"),
        ({"devices": {"cpu": {"available": True, "roles": {"host": {"name": "cpu", "expression": "cpu"}}}}}, "role host of cpu is"),
        ({"devices": {"cpu": {"available": True, "roles": {"host": {"name": "a", "expression": "a", "evidence": "hearsay"}}}}}, "hearsay"),
    ],
)
def test_a_hello_of_another_form_says_what_is_wrong_with_it(changes: dict[str, Any], words: str) -> None:
    assert misfit(GOOD) == ""
    assert words in misfit({**GOOD, **changes})


def test_a_worker_with_an_odd_hello_is_a_target_that_did_not_start() -> None:
    pool = Pool(*plan([parse(f"numpy:cpu@{BROKEN} odd-hello")], adapters()), Settings())
    try:
        (target,) = pool.targets()
        assert not target["available"]
        assert target["why"] == "numpy: its hello isn't made as the protocol says: operations is 'all of them'"
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("odd-step", "inconclusive", "the worker's observation isn't made as the protocol says"),
        ("odd-size", "inconclusive", "the worker's observation isn't made as the protocol says: MalformedError: has 'big' as 'size'"),
        ("deep-step", "inconclusive", "the worker's observation isn't made as the protocol says: MalformedError: is nested too deeply"),
        ("no-observation", "inconclusive", "no observation but"),
        ("wrong-id", "inconclusive", "answered request 10 when asked 3"),
    ],
)
def test_an_odd_observation_costs_its_cell(tmp_path: Path, mode: str, status: str, words: str) -> None:
    cell = asked(tmp_path, mode)
    assert cell["status"] == status
    assert words in cell["why"]


def test_a_writer_that_fails_ends_the_run_for_everybody_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: Any) -> None:
        raise LookupError("no such drawer")

    monkeypatch.setattr(Writer, "write", write)
    said = Run(option(target=["dummy:accel"], adapter=["dummy=tests.dummy:Dummy"], record=str(tmp_path / "r.jsonl")), [], 1, lambda _: None)
    try:
        said.ask([("dummy:accel", CASE), ("dummy:accel", "placement/sub/device-device")])
        assert said.cell("dummy:accel", "placement/sub/device-device")["why"] == "the run ended before"
        assert said.failure == "LookupError: no such drawer"
        said.finish("interrupted")
    finally:
        said.close()
    assert read(tmp_path / "r.jsonl").why == "LookupError: no such drawer"


# --- what an item says ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "outcome", "words"),
    [
        ({"verdict": None, "status": "not-offered", "why": "no such thing"}, "skip", "not-offered: no such thing"),
        ({"verdict": "conforms", "answer": "works"}, "pass", "works"),
        ({"verdict": "known-deviation", "answer": "garbage", "promise": "known is garbage"}, "xfail", "answered garbage: known is garbage"),
        ({"verdict": "deviates", "answer": "garbage", "promise": "guaranteed is raises"}, "fail", "answered garbage; guaranteed is raises"),
        (
            {"verdict": "deviates", "answer": None, "status": "hung", "why": "no answer"},
            "fail",
            "answered hung: no answer; and that is never",
        ),
        ({"verdict": "conforms", "answer": "works", "stale": "it is gone"}, "fail", "answered works; it is gone"),
    ],
)
def test_a_cell_decides_its_item(cell: dict[str, Any], outcome: str, words: str) -> None:
    found, said = Session.outcome(cell)
    assert found == outcome
    assert said.startswith(words)


def test_what_a_framework_says_does_not_steer_the_terminal() -> None:
    _, said = Session.outcome({"verdict": None, "status": "crashed", "why": "\x1b[2J over\nand out"})
    assert said == "crashed: \\x1b[2J over and out"


def test_the_suites_own_tests_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = Namespace(
        args=["tests/test_session.py::test_nothing"], option=Namespace(pyargs=False), invocation_params=Namespace(dir=arguments.ROOT)
    )
    arguments.check_arguments(config)
    monkeypatch.setattr(arguments, "_TESTS_NEED", ("hypothesis", "no_such_module"))
    with pytest.raises(Failure, match=r"^the suite's own tests need no_such_module: .*pip install .*-e '\.\[tests\]'$"):
        arguments.check_arguments(config)


def test_a_contract_for_what_has_no_adapter_is_named_over_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy.toml").write_text('framework = "toy"\n')
    monkeypatch.setattr(contract, "FOLDER", tmp_path)
    contract.contracts.cache_clear()
    try:
        run = Run(option(target=[f"numpy:cpu@{BROKEN} flood"]), [], 1, lambda _: None)
        run.close()
        assert run.described().endswith("; contracts for what has no adapter here: toy")
    finally:
        monkeypatch.undo()
        contract.contracts.cache_clear()


def test_only_what_a_cell_decided_is_a_deviation() -> None:
    def report(longrepr: object, when: str, properties: list[tuple[str, object]]) -> pytest.TestReport:
        return pytest.TestReport("id", ("", None, ""), {}, "failed", longrepr, when, (), 0.0, 0.0, 0.0, properties)  # type: ignore[arg-type]

    assert is_deviation(report("answered garbage", "call", [(ANSWER, "garbage")]))
    assert not is_deviation(report(object(), "call", [(ANSWER, "garbage")])), "an error after the cell was there"
    assert not is_deviation(report("worker 'gw0' crashed", "???", [])), "a crash of xdist"
