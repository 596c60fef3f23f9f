"""The main job, as users run it: real pytest in a process of its own, asking the dummy framework."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reports.record import RecordError, read

ROOT = Path(__file__).parent.parent
DUMMY = ("--adapter", "dummy=tests.dummy:Dummy")
#: A few cases of one area, and how many there are of them.
FEW = ("--case", "placement/matmul/*")
NUMBER = 4

pytestmark = pytest.mark.slow


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a way to run the suite, as `pytest ARGUMENTS` in the checkout."""
    monkeypatch.chdir(ROOT)
    for name in list(os.environ):
        if name.startswith("PYTEST_"):
            monkeypatch.delenv(name)

    def run(*arguments: str, expect: int = 0) -> pytest.RunResult:
        record = pytester.path / "record.jsonl"
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--record={record}")
        result = pytester.run(*command, *arguments, timeout=120)
        said = "\n".join(result.outlines + result.errlines)
        assert result.ret == expect, said
        assert "Traceback" not in said
        assert "INTERNALERROR" not in said
        return result

    return run


def cells(pytester: pytest.Pytester) -> dict[tuple[str, str], str]:
    """Return what the record holds; each cell is there once."""
    record = read(pytester.path / "record.jsonl")
    keys = [(c.target, c.case) for c in record.cells.values()]
    assert len(keys) == len(set(keys))
    return {(c.target, c.case): c.answer or c.status for c in record.cells.values()}


@pytest.mark.parametrize("processes", [(), ("-n", "0"), ("-n", "1"), ("-n", "2"), ("-n", "2", "--dist", "worksteal")])
def test_the_answers_do_not_depend_on_the_number_of_processes(suite: Any, pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    suite(*DUMMY, "--target", "dummy:accel", *FEW, *processes)
    found = cells(pytester)
    assert len(found) == NUMBER
    assert found[("dummy:accel", "placement/matmul/device-device")] == "works"
    assert found[("dummy:accel", "placement/matmul/host-accelerator")] == "raises"
    assert read(pytester.path / "record.jsonl").complete


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("dies", "crashed", "SIGSEGV"),
        ("aborts", "crashed", "SIGABRT"),
        ("exits", "crashed", "exit status 0"),
        ("hangs", "hung", "no answer within 2 s"),
    ],
)
def test_a_framework_that_fails_costs_its_cells_and_no_others(
    suite: Any, pytester: pytest.Pytester, kind: str, status: str, words: str
) -> None:
    result = suite(
        *DUMMY,
        "--target",
        f"dummy:{kind}",
        "--target",
        "dummy:accel",
        *FEW,
        "--case",
        "placement/add/*",
        "-n",
        "2",
        "--deadline",
        "2",
        expect=1,
    )
    found = cells(pytester)
    assert found[(f"dummy:{kind}", "placement/matmul/device-device")] == status
    assert found[(f"dummy:{kind}", "placement/add/device-device")] == "works"
    assert found[("dummy:accel", "placement/matmul/device-device")] == "works"
    assert words in result.stdout.str()


@pytest.mark.parametrize(("glob", "status", "count"), [("placement/matmul/*", 0, NUMBER), ("placement/matmul/host-accelerator", 2, 1)])
def test_who_refuses_on_one_device_says_nothing_of_two(suite: Any, pytester: pytest.Pytester, glob: str, status: int, count: int) -> None:
    suite(*DUMMY, "--target", "dummy:refuses-computing", "--case", glob, expect=status)
    found = cells(pytester)
    assert len(found) == count  # the control is asked, and recorded only where it was selected
    assert found["dummy:refuses-computing", "placement/matmul/host-accelerator"] == "inconclusive"


def test_a_framework_that_floods_its_output_is_answered_all_the_same(suite: Any, pytester: pytest.Pytester) -> None:
    suite(*DUMMY, "--target", "dummy:prints-rubbish", *FEW)
    assert cells(pytester)[("dummy:prints-rubbish", "placement/matmul/device-device")] == "works"


@pytest.mark.parametrize("kind", ["leaks-default-device", "leaks-environment"])
def test_what_a_case_leaves_behind_does_not_change_the_next(suite: Any, pytester: pytest.Pytester, kind: str) -> None:
    wanted = (*DUMMY, "--target", f"dummy:{kind}", "--case", "placement/matmul/*", "--case", "moving/*")
    suite(*wanted, expect=0)
    plain = cells(pytester)
    suite(*wanted, "--shuffle", "7")
    assert cells(pytester) == plain
    suite(*wanted, "--fresh", "-n", "2")
    assert cells(pytester) == plain


def test_a_poisoned_device_gets_a_new_worker(suite: Any, pytester: pytest.Pytester) -> None:
    suite(*DUMMY, "--target", "dummy:poisons-device", *FEW, "--case", "placement/mul/device-device")
    assert cells(pytester)[("dummy:poisons-device", "placement/matmul/device-device")] == "raises"
    assert cells(pytester)[("dummy:poisons-device", "placement/mul/device-device")] == "works"


def test_asking_more_than_once_keeps_the_set_of_answers(suite: Any, pytester: pytest.Pytester) -> None:
    suite(*DUMMY, "--target", "dummy:accel", *FEW, "--repeat", "3")
    assert len(cells(pytester)) == NUMBER


def test_items_are_selected_by_name_and_by_id(suite: Any, pytester: pytest.Pytester) -> None:
    suite(*DUMMY, "--target", "dummy:accel", "-k", "matmul and device-device")
    assert set(cells(pytester)) == {("dummy:accel", "placement/matmul/device-device")}
    suite(*DUMMY, "--target", "dummy:accel", "cases/__init__.py::dummy:accel::placement/add/host-accelerator")
    assert set(cells(pytester)) == {("dummy:accel", "placement/add/host-accelerator")}


def test_collecting_alone_asks_nothing_and_writes_nothing(suite: Any, pytester: pytest.Pytester) -> None:
    result = suite(*DUMMY, "--target", "dummy:accel", *FEW, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["cases/__init__.py::dummy:accel::placement/matmul/device-device"])
    with pytest.raises(RecordError):
        read(pytester.path / "record.jsonl")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_stopping_at_the_first_failure_leaves_an_incomplete_record(suite: Any, pytester: pytest.Pytester, processes: str) -> None:
    suite(*DUMMY, "--target", "dummy:dies", "--case", "placement/*", "-x", "-n", processes, expect=1)
    record = read(pytester.path / "record.jsonl")
    assert ("dummy:dies", "placement/matmul/device-device") in {(c.target, c.case) for c in record.cells.values()}


def test_the_last_failed_are_asked_again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    common = [
        "-o",
        f"cache_dir={pytester.path}/cache",
        f"--record={pytester.path / 'record.jsonl'}",
        *DUMMY,
        "--target",
        "dummy:exits",
        *FEW,
    ]
    for extra, number in (((), NUMBER), (("--lf", "-n", "2"), 2)):
        result = pytester.run(sys.executable, "-m", "pytest", *common, "--case", "placement/add/device-device", *extra)
        assert result.ret == 1
        assert len(cells(pytester)) >= number


BAD = [
    (("--target", "nonsense"), "is not [[]label=[]]framework:device"),
    (("--target", "trch:cpu"), "no framework 'trch'; there are"),
    (("--target", "dummy:acel"), "no device 'acel' in dummy"),
    (("--target", "dummy:z*"), "no device 'z*' in dummy; there are"),
    (("--target", "numpy:cpu@/no/such/python"), "no interpreter or command"),
    (("--target", "dummy:accel", "--case", "placement/nothing"), "no case matches"),
    (("--target", "dummy:accel", "--deadline", "0"), "--deadline wants"),
    (("--target", "dummy:accel", "--record=/proc/nowhere/record.jsonl"), "can't be written"),
    (("--adapter", "x=tests.nowhere:X", "--target", "x:cpu"), "named didn't start"),
    (("--adapter", "x", "--target", "x:cpu"), "is not NAME=module:Class"),
    (("--target", "dummy:accel", "--record", "new.jsonl"), "write --record=PATH"),
]


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[words[:20] for _, words in BAD])
def test_what_cannot_be_done_is_a_sentence_and_exit_status_2(suite: Any, arguments: tuple[str, ...], words: str, processes: str) -> None:
    result = suite(*DUMMY, *arguments, "-n", processes, expect=2)
    said = result.stdout.str() + result.stderr.str()
    assert words.replace("[[]", "[").replace("[]]", "]") in said


def pgrep(*arguments: str) -> list[str]:
    return subprocess.run(["/usr/bin/env", "pgrep", *arguments], stdout=subprocess.PIPE, text=True).stdout.split()


def start(record: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *DUMMY, f"--record={record}", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def wait_for(record: Path, lines: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if record.exists() and record.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.05)
    pytest.fail(f"the record has not {lines} lines after a minute")


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_had_and_leaves_no_process(tmp_path: Path, number: int, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    run = start(record, "--target", "dummy:hangs", "--target", "dummy:accel", "--case", "placement/*", "-n", processes)
    wait_for(record, 5)
    os.kill(run.pid, number)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 2, said
    assert "Traceback" not in said
    kept = read(record)
    assert not kept.complete
    assert "interrupted" in kept.why
    assert kept.cells
    left = pgrep("-g", str(run.pid))
    assert not left


def test_a_crashed_xdist_worker_loses_no_cell(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    run = start(record, "--target", "dummy:hangs", "--case", "placement/*", "-n", "2", "--deadline", "3")
    wait_for(record, 5)
    time.sleep(0.5)
    children = pgrep("-P", str(run.pid), "-f", "execnet|import sys;exec")
    assert children, "no xdist worker to kill"
    os.kill(int(children[0]), signal.SIGKILL)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 1, said
    kept = read(record)
    assert kept.complete
    keys = [(c.target, c.case) for c in kept.cells.values()]
    assert len(keys) == len(set(keys))


def test_two_runs_at_once_in_one_checkout_do_not_disturb_each_other(tmp_path: Path) -> None:
    runs = [start(tmp_path / f"{n}.jsonl", "--target", "dummy:accel", *FEW, "-n", "2") for n in range(2)]
    for run in runs:
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0, said
    for n in range(2):
        assert len(read(tmp_path / f"{n}.jsonl").cells) == NUMBER


def test_no_framework_is_imported_in_pytests_own_processes(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import sys, json, os\n"
        "def pytest_sessionfinish(session):\n"
        "    found = sorted({'torch', 'jax', 'numpy', 'array_api_strict'} & set(sys.modules))\n"
        f"    with open(os.path.join({str(tmp_path)!r}, str(os.getpid()) + '.json'), 'w') as file:\n"
        "        json.dump(found, file)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "probe",
        "-n",
        "2",
        f"--record={tmp_path / 'r.jsonl'}",
        "--case",
        "placement/add/*",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1), done.stdout
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert len(found) == 3  # the controller and two workers
    assert found == [[], [], []]
