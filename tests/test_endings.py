"""How a run ends: its exit status and the sentence with it, what stays of the record, what the terminal shows last."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.record import read
from reports.session import Controller
from tests import sample
from tests.running import DUMMY, FEW, NUMBER, ROOT, ask, cells, command, hearing, pgrep, start, surroundings, until, wait_for

ACCEL = (*DUMMY, "--target", "dummy:accel")
pytestmark = pytest.mark.slow

# --- exit status 2 -------------------------------------------------------------------------------

BAD = [
    (("--target", "nonsense"), "is not [label=]framework:device"),
    (("--deadline", "x"), "--deadline wants seconds above 0"),
    (("nosuch",), "there is no nosuch"),
]
#: What only a worker, or pytest's collection, can tell.
BAD_LATER = [
    (("--target", "dummy:acel", "-n", "1"), "no device 'acel' in dummy; there are"),
    ((*ACCEL, "--record=/proc/nowhere/record.jsonl"), "can't be written"),
    ((*ACCEL, "-k", "a="), "Wrong expression passed to '-k'"),
    ((*ACCEL, "-k", "a=", "-n", "1"), "Wrong expression passed to '-k'"),
    ((*ACCEL, "cases/__init__.py::dummy:accel::placement/nosuch"), "not found"),
    ((*ACCEL, "cases/__init__.py::dummy:accel::placement/nosuch", "-n", "1"), "not found"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_what_cannot_be_done_is_one_sentence_and_exit_status_2(arguments: tuple[str, ...], words: str) -> None:
    said = ask(*DUMMY, *arguments, "-n", "1", expect=2)
    assert said.startswith("ERROR: ")
    assert said.count("\n") == 1, "nothing was started"
    assert words in said


@pytest.mark.parametrize(("arguments", "words"), BAD_LATER, ids=[" ".join(arguments[-3:]) for arguments, _ in BAD_LATER])
def test_what_turns_out_not_to_be_possible_is_a_sentence_too(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    record = tmp_path / "record.jsonl"
    said = ask(*DUMMY, f"--record={record}", *arguments, expect=2)
    assert words in said
    assert not record.exists()


@pytest.mark.parametrize(
    "arguments", [(*ACCEL, "-k", "zzz"), (*ACCEL, "-k", "zzz", "-n", "1"), ("cases/devices.py",)], ids=["-k", "-k -n 1", "a file"]
)
def test_a_selection_of_nothing_leaves_the_last_record_alone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    record = sample.record(tmp_path / "record.jsonl")
    before = record.read_bytes()
    assert "ERROR: nothing was selected" in ask(f"--record={record}", *arguments, expect=2)
    assert record.read_bytes() == before


def test_no_answer_at_all_is_said(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    said = ask(*DUMMY, "--target", "dummy:host-only", "--case", "placement/matmul/host-accelerator", f"--record={record}", expect=2)
    assert "ERROR: nothing was answered" in said
    assert set(cells(record).values()) == {"not-applicable"}


# --- what asks nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [("--collect-only",), ("--setup-plan",), ("--setup-plan", "-n", "1")], ids=" ".join)
def test_looking_at_the_items_asks_nothing_and_writes_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    record = tmp_path / "record.jsonl"
    assert f"{NUMBER} items" in ask(*ACCEL, *FEW, f"--record={record}", *options)
    assert not record.exists()


@pytest.mark.parametrize("option", ["--fixtures", "--markers", "--cache-show", "--collect-only"])
def test_what_is_not_about_cases_starts_no_worker(tmp_path: Path, option: str) -> None:
    started = tmp_path / "started"
    (tmp_path / "telltale.py").write_text(f"open({str(started)!r}, 'w').close()\nfrom tests.dummy import Dummy\n")
    wanted = ("--adapter", "dummy=telltale:Dummy", "--target", "dummy:accel", *FEW, f"--record={tmp_path / 'record.jsonl'}")
    ask("-o", f"cache_dir={tmp_path / 'cache'}", *wanted, option, env=surroundings(PYTHONPATH=str(tmp_path)))
    assert started.exists() == (option == "--collect-only")
    assert not (tmp_path / "record.jsonl").exists()


# --- ends from outside ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "processes"),
    [(signal.SIGINT, "0"), (signal.SIGINT, "2"), (signal.SIGTERM, "0"), (signal.SIGTERM, "2"), (signal.SIGHUP, "0"), (signal.SIGQUIT, "0")],
)
def test_an_interrupted_run_keeps_what_it_had_and_leaves_no_process(tmp_path: Path, number: int, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    run = start(record, "--target", "dummy:hangs", "--target", "dummy:accel", "--case", "placement/*", "-n", processes)
    wait_for(record, 5)
    os.kill(run.pid, number)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 2, said
    # Where the signal comes inside one of pytest's hooks, pytest itself says so.
    assert "Traceback" not in said.replace("INTERNALERROR> Traceback", "")
    kept = read(record)
    assert not kept.complete
    assert "interrupted" in kept.why
    assert kept.cells
    assert not pgrep("-g", str(run.pid))


HALF_WAY = """
import os, signal

def half_way():
    try:
        yield
    finally:
        raise AssertionError("cleared away too late")

def pytest_runtest_logstart():
    next(half_way())
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_hook_that_an_interrupt_left_half_way_adds_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "half_way.py").write_text(HALF_WAY)
    wanted = (*ACCEL, *FEW, f"--record={tmp_path / 'record.jsonl'}")
    said = ask(*wanted, "-p", "half_way", expect=2, env=surroundings(PYTHONPATH=str(tmp_path)))
    assert "KeyboardInterrupt" in said


STOPPED = """
import os, signal
from reports.run import Run

Run._check = lambda _: os.kill(os.getpid(), signal.{})
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_run_that_is_stopped_while_workers_start_ends_in_order(tmp_path: Path, name: str) -> None:
    (tmp_path / "stopped.py").write_text(STOPPED.format(name))
    wanted = ("--target", "numpy:cpu", *FEW, f"--record={tmp_path / 'record.jsonl'}", "-p", "stopped")
    with hearing():
        said = ask(*wanted, expect=2, env=surroundings(PYTHONPATH=str(tmp_path)))
    assert "ended by" not in said, "that the run ends its workers is no failure of theirs"
    assert "no Python" not in said


@pytest.mark.parametrize("plugin", ["terminal", "debugging", "setupplan", "setuponly", "logging"])
@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_goes_on_without_a_plugin_of_pytest(tmp_path: Path, plugin: str, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    ask(*ACCEL, *FEW, f"--record={record}", "-n", processes, "-p", f"no:{plugin}")
    assert len(cells(record)) == NUMBER


def test_who_waits_for_a_cell_when_the_run_stops_is_hung_up_on() -> None:
    over = threading.Event()
    controller = Controller.__new__(Controller)
    controller._finished = False
    # As the run has it: a cell that nobody will ask any more comes back as not run.
    run: Any = SimpleNamespace(cell=lambda *_: over.wait(30) and {"status": "not-run"}, close=over.set)
    controller._run = run
    own, theirs = multiprocessing.Pipe()
    serving = threading.Thread(target=controller._serve, args=(own,), daemon=True)
    serving.start()
    theirs.send(("cell", "dummy:accel", "placement/add/device-device"))
    assert not theirs.poll(0.1)
    controller.stop()
    assert theirs.poll(30)
    with pytest.raises(EOFError):
        theirs.recv()
    serving.join(30)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_that_is_killed_outright_takes_its_workers_along(tmp_path: Path, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    run = start(record, "--target", "dummy:hangs", *FEW, "-n", processes)
    wait_for(record, 1)
    children = pgrep("-P", str(run.pid))
    assert len(children) > int(processes)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    until(lambda: not set(children) & set(pgrep("-f", "")), "a process outlives its run")


@pytest.mark.parametrize(("lines", "unbuffered"), [(1, ""), (1, "1"), (12, "1")])
def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path, lines: int, unbuffered: str) -> None:
    record = tmp_path / "record.jsonl"
    arguments = (*DUMMY, "--target", "dummy:hangs", "--case", "placement/*", "--deadline", "1", "-v", f"--record={record}")
    pipe = subprocess.PIPE
    environment = surroundings(PYTHONUNBUFFERED=unbuffered)
    with subprocess.Popen(command(*arguments), cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        for _ in range(lines):
            assert run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == ""
        assert run.wait(60) == 2
    if lines > 1:
        assert read(record).why == "interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_without_room_is_a_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        said = ask(*ACCEL, *FEW, f"--record={tmp_path / 'record.jsonl'}", expect=2, stdout=full, stderr=subprocess.PIPE)
    assert said == "ERROR: what the run says can't be written: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)], ids=["stdout", "stderr", "both"])
def test_a_run_whose_output_is_closed_from_the_start_is_a_run(tmp_path: Path, closed: tuple[int, ...]) -> None:
    record = tmp_path / "record.jsonl"

    def close() -> None:
        for number in closed:
            os.close(number)

    said = ask(*ACCEL, *FEW, f"--record={record}", stderr=subprocess.PIPE, preexec_fn=close)
    assert ("record: " in said) == (1 not in closed)
    assert read(record).complete
    assert len(cells(record)) == NUMBER


def test_what_cannot_be_done_is_no_traceback_where_the_output_is_closed() -> None:
    assert ask("--target", "nonsense", expect=2, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1)).count("\n") == 1


# --- files that can't be written -----------------------------------------------------------------


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_record_that_finds_no_room_ends_the_run_and_keeps_what_it_had(tmp_path: Path, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    limit = 40_000
    said = ask(
        *ACCEL, "--case", "placement/*", f"--record={record}", "-n", processes, "-p", "no:cacheprovider", expect=2,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert f"ERROR: the run ended early: the record {record} can't be written any further (File too large)" in said
    kept = read(record)
    assert kept.cells
    assert "in the middle of a line" in kept.why


def test_a_cache_that_cannot_be_kept_is_no_failure(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    (tmp_path / "file").touch()
    said = ask(*ACCEL, *FEW, f"--record={record}", "-o", f"cache_dir={tmp_path / 'file' / 'cache'}")
    assert "could not create cache path" in said
    assert read(record).complete


def test_a_report_of_pytest_that_cannot_be_written_is_a_sentence_and_costs_no_cell(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    (tmp_path / "file").touch()
    said = ask(*ACCEL, *FEW, f"--record={record}", f"--junit-xml={tmp_path / 'file' / 'report.xml'}", expect=2)
    assert "ERROR: pytest can't write what it keeps of a run: " in said
    assert f"record: {record}" in said
    assert read(record).complete
