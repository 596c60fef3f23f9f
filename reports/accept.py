"""Changes that somebody accepted on purpose: a TOML file, each entry with a reason and an end.

    [[accept]]
    case = "moving/no-device/*"           # globs, one or a list
    target = "jax:*"                      # a glob; left out: every target
    kind = ["placement", "commitment"]    # every kind that the change has
    old = "on-host"                       # of the first kind, before and after; globs
    new = "on-accelerator"
    reason = "zeros_like follows its operand now, as documented"
    expires = 2027-03-31                  # or until = "0.11": a version of the framework

An entry that fits nothing any more is stale, and one past its end is void: both are findings.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from cases import catalogue
from reports.changes import Change
from reports.compare import Comparison
from reports.kinds import ALLOW, KINDS
from reports.verbs import ProblemError
from reports.writer import make_folder

#: How long a skeleton's entries hold.
_DAYS = 90
_KEYS = frozenset(("case", "target", "kind", "old", "new", "reason", "expires", "until"))


@dataclass(frozen=True)
class Entry:
    """One change that was accepted."""

    #: The file, and the line that the entry begins on.
    path: Path
    line: int
    cases: tuple[str, ...]
    target: str
    kinds: tuple[str, ...]
    old: str
    new: str
    reason: str
    #: The last day on which it holds, or the version of the framework from which on it doesn't.
    expires: date | None
    until: Version | None

    def concerns(self, target: str, case: str) -> bool:
        """Say whether it is about a cell."""
        return fnmatchcase(target, self.target) and any(fnmatchcase(case, glob) for glob in self.cases)

    def fits(self, change: Change, levels: Mapping[str, str]) -> bool:
        """Say whether it accepts a change: all of it that isn't allowed anyway."""
        kinds = [kind for kind in (change.kind, *change.others) if levels[kind] != ALLOW]
        first = next((d for d in change.differences if d.kind in kinds), None)
        if not change.case or first is None or not set(kinds) <= set(self.kinds) or not self.concerns(change.target, change.case):
            return False
        return fnmatchcase(first.old, self.old) and fnmatchcase(first.new, self.new)

    def over(self, today: date, version: str | None) -> str:
        """Return since when it doesn't hold any more, in words; "" while it does."""
        if self.expires is not None and self.expires < today:
            return f"on {self.expires.isoformat()}"
        try:
            reached = self.until is not None and version is not None and Version(version) >= self.until
        except InvalidVersion:
            reached = False
        return f"with version {self.until}" if reached else ""


def read(path: Path) -> list[Entry]:
    """Read an accept file. Raises ProblemError with file, entry and reason."""
    try:
        text = path.read_text("utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ProblemError(f"the accept file {path} can't be read ({why}); --update writes one") from error
    items = data.get("accept", [])
    if set(data) - {"accept"} or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ProblemError(f"the accept file {path} holds something else than [[accept]] entries")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*accept\s*\]\]", line)]
    found = []
    for number, item in enumerate(items, 1):
        line = lines[number - 1] if len(lines) == len(items) else 1
        try:
            found.append(_entry(path, line, item))
        except _BadError as why:
            raise ProblemError(f"{path}, entry {number} (line {line}): {why}") from why
    return found


class _BadError(Exception):
    pass


def _entry(path: Path, line: int, item: Mapping[str, Any]) -> Entry:
    if strange := set(item) - _KEYS:
        raise _BadError(f"unknown key {min(strange)!r}; there are {', '.join(sorted(_KEYS))}")
    cases, kinds = _texts(item, "case"), _texts(item, "kind")
    for kind in kinds:
        if kind not in KINDS:
            raise _BadError(f"unknown kind {kind!r}; there are {', '.join(KINDS)}")
    words = {key: item.get(key, default) for key, default in (("target", "*"), ("old", None), ("new", None), ("reason", None))}
    for key, value in words.items():
        if not isinstance(value, str) or not value.strip():
            raise _BadError("say why it is accepted, as reason" if key == "reason" else f"{key} wants a text")
    expires, until = item.get("expires"), item.get("until")
    if (expires is None) == (until is None):
        raise _BadError("say when it ends: expires, a date such as 2027-03-31, or until, a version of the framework")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        raise _BadError("expires wants a date without quotes, such as 2027-03-31")
    try:
        version = None if until is None else Version(until)
    except (InvalidVersion, TypeError) as error:
        raise _BadError(f"until wants a version, such as '0.11', not {until!r}") from error
    return Entry(path, line, cases, words["target"], kinds, words["old"], words["new"], words["reason"], expires, version)


def _texts(item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = item.get(key)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise _BadError(f"{key} wants a text, or a list of them")
    return tuple(texts)


def sorted_out(
    comparison: Comparison, entries: Sequence[Entry], levels: Mapping[str, str], today: date
) -> tuple[list[tuple[Change, Entry]], list[tuple[Change, Entry]]]:
    """Return what is accepted, and what entries come to that don't hold any more, each with its entry."""
    versions = {pair.name: pair.new.version for pair in comparison.pairs}
    accepted: list[tuple[Change, Entry]] = []
    void: list[tuple[Change, Entry]] = []
    used: set[int] = set()
    for one in comparison.changes:
        for entry in entries:
            if entry.fits(one, levels):
                used.add(id(entry))
                if not entry.over(today, versions.get(one.target)):
                    accepted.append((one, entry))
                    break
    for entry in entries:
        reached = [None, *(version for target, version in versions.items() if fnmatchcase(target, entry.target))]
        over = next(filter(None, (entry.over(today, version) for version in reached)), "")
        where = f"{', '.join(entry.cases)}: {' and '.join(entry.kinds)}, {entry.old} → {entry.new}"
        if over:
            text = f"{where}: ran out {over}, accepted because {entry.reason}"
            void.append((Change.about("expired", entry.target, text, entry.cases), entry))
        elif id(entry) not in used and (why := _stale(entry, comparison, levels)):
            void.append((Change.about("stale", entry.target, f"{where}: {why}", entry.cases), entry))
    return accepted, void


def _stale(entry: Entry, comparison: Comparison, levels: Mapping[str, str]) -> str:
    """Say why an entry that accepts nothing is stale; "" where what it is about was not compared."""
    if any(entry.fits(one, levels) for one in comparison.changes):
        return "an entry before it accepts the same already"
    if any(entry.concerns(target, case) for target, case in comparison.compared):
        return "no such change is there any more"
    known = {*catalogue(), *(case for _, case in comparison.compared)}
    return "" if any(fnmatchcase(case, glob) for case in known for glob in entry.cases) else "there is no such case"


def skeleton(changes: Iterable[Change], today: date) -> str:
    """Return entries for changes, alike ones together, with a reason to be filled in."""
    groups: dict[tuple[str, tuple[str, ...], str, str], list[str]] = {}
    for one in changes:
        first = one.differences[0]
        groups.setdefault((one.target, (one.kind, *one.others), first.old, first.new), []).append(one.case)
    return "".join("\n" + "\n".join(_written(*group, cases, today)) + "\n" for group, cases in groups.items())


def _written(target: str, kinds: Sequence[str], old: str, new: str, cases: Sequence[str], today: date) -> Iterator[str]:
    yield "[[accept]]"
    yield f"case = {_list(cases)}"
    yield f"target = {_text(target)}"
    yield f"kind = {_list(kinds)}"
    yield f"old = {_text(old)}"
    yield f"new = {_text(new)}"
    yield 'reason = ""  # say why'
    yield f"expires = {(today + timedelta(days=_DAYS)).isoformat()}"


def _list(texts: Sequence[str]) -> str:
    return _text(texts[0]) if len(texts) == 1 else "[\n" + "".join(f"    {_text(text)},\n" for text in texts) + "]"


def _text(text: str) -> str:
    """Return a text as TOML; a glob's own characters stand for themselves, and halves of characters, which TOML can't hold, for any."""
    glob = re.sub("[\ud800-\udfff]", "?", re.sub(r"[\[?*]", lambda found: f"[{found[0]}]", text))
    return json.dumps(glob, ensure_ascii=False).replace("\x7f", "\\u007f")


def append(path: Path, text: str) -> None:
    """Add entries to a file, which may not be there yet. Raises ProblemError."""
    try:
        make_folder(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ProblemError(f"{path} can't be written ({error.strerror or error}); give --accept a path that can") from error
