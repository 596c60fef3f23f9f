"""The main job as users run it: real pytest in a process of its own, in the checkout, asking the dummy framework."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reports.record import read

ROOT = Path(__file__).parent.parent
DUMMY = ("--adapter", "dummy=tests.dummy:Dummy")
#: A few cases of one area, and how many there are of them.
FEW = ("--case", "placement/matmul/*")
NUMBER = 5


def surroundings(**variables: str) -> dict[str, str]:
    """Return this process's environment without what pytest has put there, at the width of a usual terminal."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}, "COLUMNS": "80", **variables}


def command(*arguments: str) -> list[str]:
    """Return a pytest command line that leaves nothing in the checkout."""
    cache = () if any("cache" in word for word in arguments) else ("-p", "no:cacheprovider")
    return [sys.executable, "-m", "pytest", *cache, *arguments]


def ask(*arguments: str, expect: int = 0, **how: Any) -> str:
    """Run pytest to its end and return all that it said, which is never a traceback."""
    how = {"env": surroundings(), "cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **how}
    done = subprocess.run(command(*arguments), text=True, timeout=120, **how)
    said = (done.stdout or "") + (done.stderr or "")
    assert done.returncode == expect, said
    assert "Traceback" not in said, said
    assert "INTERNALERROR" not in said, said
    return said


def start(record: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start pytest in a process group of its own."""
    words = command(*DUMMY, f"--record={record}", *arguments)
    with hearing():
        return subprocess.Popen(
            words, cwd=ROOT, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )


@contextmanager
def hearing() -> Iterator[None]:
    """Let processes be interrupted: whoever runs these tests in the background may have made them deaf to it, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait at most a minute for something."""
    end = time.monotonic() + 60
    while not happened():
        if time.monotonic() > end:
            pytest.fail(f"after a minute: {what}")
        time.sleep(0.05)


def wait_for(record: Path, lines: int) -> None:
    """Wait until a record has so many lines."""
    until(lambda: record.exists() and record.read_bytes().count(b"\n") >= lines, f"the record has not {lines} lines")


def pgrep(*arguments: str) -> list[str]:
    """Return the numbers of processes."""
    return subprocess.run(["/usr/bin/env", "pgrep", *arguments], stdout=subprocess.PIPE, text=True).stdout.split()


def cells(path: Path) -> dict[tuple[str, str], str]:
    """Return what a record holds; each cell is there once."""
    found = [(c.target, c.case) for c in read(path).cells.values()]
    assert len(found) == len(set(found)) == path.read_bytes().count(b'\n{"type":"cell"')
    return {(c.target, c.case): c.answer or c.status for c in read(path).cells.values()}
