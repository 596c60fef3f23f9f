"""The main job: what is asked, in what processes, and that every cell is recorded once."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from reports.record import read
from tests.running import DUMMY, FEW, NUMBER, ask, cells, pgrep, start, surroundings, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Return where a record may be written."""
    return tmp_path / "record.jsonl"


@pytest.mark.parametrize("processes", [(), ("-n", "0"), ("-n", "1"), ("-n", "2"), ("-n", "2", "--dist", "worksteal")])
def test_the_answers_do_not_depend_on_the_number_of_processes(record: Path, processes: tuple[str, ...]) -> None:
    ask(*DUMMY, "--target", "dummy:accel", *FEW, *processes, f"--record={record}")
    found = cells(record)
    assert len(found) == NUMBER
    assert found[("dummy:accel", "placement/matmul/device-device")] == "works"
    assert found[("dummy:accel", "placement/matmul/host-accelerator")] == "raises"
    assert read(record).complete


@pytest.mark.parametrize(
    ("kind", "status", "words", "processes"),
    [
        ("dies", "crashed", "SIGSEGV", "0"),
        ("aborts", "crashed", "SIGABRT", "0"),
        ("exits", "crashed", "exit status 0", "0"),
        ("hangs", "hung", "no answer within 2 s", "2"),
    ],
)
def test_a_framework_that_fails_costs_its_cells_and_no_others(record: Path, kind: str, status: str, words: str, processes: str) -> None:
    wanted = ("--target", f"dummy:{kind}", "--target", "dummy:accel", *FEW, "--case", "placement/add/*", "-n", processes, "--deadline", "2")
    said = ask(*DUMMY, *wanted, f"--record={record}", expect=1)
    found = cells(record)
    assert found[(f"dummy:{kind}", "placement/matmul/device-device")] == status
    assert found[(f"dummy:{kind}", "placement/add/device-device")] == "works"
    assert found[("dummy:accel", "placement/matmul/device-device")] == "works"
    assert words in said


@pytest.mark.parametrize(("glob", "status", "count"), [("placement/matmul/*", 0, NUMBER), ("placement/matmul/host-accelerator", 2, 1)])
def test_who_refuses_on_one_device_says_nothing_of_two(record: Path, glob: str, status: int, count: int) -> None:
    ask(*DUMMY, "--target", "dummy:refuses-computing", "--case", glob, f"--record={record}", expect=status)
    found = cells(record)
    assert len(found) == count  # the control is asked, and recorded only where it was selected
    assert found["dummy:refuses-computing", "placement/matmul/host-accelerator"] == "inconclusive"


def test_a_framework_that_floods_its_output_is_answered_all_the_same(record: Path) -> None:
    ask(*DUMMY, "--target", "dummy:prints-rubbish", *FEW, f"--record={record}")
    assert cells(record)[("dummy:prints-rubbish", "placement/matmul/device-device")] == "works"


@pytest.mark.parametrize("kind", ["leaks-default-device", "leaks-environment"])
def test_what_a_case_leaves_behind_does_not_change_the_next(record: Path, kind: str) -> None:
    chosen = ("placement/matmul/*", "placement/create/*", "moving/default-device/*", "moving/equality/default*")
    wanted = (*DUMMY, "--target", f"dummy:{kind}", *(word for glob in chosen for word in ("--case", glob)), f"--record={record}")
    ask(*wanted)
    plain = cells(record)
    ask(*wanted, "--shuffle", "7")
    assert cells(record) == plain
    ask(*wanted, "--fresh")
    assert cells(record) == plain


def test_a_poisoned_device_gets_a_new_worker(record: Path) -> None:
    ask(*DUMMY, "--target", "dummy:poisons-device", *FEW, "--case", "placement/mul/device-device", f"--record={record}")
    assert cells(record)[("dummy:poisons-device", "placement/matmul/device-device")] == "raises"
    assert cells(record)[("dummy:poisons-device", "placement/mul/device-device")] == "works"


def test_asking_more_than_once_keeps_the_set_of_answers(record: Path) -> None:
    ask(*DUMMY, "--target", "dummy:accel", *FEW, "--repeat", "3", f"--record={record}")
    assert len(cells(record)) == NUMBER


def test_items_are_selected_by_name_and_by_id(record: Path) -> None:
    ask(*DUMMY, "--target", "dummy:accel", "-k", "matmul and device-device", f"--record={record}")
    assert set(cells(record)) == {("dummy:accel", "placement/matmul/device-device")}
    ask(*DUMMY, "cases/__init__.py::dummy:accel::placement/add/host-accelerator", f"--record={record}")
    assert set(cells(record)) == {("dummy:accel", "placement/add/host-accelerator")}


@pytest.mark.parametrize("options", [("-x",), ("-x", "-n", "2"), ("--stepwise",)], ids=" ".join)
def test_stopping_at_the_first_failure_keeps_what_was_answered(tmp_path: Path, record: Path, options: tuple[str, ...]) -> None:
    wanted = ("--target", "dummy:hangs", "--case", "placement/*", "--deadline", "2", "-o", f"cache_dir={tmp_path / 'cache'}")
    ask(*DUMMY, *wanted, *options, f"--record={record}", expect=1)
    assert cells(record)[("dummy:hangs", "placement/matmul/device-device")] == "hung"
    # Everything is asked ahead, and xdist's workers may start so slowly that all of it was answered by then.
    assert read(record).why == "stopped at a failure" or ("-n" in options and read(record).complete)


def test_the_last_failed_are_asked_again(tmp_path: Path, record: Path) -> None:
    common = ("-o", f"cache_dir={tmp_path / 'cache'}", f"--record={record}", *DUMMY, "--target", "dummy:exits", *FEW)
    ask(*common, "--case", "placement/add/device-device", expect=1)
    assert len(cells(record)) == NUMBER + 1
    ask(*common, "--case", "placement/add/device-device", "--lf", "-n", "2", expect=1)
    assert set(cells(record).values()) == {"crashed"}
    assert len(cells(record)) == NUMBER


def test_a_crashed_xdist_worker_loses_no_cell(record: Path) -> None:
    run = start(record, "--target", "dummy:hangs", "--case", "placement/*", "-n", "2", "--deadline", "3")
    wait_for(record, 5)
    time.sleep(0.5)
    children = pgrep("-P", str(run.pid), "-f", "execnet|import sys;exec")
    assert children, "no xdist worker to kill"
    os.kill(int(children[0]), signal.SIGKILL)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 1, said
    assert "crashed while running" in said, "what is no deviation is shown as pytest does"
    assert read(record).complete
    assert cells(record)


def test_two_runs_at_once_in_one_checkout_do_not_disturb_each_other(tmp_path: Path) -> None:
    runs = [start(tmp_path / f"{n}.jsonl", "--target", "dummy:accel", *FEW, "-n", "2") for n in range(2)]
    for run in runs:
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0, said
    for n in range(2):
        assert len(cells(tmp_path / f"{n}.jsonl")) == NUMBER


def test_no_framework_is_imported_in_pytests_own_processes(tmp_path: Path, record: Path) -> None:
    (tmp_path / "probe.py").write_text(
        "import sys, json, os\n"
        "def pytest_sessionfinish(session):\n"  # later xdist may end its workers at any moment
        "    found = sorted({'torch', 'jax', 'numpy', 'array_api_strict'} & set(sys.modules))\n"
        f"    with open(os.path.join({str(tmp_path)!r}, str(os.getpid()) + '.json'), 'w') as file:\n"
        "        json.dump(found, file)\n"
    )
    ask("-q", "-p", "probe", "-n", "2", "--case", "placement/add/*", f"--record={record}", env=surroundings(PYTHONPATH=str(tmp_path)))
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert len(found) == 3  # the controller and two workers
    assert found == [[], [], []]


def test_items_come_question_by_question_in_every_worker(record: Path) -> None:
    two = ("--target", "dummy:accel", "--target", "dummy:host-only")
    said = ask(*DUMMY, *two, *FEW, "-v", "-n", "0", f"--record={record}")
    asked = re.findall(r"(dummy:[a-z-]+)::placement/matmul/([a-z-]+)", said)[: 2 * NUMBER]
    assert [target for target, _ in asked] == ["dummy:accel", "dummy:host-only"] * NUMBER
    assert [case for _, case in asked[::2]] == [case for _, case in asked[1::2]]
    tree = ask(*DUMMY, *two, *FEW, "--collect-only")
    assert tree.count("<TargetCases dummy:accel>") == 1, "a list of what there is stays a tree"


def test_a_report_of_other_tools_has_every_item_once(tmp_path: Path, record: Path) -> None:
    kept = tmp_path / "junit.xml"
    ask(*DUMMY, "--target", "dummy:accel", *FEW, "-n", "2", f"--record={record}", f"--junitxml={kept}")
    names = re.findall(r'<testcase [^>]*name="([^"]+)"', kept.read_text())
    assert sorted(names) == sorted(case for _, case in cells(record))


@pytest.mark.parametrize("phase", ["setup", "call", "teardown"])
def test_who_looks_at_the_phases_of_items_sees_every_one(tmp_path: Path, record: Path, phase: str) -> None:
    (tmp_path / "looker.py").write_text(
        f"def pytest_runtest_{phase}(item):\n"
        f"    with open({str(tmp_path / 'seen')!r}, 'a') as file:\n"
        "        file.write(item.name + '\\n')\n"
    )
    wanted = (*DUMMY, "--target", "dummy:accel", *FEW, "-n", "2", f"--record={record}")
    ask(*wanted, "-p", "looker", env=surroundings(PYTHONPATH=str(tmp_path)))
    seen = (tmp_path / "seen").read_text().split()
    assert sorted(seen) == sorted(case for _, case in cells(record))


def test_cells_may_stand_between_other_tests(record: Path) -> None:
    # Those have fixtures of a module and of a session, which are cleared away before and behind the cells.
    others = ("tests/test_matrix.py", "cases", "tests/test_kept_scripts.py")
    for order in (others, others[:2], others[1:]):
        said = ask(*DUMMY, "--target", "dummy:accel", *FEW, *order, "-m", "", "-n", "0", f"--record={record}")
        assert len(cells(record)) == NUMBER
        assert "error" not in said.lower().replace("errors", "")
