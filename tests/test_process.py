"""One worker process, and everything that it can do wrong."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.process import NotStarted, Process, WorkerFailed
from adapters.targets import Spec

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
        ("wrong-id", "crashed", "answered request 9 when asked 2"),
        ("half-line", "crashed", "ended with exit status 0 in the middle of a question"),
        ("rubbish", "crashed", "answered rubbish"),
        ("no-observation", "crashed", "no observation but"),
        ("endless-line", "crashed", "a line without an end"),
        ("closes-output", "crashed", "closed its output"),
        ("hang", "hung", "no answer within 1 s"),
        ("segfault", "crashed", "ended by SIGSEGV"),
        ("exit-0", "crashed", "ended with exit status 0"),
    ],
)
def test_a_worker_that_breaks_the_protocol_becomes_a_status_and_a_sentence(mode: str, status: str, words: str) -> None:
    with worker(mode) as process:
        process.hello(30)
        with pytest.raises(WorkerFailed, match=words) as failed:
            process.run("cpu", PROGRAM, None, 1 if mode == "hang" else 30)
        assert failed.value.status == status


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
    ],
)
def test_a_worker_that_does_not_start_says_why(mode: str, words: str) -> None:
    with worker(mode) as process, pytest.raises(NotStarted, match=words):
        process.hello(1 if mode == "silent" else 30)


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
