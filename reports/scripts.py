"""The questions in a target's own code, as a page shows them, kept from run to run: writing them takes longer than all else of a page.

What is kept is good for one description of a target and one state of the suite's sources, by whose digests its file is called.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from adapters.reproducer import Reproducer
from adapters.source import UnclearError
from adapters.templates import Templates, book_of
from adapters.wording import sizes
from cases.case import Case
from reports import caches
from reports.cells import Target

_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Script:
    """A complete script, and in which of its lines each step stands."""

    lines: tuple[str, ...]
    at: Mapping[str, int]


class Scripts:
    """The scripts of one target."""

    def __init__(self, target: Target) -> None:
        """Take a target as a record knows it, and read what is kept of it."""
        self._target = target.to_json()
        self._file = _file(self._target)
        self._new = False
        self._kept: dict[str, Script] = _read(self._file)

    def of(self, case: Case, observation: Mapping[str, Any] | None) -> Script:
        """Return a case's script; an observation tells sizes and absent devices. Without the adapter's source it has no lines."""
        key = _key(case, observation or {})
        if key not in self._kept:
            self._kept[key] = self._write(case, observation)
            self._new = True
        return self._kept[key]

    def _write(self, case: Case, observation: Mapping[str, Any] | None) -> Script:
        if self._book is None:
            return Script((), {})
        wire = case.program.wire()
        written = self._book.lines(wire, marks=case.program.marks, environment=case.environment, observation=observation)
        lines = self._book.script(wire, environment=case.environment, lines=written).rstrip().splitlines()
        found: dict[str, int] = {}
        at = 0
        for line in written:
            first = line.code.splitlines()[-1].strip()
            at = next((i for i in range(at, len(lines)) if lines[i].strip() == first), at)
            found[line.step] = at
        return Script(tuple(lines), found)

    @cached_property
    def _book(self) -> Reproducer | Templates | None:
        try:
            return book_of(self._target)
        except UnclearError:
            return None

    def keep(self) -> None:
        """Keep what was written anew, and nothing that other sources wrote; where that can't be, it is written again the next time."""
        if not self._new or self._file is None:
            return
        texts: dict[str, int] = {}
        scripts = {
            key: [[texts.setdefault(line, len(texts)) for line in script.lines], script.at] for key, script in self._kept.items()
        }  # fmt: skip
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps({"texts": list(texts), "scripts": scripts}), encoding="utf-8")
            os.replace(new, self._file)
            for old in self._file.parent.glob("*.json"):
                if not old.name.startswith(_sources()):
                    old.unlink()


def _file(target: Mapping[str, Any]) -> Path | None:
    """Return where a target's scripts are kept; None for an adapter from elsewhere, whose source isn't among the suite's."""
    if target.get("adapter"):
        return None
    digest = hashlib.sha256(json.dumps(target, sort_keys=True).encode("utf-8", "backslashreplace")).hexdigest()
    return caches() / "scripts" / f"{_sources()}-{digest[:16]}.json"


@cache
def _sources() -> str:
    """Return a digest of all that makes a script of a program."""
    digest = hashlib.sha256()
    for path in (*sorted((_ROOT / "adapters").glob("*.py")), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _key(case: Case, observation: Mapping[str, Any]) -> str:
    """Return what a script is written of, beside its target."""
    program = case.program
    told = {"spelled": observation.get("spelled"), "sizes": sizes(observation) if program.timed else None}
    seen = [f"{name}={json.dumps(value, sort_keys=True)}" for name, value in told.items() if value]
    return " ".join([program.digest, case.environment or "", *(f"{name}={step}" for name, step in program.marks.items()), *seen])


def _read(path: Path | None) -> dict[str, Script]:
    """Return what is kept in a file; nothing where it is damaged or not there."""
    try:
        data = json.loads(path.read_bytes()) if path else {"texts": [], "scripts": {}}
        texts = data["texts"]
        return {key: Script(tuple(texts[n] for n in lines), at) for key, (lines, at) in data["scripts"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
