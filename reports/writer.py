"""Write a record: the header at once, each cell as it comes, the footer at the end."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cases import Case, catalogue
from cases.judge import BEHAVIOUR
from reports import SUITE
from reports.cells import SCHEMA, RecordError, Target

#: Where records and pages go unless somebody says otherwise.
OUT = Path(__file__).parent / "out"
#: The record of the run that finished last.
LATEST = OUT / "latest.jsonl"


def now() -> str:
    """Return the present in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_folder(path: Path) -> None:
    """Make the folder that a file is to be in; where more than that is missing the path is more likely mistyped. Raises OSError."""
    if not path.parent.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {path.parent.parent}")
    path.parent.mkdir(exist_ok=True)


def default_path() -> Path:
    """Return a name that no other run has: two runs in one checkout must not share a file."""
    return OUT / f"{stamp()}.jsonl"


def stamp() -> str:
    """Return a name that no other process gives now."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{os.getpid()}"


def case_set(cases: Iterable[Case]) -> str:
    """Return a fingerprint of a set of cases and of what each asks."""
    text = "\n".join(sorted(f"{one.id} {one.program.digest}" for one in cases))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Writer:
    """The one writer of a record. Threads may share it."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Create the file, and its folder, with the header in it. Raises RecordError.

        `header` says what only the run knows: `scope` and `targets`. A record under `reports/out/` is
        what `latest.jsonl` there leads to, once it is closed.
        """
        self.path = path
        self._written: set[tuple[str, str]] = set()
        self._answered: set[tuple[str, str]] = set()
        # A signal handler that closes the record may interrupt the thread that is writing to it.
        self._lock = threading.RLock()
        # Before the file is touched: who interrupts the run now has lost no older record.
        first = {
            "type": "header", "schema": SCHEMA, "suite": SUITE, "started": now(), "scope": header["scope"],
            "case_set": header.get("case_set") or case_set(catalogue().values()),
            "targets": {name: Target.from_json(name, facts).to_json() for name, facts in header["targets"].items()},
        }  # fmt: skip
        try:
            make_folder(path)
            self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            _claim(self._file, path)
            os.ftruncate(self._file, 0)
        except OSError as error:
            raise RecordError(
                f"the record {path} can't be written ({error.strerror or error}); give --record a path in a folder that can"
            ) from error
        self._line(first)

    @property
    def cells(self) -> int:
        """Return how many cells are in the file."""
        return len(self._written)

    @property
    def answered(self) -> int:
        """Return how many of them are behaviour of a target."""
        return len(self._answered)

    def write(self, cell: Mapping[str, Any]) -> None:
        """Write one cell. After the footer nothing is written any more. Raises RecordError."""
        with self._lock:
            if self._file is None:
                return
            self._line(cell)
            key = cell["target"], cell["case"]
            self._written.add(key)
            if cell["status"] in BEHAVIOUR:
                self._answered.add(key)

    def close(self, *, complete: bool, missing: int = 0, why: str = "") -> None:
        """Write the footer: whether all that was selected was asked, how much is missing, and why. Raises RecordError."""
        with self._lock:
            if self._file is None:
                return
            self._line({
                "type": "footer", "complete": complete, "cells": self.cells, "missing": missing, "finished": now(), "why": why
            })  # fmt: skip
            os.close(self._file)
            self._file = None
        if self.path.parent == OUT:
            point(LATEST, self.path)

    def _line(self, line: Mapping[str, Any]) -> None:
        data = as_json(line) + b"\n"
        with self._lock:
            assert self._file is not None, "the record is closed"
            try:
                while data:  # one write, unless the disk is nearly full
                    data = data[os.write(self._file, data) :]
            except OSError as error:
                raise RecordError(f"the record {self.path} can't be written any further ({error.strerror or error})") from error


def as_json(line: Mapping[str, Any]) -> bytes:
    """Return a line that any JSON reader takes: a lone surrogate as an escape, no NaN."""
    try:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a worker of another language may have sent one
        text = json.dumps(_finite(line), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _claim(file: int, path: Path) -> None:
    """Take the file for this run alone, where the system has such locks; it goes with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise RecordError(f"another run is writing to {path}; give this one another --record") from None


def point(link: Path, path: Path) -> None:
    """Make `link` lead to a record in one step, so that a reader sees the old one or the new one."""
    new = link.with_name(f".{link.name}-{os.getpid()}")
    with contextlib.suppress(OSError):  # the record itself is safe, whatever becomes of the short name
        try:
            new.symlink_to(path.name)
        except OSError:  # a system without links
            shutil.copyfile(path, new)
        os.replace(new, link)
