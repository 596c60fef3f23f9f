"""Two records, target by target and case by case: every change, and everything that couldn't be compared.

Silence means that both sides were asked the same and answered the same. Whatever keeps two cells from being
compared is a change of its own kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from cases import catalogue
from reports.cells import Cell, Target
from reports.changes import Change, change
from reports.derive import Side, unchanged
from reports.kinds import danger

if TYPE_CHECKING:
    from reports.matrix import Column
    from reports.record import Record

#: Facts of a machine that change no answer, and by which runners of one kind differ.
_NO_CLASS = frozenset(("python", "release", "cores", "driver"))
#: Statuses of a cell that was not asked.
_NOT_ASKED = ("not-run", "unavailable")


@dataclass(frozen=True)
class Pair:
    """A target as two records know it."""

    #: Its name, without an interpreter where that is enough, and without labels where each side has another.
    name: str
    old: Target
    new: Target


@dataclass
class Comparison:
    """What two records differ in."""

    #: The most dangerous first.
    changes: list[Change] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    #: (target, case) of each cell that both sides hold, to the same question.
    compared: list[tuple[str, str]] = field(default_factory=list)
    #: How many of them are behaviour on some side.
    answered: int = 0
    #: What a reader should know before the first change, in sentences.
    notes: list[str] = field(default_factory=list)


def compare(old: Record, new: Record, targets: Sequence[str] = (), cases: Sequence[str] = ()) -> Comparison:
    """Compare two records; globs on targets and on cases restrict it."""
    found = Comparison()
    pairs, alone = _pairs(old, new)
    found.pairs = [pair for pair in pairs if _fits((pair.name, pair.old.name, pair.new.name), targets)]
    found.changes += [Change.about("incomplete", "", record.warning) for record in (old, new) if not record.complete]
    found.changes += [one for one in alone if _fits((one.target,), targets)]
    before, after = _by_target(old), _by_target(new)
    for pair in found.pairs:
        sides = [
            Side(target, {case: cell for case, cell in cells.get(target.name, {}).items() if _fits((case,), cases)}, verdicts=False)
            for target, cells in ((pair.old, before), (pair.new, after))
        ]
        found.changes += _provenance(pair, *sides)
        _cells(found, pair, *sides)
    found.changes.sort(key=lambda one: danger(one.kind))
    found.notes += _notes(old, new, found.pairs)
    return found


def _fits(names: Sequence[str], globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for name in names for glob in globs)


def _by_target(record: Record) -> Mapping[str, Mapping[str, Cell]]:
    found: dict[str, dict[str, Cell]] = {}
    for cell in record.cells.values():
        found.setdefault(cell.target, {})[cell.case] = cell
    return found


# --- targets ---------------------------------------------------------------------------------------


def plain(target: Target) -> str:
    """Return a target's name without an interpreter, which is where it is and not what it is."""
    return target.name.partition("@")[0]


def bare(target: Target) -> str:
    """Return a target's name without interpreter and label: framework and device."""
    return plain(target).rpartition("=")[2]


def _pairs(old: Record, new: Record) -> tuple[list[Pair], list[Change]]:
    """Return the targets that are in both records, and a change for each that is in one alone."""
    before = [target for target in old.targets.values() if target.available]
    after = [target for target in new.targets.values() if target.available]
    pairs: list[Pair] = []
    # By the very name; by the name without an interpreter; by framework and device, whatever the label.
    for key in (lambda t: t.name, plain, bare):
        for target in list(before):
            fitting = [other for other in after if key(other) == key(target)]
            if len(fitting) == 1 and sum(key(other) == key(target) for other in before) == 1:
                # Labels such as old and new say which record it is from, and not what it is.
                pairs.append(Pair((bare if key is bare else plain)(fitting[0]), target, fitting[0]))
                before.remove(target)
                after.remove(fitting[0])
    absent = {plain(target): target.why for target in (*old.targets.values(), *new.targets.values()) if not target.available}
    changes = [_alone("missing", target, after, absent.get(plain(target))) for target in before]
    changes += [_alone("incomparable", target, before, absent.get(plain(target))) for target in after]
    order = {name: n for n, name in enumerate(new.targets)}
    names = [pair.name for pair in pairs]
    pairs = [pair if names.count(pair.name) == 1 else Pair(pair.new.name, pair.old, pair.new) for pair in pairs]
    return sorted(pairs, key=lambda pair: order[pair.new.name]), changes


def _alone(kind: str, target: Target, others: Sequence[Target], why: str | None) -> Change:
    other = "NEW" if kind == "missing" else "OLD"
    near = [one.name for one in others if bare(one) == bare(target)]
    text = f"in {other} it didn't start: {why}" if why else f"{other} has no such target"
    if near:
        text = f"it isn't clear which of {other}'s targets it is: {', '.join(near)}; give them labels, as in new=jax:cpu"
    return Change.about(kind, target.name, text)


def _provenance(pair: Pair, old: Side, new: Side) -> Iterator[Change]:
    """Yield what makes the two sides of a target unlike each other beside the version."""
    roles = [
        f"{role} {facts['evidence']} → {pair.new.roles[role]['evidence']}" for role, facts in pair.old.roles.items()
        if role in pair.new.roles and facts["evidence"] != pair.new.roles[role]["evidence"]
    ]  # fmt: skip
    cases = tuple(
        case for case, cell in old.cells.items()
        if case in new.cells and cell.evidence != new.cells[case].evidence and cell.behaves and new.cells[case].behaves
    )  # fmt: skip
    if roles or cases:
        yield Change.about("evidence", pair.name, "; ".join(roles) or f"{len(cases)} answers, such as {cases[0]}", cases)
    machine = [_machine(target) for target in (pair.old, pair.new)]
    if machine[0] != machine[1]:
        yield Change.about("machine", pair.name, _told(*machine))
    if pair.old.environment != pair.new.environment:
        yield Change.about("environment", pair.name, _told(pair.old.environment, pair.new.environment))


def _machine(target: Target) -> Mapping[str, str]:
    facts = {key: value for key, value in target.machine.items() if key not in _NO_CLASS}
    return facts | ({"gpu": target.build["gpu"]} if "gpu" in target.build else {})


def _told(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    keys = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    return "; ".join(f"{key}: {old.get(key, 'not set')} → {new.get(key, 'not set')}" for key in keys)


# --- cells -----------------------------------------------------------------------------------------


def _cells(found: Comparison, pair: Pair, old: Side, new: Side) -> None:
    """Compare every case of a pair."""
    missing: list[str] = []
    incomparable: dict[str, list[str]] = {}
    for case, cell in old.cells.items():
        other = new.cells.get(case)
        if other is None or other.status in _NOT_ASKED:
            if cell.status not in _NOT_ASKED:
                missing.append(case)
        elif cell.status in _NOT_ASKED:
            incomparable.setdefault("OLD wasn't asked", []).append(case)
        elif cell.program != other.program:
            incomparable.setdefault("they were asked otherwise", []).append(case)
        else:
            found.compared.append((pair.name, case))
            found.answered += cell.behaves or other.behaves
            if not unchanged(old, new, case):
                one = change(pair.name, old.cell(case), new.cell(case))
                found.changes += [one] if one else []
    if later := [case for case in new.cells if case not in old.cells]:
        incomparable.setdefault("OLD doesn't have them", []).extend(later)
    if missing:
        found.changes.append(Change.about("missing", pair.name, _counted(missing, "NEW wasn't asked"), tuple(missing)))
    for why, cases in incomparable.items():
        found.changes.append(Change.about("incomparable", pair.name, _counted(cases, why), tuple(cases)))


def columns(here: Column, there: Column, cases: Iterable[str], beside: Set[str]) -> tuple[int, list[Change]]:
    """Compare two targets instead of two versions: how many questions both could be asked, and the differences.

    Kinds in `beside` are left out: between two frameworks they always differ. So is what one of them can't see.
    """
    sides = Side(here.target, here.cells, verdicts=False), Side(there.target, there.cells, verdicts=False)
    own = tuple("accelerator" if "accelerator" in side.target.roles else "host" for side in sides)
    found: list[Change] = []
    compared = 0
    for case in cases:
        digest = catalogue()[case].program.digest if case in catalogue() else None
        if any(case not in side.cells or side.cells[case].program != digest for side in sides):
            continue
        old, new = (side.cell(case) for side in sides)
        if not all(cell.behaves or cell.status == "not-offered" for cell in (old, new)) or not (old.behaves or new.behaves):
            continue  # nothing that a framework does or doesn't
        compared += 1
        one = change(there.key, old, new)
        # Each target's own device is its own, whatever role it has.
        kept = (
            tuple(d for d in one.differences if d.kind not in beside and (d.what != "result.device" or (d.old, d.new) != own))
            if one
            else ()
        )
        if one and kept:
            found.append(replace(one, differences=kept))
    return compared, sorted(found, key=lambda one: danger(one.kind))


def _counted(cases: Sequence[str], why: str) -> str:
    return f"{len(cases)} case{'s'[: len(cases) > 1]}, such as {cases[0]}: {why}"


# --- notes -----------------------------------------------------------------------------------------


def _notes(old: Record, new: Record, pairs: Sequence[Pair]) -> Iterator[str]:
    back = [pair for pair in pairs if _older(pair.new.version, pair.old.version)]
    if back:
        told = ", ".join(f"{pair.name} {pair.old.version} → {pair.new.version}" for pair in back)
        yield f"NEW is the older version ({told}): are the two records swapped?"
    elif new.started < old.started and all(pair.old.version == pair.new.version for pair in pairs):
        yield "NEW was recorded before OLD: are the two records swapped?"
    pythons = {(pair.old.machine.get("python"), pair.new.machine.get("python")) for pair in pairs}
    for before, after in sorted(((str(o), str(n)) for o, n in pythons if o != n)):
        yield f"Python {before} on one side, {after} on the other"
    for pair in pairs:
        if told := _told(pair.old.build, pair.new.build):
            yield f"{pair.name} is built otherwise: {told}"
    if old.suite != new.suite:
        yield f"OLD was made by version {old.suite} of the suite, NEW by {new.suite}; where the question is the same, both are judged anew"


def _older(one: str, other: str) -> bool:
    try:
        return Version(one) < Version(other)
    except InvalidVersion:
        return False
