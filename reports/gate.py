"""The gate: what two records differ in, held against what somebody denies, warns of, allows and has accepted.

It fails closed: what couldn't be compared is a finding too, and where nothing could be, the gate could not do
what was asked (exit status 2).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases import Case, catalogue
from cases.contract import Entry as Promise
from cases.contract import contract_for
from reports.accept import Entry, sorted_out
from reports.changes import Change
from reports.compare import Comparison, Pair, compare
from reports.kinds import ALLOW, DENY, KINDS, LEVELS, WARN, strictest
from reports.record import Record
from reports.verbs import ProblemError

if TYPE_CHECKING:
    from reports.native import Native
    from reports.uses import Pattern, Sources, Use

CLEAN, FOUND = 0, 1
#: Stands for every kind where levels are chosen.
_ALL = "all"
_TABLE = ("tool", "device-semantics", "gate")


@dataclass(frozen=True)
class Settings:
    """What somebody chose; paths are as they can be opened."""

    levels: Mapping[str, str] = field(default_factory=lambda: {name: kind.level for name, kind in KINDS.items()})
    accept: Path | None = None
    uses: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A change that is listed, with all that helps to judge it, which is made when it is told: of many that are alike one is."""

    change: Change
    level: str
    #: The question, whose code can tell it, and what was observed; none about a whole target or record.
    case: Case | None = None
    native: Native | None = None
    observation: Mapping[str, Any] | None = None
    uses: tuple[Use, ...] = ()
    #: The entry of an accept file that it is about.
    entry: Entry | None = None

    @property
    def question(self) -> str:
        """Return what was asked."""
        return self.case.question if self.case else ""

    @property
    def code(self) -> Sequence[str]:
        """Return the question in native code."""
        return self._told[0]

    @property
    def script(self) -> str:
        """Return it as a complete script."""
        return self._told[1]

    @cached_property
    def _told(self) -> tuple[Sequence[str], str]:
        return self.native.script(self.case, self.observation) if self.native and self.case else ((), "")

    @cached_property
    def look_for(self) -> Sequence[str]:
        """Return the expressions to look for."""
        return self._letters("asked")

    @cached_property
    def beside(self) -> Sequence[str]:
        """Return what stands beside them."""
        return self._letters("beside")

    def _letters(self, what: str) -> Sequence[str]:
        from reports.native import letters, plain

        return letters(getattr(self.native, what)(plain(self.case))) if self.native and self.case else ()

    @property
    def promise(self) -> str:
        """Return what the framework promises."""
        return f"{self._promised.strength}: {self._promised.says}" if self._promised else ""

    @property
    def source(self) -> str:
        """Return where it says so."""
        return self._promised.source if self._promised else ""

    @cached_property
    def _promised(self) -> Promise | None:
        if self.native is None or self.case is None:
            return None
        target = self.native.target
        return contract_for(target.framework).promise(self.case.id, target.device, target.version)

    @property
    def used(self) -> bool:
        """Say whether it is surely in somebody's code."""
        return any(use.sure for use in self.uses)


@dataclass(frozen=True)
class Report:
    """What the gate came to."""

    comparison: Comparison
    #: Denied before warned, in somebody's code before not, the most dangerous first.
    findings: tuple[Finding, ...]
    accepted: tuple[tuple[Change, Entry], ...]
    allowed: tuple[Change, ...]
    #: Whether somebody's sources were looked through.
    searched: bool
    records: tuple[Record, Record]
    #: What was chosen of the records: targets, and globs of cases.
    targets: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Return the exit status."""
        return FOUND if any(finding.level == DENY for finding in self.findings) else CLEAN

    @property
    def headline(self) -> str:
        """Return the one sentence that says it all."""
        count = len(self.comparison.compared)
        scope = f"{count} cell{'s'[: count != 1]} compared, {self.comparison.answered} of them answered"
        denied = sum(finding.level == DENY for finding in self.findings)
        rest = [
            (denied, "denied"),
            (len(self.findings) - denied, "to look at"),
            (len(self.accepted), "accepted"),
            (len(self.allowed), "allowed"),
        ]
        told = ", ".join(f"{number} {what}" for number, what in rest if number)
        total = len(self.findings) + len(self.accepted) + len(self.allowed)
        if not total:
            return f"no change: {scope}"
        yours = f", {sum(finding.used for finding in self.findings)} of them in your code" if self.searched else ""
        return f"{total} change{'s'[: total > 1]}{yours}: {told} ({scope})"


def gate(
    old: Record, new: Record, settings: Settings, entries: Sequence[Entry] = (), *, targets: Sequence[str] = (),
    cases: Sequence[str] = (), today: date | None = None,
) -> Report:  # fmt: skip
    """Compare two records and sort out what is found. Raises ProblemError where nothing could be compared."""
    comparison = compare(old, new, targets, cases)
    if not comparison.answered:
        why = "; ".join(f"{one.target}: {one.detail}" if one.target else one.detail for one in comparison.changes if not one.case)
        raise ProblemError(f"nothing could be compared: {why or 'neither record has an answer'}")
    accepted, void = sorted_out(comparison, entries, settings.levels, today or date.today())
    done = {id(one) for one, _ in accepted}
    listed: list[tuple[Change, str, Entry | None]] = []
    allowed = []
    for one, entry in [*((one, None) for one in comparison.changes if id(one) not in done), *void]:
        level = strictest([settings.levels[kind] for kind in (one.kind, *one.others)])
        if level == ALLOW:
            allowed.append(one)
        else:
            listed.append((one, level, entry))
    told = _Told(comparison.pairs, new, settings.uses)
    findings = [told.finding(*item) for item in listed]
    findings.sort(key=lambda finding: (not finding.used, LEVELS.index(finding.level)))
    lists = tuple(findings), tuple(accepted), tuple(allowed)
    return Report(comparison, *lists, bool(settings.uses), (old, new), tuple(targets), tuple(cases))


class _Told:
    """Tells what belongs to a change: question, code, source, and where it is used.

    What reads adapters and sources is fetched when there is a change to tell: mostly there is none.
    """

    def __init__(self, pairs: Iterable[Pair], new: Record, uses: Sequence[Path]) -> None:
        self._targets = {pair.name: pair.new for pair in pairs}
        self._natives: dict[str, Native] = {}
        self._new = new
        self._sources: Sources | None = None
        if uses:
            from reports.uses import Sources

            self._sources = Sources(uses)
        self._found: dict[tuple[object, ...], list[Use]] = {}

    def finding(self, change: Change, level: str, entry: Entry | None) -> Finding:
        """Return a change with all that helps to judge it."""
        one = catalogue().get(change.case)
        if one is None:
            return Finding(change, level, entry=entry)
        native = self._native(change.target)
        uses = tuple(self._uses(native.pattern(one))) if self._sources is not None else ()
        return Finding(change, level, one, native, self._new.cells[native.target.name, one.id].observation, uses)

    def _native(self, target: str) -> Native:
        from reports.native import Native

        if target not in self._natives:
            self._natives[target] = Native(self._targets[target])
        return self._natives[target]

    def _uses(self, pattern: Pattern) -> list[Use]:
        assert self._sources is not None
        if pattern.key not in self._found:
            self._found[pattern.key] = self._sources.uses(pattern)
        return self._found[pattern.key]


# --- settings --------------------------------------------------------------------------------------


def settings(
    config: Path | None, chosen: Iterable[tuple[str, str]] = (), accept: Path | None = None, uses: Sequence[Path] = ()
) -> Settings:
    """Return what a configuration file says, and over it what was chosen: (kind, level), later ones win. Raises ProblemError."""
    table, folder = _table(config)
    levels = {name: kind.level for name, kind in KINDS.items()}
    # What is said of all kinds is said first, so that one of them can be set apart.
    said = sorted(((kind, level) for level in LEVELS for kind in _names(table, level, config)), key=lambda pair: pair[0] != _ALL)
    if twice := {kind for kind, _ in said if sum(kind == other for other, _ in said) > 1}:
        raise ProblemError(f"{config or 'pyproject.toml'}: {min(twice)} has two levels")
    for kind, level in (*said, *chosen):
        if kind not in KINDS and kind != _ALL:
            raise ProblemError(f"there is no kind {kind!r}; there are {', '.join(KINDS)} and {_ALL}")
        levels.update(dict.fromkeys(KINDS if kind == _ALL else [kind], level))
    if accept is None and "accept" in table:
        accept = folder / _name(table, "accept", config)
    return Settings(levels, accept, tuple(uses) or tuple(folder / path for path in _names(table, "uses", config)))


def _table(config: Path | None) -> tuple[Mapping[str, Any], Path]:
    """Return the gate's table of a file, and the folder that its paths start from."""
    path = config or Path("pyproject.toml")
    if config is None and not path.is_file():
        return {}, path.parent
    try:
        data: Any = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProblemError(f"{path} can't be read ({getattr(error, 'strerror', None) or error}); name another file") from error
    table = data
    for key in _TABLE:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not table and path.name != "pyproject.toml":
        table = data  # a file of the gate's own
    if not isinstance(table, dict) or (strange := set(table) - {*LEVELS, "accept", "uses"}):
        what = f"holds {min(strange)!r}" if isinstance(table, dict) else "is no table"
        raise ProblemError(f"{path}: [{'.'.join(_TABLE)}] {what}; it takes {', '.join(LEVELS)}, accept and uses")
    return table, path.parent


def _names(table: Mapping[str, Any], key: str, config: Path | None) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProblemError(f"{config or 'pyproject.toml'}: {key} wants a list of texts")
    return value


def _name(table: Mapping[str, Any], key: str, config: Path | None) -> str:
    value = table[key]
    if not isinstance(value, str):
        raise ProblemError(f"{config or 'pyproject.toml'}: {key} wants a text")
    return value


__all__ = ["CLEAN", "DENY", "FOUND", "WARN", "Finding", "Report", "Settings", "gate", "settings"]
