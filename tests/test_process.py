"""One worker process, and everything that it can do wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.process import NotStarted, Process, WorkerFailed
from adapters.targets import Spec

ROOT = Path(__file__).parent.parent
BROKEN = str(Path(__file__).parent / "broken.py")
PROGRAM = {"steps": [{"id": "s1", "op": "full", "args": [[2], 3.0, {"dtype": "float32"}, {"device": "device"}]}]}


@contextmanager
def worker(mode: str) -> Iterator[Process]:
    process = Process(Spec("numpy", None, (sys.executable, BROKEN, mode)))
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("wrong-id", "inconclusive", "answered request 9 when asked 2"),
        ("half-line", "crashed", "ended with exit status 0 in the middle of a question"),
        ("half-line", "crashed", 'but a line without an end: b\'{"id": 2, "type": "obs\'$'),
        ("half-line-hang", "hung", "no answer within 1 s, but a line without an end"),
        ("rubbish", "inconclusive", "answered rubbish"),
        ("no-observation", "inconclusive", "no observation but"),
        ("endless-line", "inconclusive", "a line without an end"),
        ("closes-output", "crashed", "closed its output"),
        ("hang", "hung", "no answer within 1 s"),
        ("segfault", "crashed", "ended by SIGSEGV"),
        ("aborts-with-frames", "crashed", "ended by SIGABRT: memory allocation of 9 bytes failed"),
        ("exit-0", "crashed", "ended with exit status 0"),
    ],
)
def test_a_worker_that_breaks_the_protocol_becomes_a_status_and_a_sentence(mode: str, status: str, words: str) -> None:
    with worker(mode) as process:
        process.hello(30)
        with pytest.raises(WorkerFailed, match=words) as failed:
            process.run("cpu", PROGRAM, None, 1 if mode.endswith("hang") else 30)
        assert failed.value.status == status


def test_what_was_said_in_an_earlier_question_is_no_reason_for_the_end_in_this_one() -> None:
    with worker("quiet-segfault") as process:
        process.hello(30)
        process.run("cpu", PROGRAM, None, 30)
        with pytest.raises(WorkerFailed, match=r"ended by SIGSEGV$"):
            process.run("cpu", PROGRAM, None, 30)


def test_rubbish_on_standard_error_neither_blocks_nor_matters() -> None:
    with worker("flood") as process:
        process.hello(30)
        assert process.run("cpu", PROGRAM, None, 30) == {"steps": {}}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("silent", "no Python that can be a worker"),
        ("not-python", "what do you want of me"),
        ("dies-at-hello", "no library here"),
        ("newer-protocol", "no hello of protocol 1"),
        ("endless-banner", "no Python that can be a worker.*Welcome"),
    ],
)
def test_a_worker_that_does_not_start_says_why(mode: str, words: str) -> None:
    with worker(mode) as process, pytest.raises(NotStarted, match=words):
        process.hello(1 if mode == "silent" else 30)


def test_a_greeting_before_the_worker_is_skipped_also_where_it_speaks_of_being_ready() -> None:
    with worker("banner") as process:
        assert process.hello(30)["framework"] == "numpy"


def test_an_interpreter_without_the_framework_says_what_to_install() -> None:
    process = Process(Spec("jax", None, ("/usr/bin/env", "-i", sys.executable, "-S")))
    try:
        with pytest.raises(NotStarted, match=r"jax can't be imported in .*No module named 'jax'.*-m pip install jax"):
            process.hello(60)
    finally:
        process.kill()


def test_a_program_that_does_not_exist_is_a_sentence() -> None:
    with pytest.raises(NotStarted, match="can't be started"):
        Process(Spec("numpy", None, ("/no/such/python",)))


def test_a_worker_finds_no_variable_that_it_must_not_find_unless_a_question_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "kept")
    monkeypatch.setenv("DEFAULT", "chosen")
    told = ("/bin/sh", "-c", 'read request; echo "found $MINE, ${DEFAULT-nothing}" >&2; exit 3')
    spec = Spec("numpy", None, told, program=True, unset=("DEFAULT",))
    for one, found in ((spec, "found kept, nothing"), (spec.within({"DEFAULT": "named"}), "found kept, named")):
        process = Process(one)
        try:
            with pytest.raises(NotStarted, match=found):
                process.hello(30)
        finally:
            process.kill()


def test_killing_a_worker_ends_its_whole_process_group() -> None:
    with worker("hang") as process:
        process.hello(30)
        pid = process._popen.pid
        process.kill()
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                os.killpg(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        pytest.fail("the process group is still there")


#: An adapter whose one operation never returns, and never gives the interpreter's lock back.
STUCK = """
import ctypes
from adapters.base import Adapter, role

class Stuck(Adapter):
    framework = "stuck"
    imports = ""
    dtypes = {"float32": "'float32'"}

    @classmethod
    def identity(cls):
        return {"version": "1.0", "build": {}}

    @classmethod
    def kinds(cls):
        return {"cpu": {"host": role("cpu", "'cpu'")}}

    def full(self, shape, value, dtype, device):
        ctypes.PyDLL(None).sleep(600)
"""
#: A run of its own: it starts a worker, says its process's number, and waits for an answer that won't come.
RUN = f"""
from adapters.process import Process
from adapters.targets import Spec
process = Process(Spec("stuck", "stuck:Stuck", None))
process.hello(60)
print(process._popen.pid, flush=True)
process.run("cpu", {PROGRAM!r}, None, 600)
"""


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
    (tmp_path / "stuck.py").write_text(STUCK)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    return Spec("stuck", "stuck:Stuck", None)


def gone(pid: int) -> bool:
    """Say whether a process has ended; one that nobody has fetched the status of has."""
    found = subprocess.run(["/usr/bin/env", "ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, text=True)
    return found.stdout.strip()[:1] in ("", "Z")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups here")
def test_a_worker_that_never_returns_ends_with_a_run_that_is_killed_outright(stuck: Spec) -> None:
    del stuck
    run = subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    worker = int(run.stdout.readline())
    assert not gone(worker)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    until = time.monotonic() + 10
    while not gone(worker):
        if time.monotonic() > until:
            os.kill(worker, signal.SIGKILL)
            pytest.fail("the worker outlives its run")
        time.sleep(0.05)


@pytest.mark.slow
def test_a_worker_ends_by_itself_when_a_question_takes_twice_its_deadline(stuck: Spec) -> None:
    process = Process(stuck)
    try:
        process.hello(60)
        with pytest.raises(WorkerFailed, match=r"no answer within 0\.5 s"):
            process.run("cpu", PROGRAM, None, 0.5)
        assert process._popen.wait(10) == -signal.SIGALRM
    finally:
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("argv", [None, (sys.executable,), ("/usr/bin/env", "-i", sys.executable)])
def test_numpy_answers_through_an_interpreter_and_through_a_command_that_wraps_one(argv: tuple[str, ...] | None) -> None:
    process = Process(Spec("numpy", None, argv))
    try:
        assert process.hello(60)["framework"] == "numpy"
        steps = process.run("cpu", PROGRAM, None, 30)["steps"]
        assert steps["s1"]["value"]["shape"] == [2]
    finally:
        process.end()
