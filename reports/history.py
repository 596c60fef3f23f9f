"""Answer by version: since which release each question is answered so.

Made of records, one for each release. Answers are derived again from what was observed, all by the same code, and two
releases are compared as the gate compares them.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from cases import catalogue
from reports.cells import Cell, RecordError, Target
from reports.changes import Change, change
from reports.compare import bare
from reports.derive import Side, unchanged
from reports.record import Record, read
from reports.visible import line
from reports.writer import OUT

#: What runs leave, and what comes with the suite.
MADE = OUT / "history"
RECORDED = Path(__file__).parent / "recorded" / "history"


@dataclass(frozen=True)
class Span:
    """Releases in a row that answer alike."""

    outcome: str
    #: The class of the answer; None where there is none.
    kind: str | None
    since: str
    until: str


@dataclass(frozen=True)
class Step:
    """What changed with a release."""

    before: str
    version: str
    change: Change

    @property
    def kinds(self) -> str:
        """Return the kinds of the change, what names it first."""
        return ", ".join((self.change.kind, *self.change.others))

    def told(self) -> str:
        """Return everything that changed: the answers where no difference names them, and each difference by its kind."""
        one = self.change
        plain = [] if one.old == one.new or any(d.what == "answer" for d in one.differences) else [f"{one.old} → {one.new}"]
        return line("; ".join([*plain, *(f"{d.kind}, {d.what}: {d.old} → {d.new}" for d in one.differences)]))


@dataclass(frozen=True)
class Line:
    """One question, over all releases of a target."""

    target: str
    case: str
    cells: tuple[tuple[str, Cell], ...]
    steps: tuple[Step, ...]

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Return what was answered, in order."""
        found: list[Span] = []
        for version, cell in self.cells:
            outcome = " or ".join(cell.answers) or cell.outcome
            if found and found[-1].outcome == outcome:
                found[-1] = Span(outcome, cell.kind, found[-1].since, version)
            else:
                found.append(Span(outcome, cell.kind, version, version))
        return tuple(found)

    @property
    def behaves(self) -> bool:
        """Say whether some release answered."""
        return any(cell.behaves for _, cell in self.cells)

    def told(self) -> str:
        """Return it as a sentence."""
        spans, count = self.spans, len(self.cells)
        seen = f"{count} releases asked, {self.cells[0][0]} to {self.cells[-1][0]}"
        if len(spans) == 1:
            text = f"{spans[0].outcome} in all of them"
        elif len(spans) == 2:
            text = f"{spans[0].outcome} until {spans[0].until}, {spans[1].outcome} since {spans[1].since}"
        else:
            middle = [f"{s.outcome} {f'from {s.since} to {s.until}' if s.since != s.until else f'in {s.since}'}" for s in spans[1:-1]]
            text = f"{spans[0].outcome} until {spans[0].until}, {', '.join(middle)}, {spans[-1].outcome} since {spans[-1].since}"
        facets = [
            f"{d.what}: {d.old} → {d.new} with {step.version}" for step in self.steps for d in step.change.differences
            if d.what != "answer" and step.change.old == step.change.new
        ]  # fmt: skip
        return f"{text}{'; ' + ', '.join(facets) if facets else ''} ({seen})"


@dataclass(frozen=True)
class History:
    """All questions, over all releases."""

    #: Target -> its releases, oldest first.
    releases: Mapping[str, tuple[str, ...]]
    lines: tuple[Line, ...]
    #: What a reader has to know before the first line.
    warnings: tuple[str, ...]

    @property
    def changed(self) -> tuple[Line, ...]:
        """Return the lines of questions that weren't always answered alike."""
        return tuple(one for one in self.lines if one.steps)


def release(target: Target) -> str:
    """Return a target's release, whatever it was built for."""
    return target.version.partition("+")[0]


def build(records: Iterable[Record], targets: Sequence[str] = (), cases: Sequence[str] | None = None) -> History:
    """Return the history that some records tell; of two records of one release the newer counts."""
    found: dict[str, dict[str, tuple[Record, Side]]] = {}
    kept = sorted(records, key=lambda record: record.started)
    for record in kept:
        for target in record.targets.values():
            name = bare(target)
            if target.available and (not targets or name in targets):
                cells = {case: cell for (of, case), cell in record.cells.items() if of == target.name}
                found.setdefault(name, {})[release(target)] = record, Side(target, cells, verdicts=False)
    lines: list[Line] = []
    releases = {}
    for name in sorted(found, key=lambda name: (name.partition(":")[0], name)):
        asked = [(version, side) for version, (_, side) in sorted(found[name].items(), key=lambda item: order(item[0]))]
        releases[name] = tuple(version for version, _ in asked)
        lines += filter(None, (_line(name, case, asked) for case in (catalogue() if cases is None else cases)))
    return History(releases, tuple(lines), tuple(record.warning for record in kept if record.warning))


def _line(name: str, case: str, asked: Sequence[tuple[str, Side]]) -> Line | None:
    """Return a question's line: releases that didn't decide, or were asked otherwise, say nothing."""
    digest = catalogue()[case].program.digest
    cells: list[tuple[str, Cell]] = []
    steps: list[Step] = []
    last: Side | None = None
    for version, side in asked:
        if case not in side.cells or side.cells[case].program != digest:
            continue
        if last is not None and unchanged(last, side, case):  # as most releases do what the one before did
            cells.append((version, cells[-1][1]))
            last = side
            continue
        cell = side.cell(case)
        if not cell.behaves and cell.status != "not-offered":
            continue
        one = change(name, cells[-1][1], cell) if cells else None
        if one is not None and one.kind != "unsettled":
            steps.append(Step(cells[-1][0], version, one))
        cells.append((version, cell))
        last = side
    if not any(cell.behaves for _, cell in cells):
        return None
    return Line(name, case, tuple(cells), tuple(steps))


def order(version: str) -> tuple[int, Any]:
    """Return what versions are sorted by."""
    try:
        return 1, Version(version)
    except InvalidVersion:
        return 0, version


def files(framework: str, folders: Sequence[Path] = (RECORDED, MADE)) -> dict[str, list[Path]]:
    """Return release -> its records, those that came with the suite first."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted((folder / framework).glob("*.jsonl*")) if (folder / framework).is_dir() else ():
            if path.name.endswith((".jsonl", ".jsonl.xz")):
                found.setdefault(path.name.removesuffix(".xz").removesuffix(".jsonl"), []).append(path)
    return found


def recorded(path: Path, framework: str, only: Set[str] | None = None, seen: dict[bytes, Cell] | None = None) -> Record:
    """Read the record of a release, which its file is named after. Raises RecordError, also where it is of something else."""
    record = read(path, only, seen=seen)
    version = path.name.removesuffix(".xz").removesuffix(".jsonl")
    held = [f"{target.framework} {release(target)}" for target in record.targets.values() if target.available]
    if not any(one.partition(" ")[0] == framework and order(one.partition(" ")[2]) == order(version) for one in held):
        what = ", ".join(dict.fromkeys(held)) or "nothing"
        raise RecordError(f"{path} should tell of {framework} {version} and holds {what}; take the file from where it came once more")
    return record


def told(framework: str, case: str) -> Iterator[tuple[str, str]]:
    """Yield each target of a framework with the sentence that tells a case's history, and each record that can't be read with why."""
    wanted = frozenset(filter(None, (case, catalogue()[case].control)))
    records = []
    for paths in files(framework).values():
        for path in paths:
            try:
                records.append(recorded(path, framework, wanted))
            except RecordError as error:
                yield "not told", str(error)
    for one in build(records, cases=[case]).lines:
        if len(one.cells) > 1:
            yield one.target, one.told()


def doubtful(before: Record, now: Record) -> Iterator[tuple[str, str]]:
    """Yield the (target, case) of a release that differ in time from another: a busy machine could have done that, so ask again."""
    names = {bare(target): name for name, target in now.targets.items()}
    for one in build([before, now]).changed:
        if any("timing" in (step.change.kind, *step.change.others) for step in one.steps):
            yield names[one.target], one.case


def keep(record: Path, environment: Path, folder: Path) -> Path:
    """Write a record where it is kept: compressed, without what didn't start, and without paths of this machine. Raises RecordError."""
    header, *lines = record.read_text("utf-8").splitlines(keepends=True)
    facts = json.loads(header)
    facts["targets"] = {name: target for name, target in facts["targets"].items() if target["available"]}
    facts["scope"]["targets"] = [text.partition("@")[0] for text in facts["scope"]["targets"]]
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":")) + "\n" + "".join(lines)
    for word, path in {
        "ENVIRONMENT": environment,
        "PYTHON": sys.base_prefix,
        "SUITE": Path(__file__).parents[1],
        "HOME": Path.home(),
    }.items():
        text = text.replace(json.dumps(str(path))[1:-1], word)
    place = folder / f"{record.name.removesuffix('.jsonl')}.jsonl.xz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place.write_bytes(lzma.compress(text.encode("utf-8", "surrogatepass"), preset=9 | lzma.PRESET_EXTREME))
    except OSError as error:
        raise RecordError(f"{place} can't be written ({error.strerror or error})") from error
    return place
