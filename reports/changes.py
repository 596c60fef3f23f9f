"""Two answers to one question, and every kind of difference between them.

The class of the answers decides first (right, refused, silently wrong, dead); within a class the words and the
facets do. Texts are compared by the facts that they hold, and times not at all: what counts is the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cases import catalogue
from cases.answers import REFUSES, WRONG
from cases.judge import first_line
from reports.cells import NOT_MODELLED, UNDECIDED, Cell, decided
from reports.kinds import danger

#: A worker that died or never answered: no class of answers, and worse than any.
DIED = "died"
#: Words of answers that go through, by what a change between two of them is a change of.
_WORDS: Mapping[str, re.Pattern[str]] = {
    "placement": re.compile(r"moves(-to-.+|-elsewhere)?|stays|on-.+|falls-back-to-.+|moved|accepted"),
    "dtype": re.compile(r"(keeps|takes-scalar|other)-dtype|widens|narrows-.+|truncates|(bool|u?int|b?float|complex)[0-9a-z_]*"),
    "memory": re.compile(r"pins"),
    "aliasing": re.compile(r"visible|invisible|writes-copy"),
    "identity": re.compile(r"equal|unequal|equal-other-hash|asymmetric"),
    "timing": re.compile(r"a?synchronous|waits|returns-early|nothing-to-wait-for|longer|alike"),
}
_FACETS: Mapping[str, str] = {
    "result.device": "placement", "result.dtype": "dtype", "result.type": "dtype", "result.weak": "dtype",
    "result.memory": "memory", "result.committed": "commitment",
    "equal": "identity", "mirrored": "identity", "hash": "identity",
    "error.type": "error-class", "error.names": "error-text", "error.operation": "error-text", "error.surfaces": "surfaces",
    "operands": "damage", "device works": "damage", "warnings": "warning",
}  # fmt: skip
#: Facets that are numbers of a machine, and never alike.
_NUMBERS = frozenset(("size", "chain", "rounds"))
#: What a facet is where it isn't said.
_UNSAID: Mapping[str, Any] = {"result.memory": "device", "result.weak": False, "warnings": []}
#: Facets that a worker may not know of: where one side doesn't say it there is nothing to compare.
_OPTIONAL = frozenset(("result.committed",))
#: Kinds that never say what an answer changed in.
_BESIDE = frozenset(("warning", "error-class", "error-text"))
#: What a facet is where one side can't see it, which is no word on what the other has seen.
_UNKNOWN: Mapping[str, str] = {"identity": "unknown", "error.names": "unknown", "operands": "unknown", "value": "not observable"}
_RIGHT, _REDUCED = "right", "right in reduced precision"


@dataclass(frozen=True)
class Difference:
    """One thing that differs between two cells."""

    kind: str
    #: `answer`, or the facet.
    what: str
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """Everything that differs in one cell; without a case, something about a whole target or record."""

    target: str
    case: str
    #: Answers, or statuses.
    old: str
    new: str
    #: The most dangerous first; it names the change.
    differences: tuple[Difference, ...]
    #: What was said with the answers: the error, or why there is none.
    was: str = ""
    now: str = ""
    #: More about it, in a sentence; and, where it is about a whole target, the cases that it concerns.
    detail: str = ""
    cases: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the kind that names the change."""
        return self.differences[0].kind

    @property
    def others(self) -> tuple[str, ...]:
        """Return the other kinds that fit."""
        return tuple(kind for kind in dict.fromkeys(d.kind for d in self.differences) if kind != self.kind)

    @classmethod
    def about(cls, kind: str, target: str, detail: str, cases: tuple[str, ...] = ()) -> Change:
        """Return a change that is about a whole target or record."""
        return cls(target, "", "", "", (Difference(kind, "", "", ""),), detail=detail, cases=cases)


def change(target: str, old: Cell, new: Cell) -> Change | None:
    """Return what differs between two cells; None when nothing does, or when neither holds behaviour."""
    found = sorted(_differences(old, new), key=lambda d: danger(d.kind))
    if not found:
        return None
    bases: Any = (new.error or {}).get("bases")
    caught = [f"`except {d.old}` still catches it" for d in found if d.what == "error.type" and isinstance(bases, list) and d.old in bases]
    return Change(target, old.case, _outcomes(old), _outcomes(new), tuple(found), said(old), said(new), "".join(caught))


def said(cell: Cell) -> str:
    """Return what was said with an answer: the error of a refusal, why there is none, or what was warned of."""
    error = cell.error if "error.type" in cell.facets else None
    if error is not None:
        return f"{error['type']}: {first_line(error['text'])}"
    if not cell.behaves or cell.answer is None:
        return cell.why
    heard = [w for fact in (cell.observation or {}).get("steps", {}).values() for w in fact.get("warnings", ())]
    return f"{heard[0]['category']}: {first_line(heard[0]['text'])}" if heard and "warnings" in cell.facets else ""


def _outcomes(cell: Cell) -> str:
    return " or ".join(cell.answers) if cell.answers else cell.outcome


def _differences(old: Cell, new: Cell) -> Iterator[Difference]:
    if UNDECIDED in (old.status, new.status) and old.behaves != new.behaves:
        yield Difference("unsettled", "answer", _outcomes(old), _outcomes(new))
    elif old.behaves or new.behaves:
        before, after = ({*decided(cell.answers or (cell.outcome,))} for cell in (old, new))
        if max(len(before), len(after)) > 1 and before & after:
            yield Difference("unsettled", "answer", _outcomes(old), _outcomes(new))
            yield from (
                Difference(_worst(old.case, word), "answer", _outcomes(old), word) for word in after - before if _worst(old.case, word)
            )
        else:  # an answer that was never seen before is a change, however often the old one wavered
            yield from _settled(old, new)


def _worst(case: str, word: str) -> str:
    """Return the kind of an answer that came up now and then: only what is silently wrong or kills has one."""
    if word in ("crashed", "hung"):
        return "crash"
    one = catalogue().get(case)
    return "silent" if one is not None and word in one.answers.words and one.answers.class_of(word) == WRONG else ""


def _settled(old: Cell, new: Cell) -> Iterator[Difference]:
    kinds = _kinds(old, new) if old.outcome != new.outcome else {}
    facets = list(_facet_differences(old, new, kinds))
    if old.outcome != new.outcome and not kinds and all(d.kind in _BESIDE for d in facets):
        kinds = {"answer": None}
    yield from (Difference(kind, "answer", old.outcome, new.outcome) for kind in kinds)
    yield from facets


def _class(cell: Cell) -> str:
    return cell.kind or DIED


def _kinds(old: Cell, new: Cell) -> dict[str, None]:
    """Return the kinds of a change from one answer to another; none where only facets can tell."""
    found: list[str] = []
    before = _class(old) if old.behaves else None
    after = _class(new) if new.behaves else None
    # That a simulation doesn't express a question says nothing of the framework.
    appeared = "modelled" if old.status == NOT_MODELLED else "appeared"
    if after is None:
        found = ["unmodelled" if new.status == NOT_MODELLED else "vanished"]
    elif after == DIED:
        found = ["crash", *([appeared] if before is None else [])]
    elif after == WRONG:
        found = ["silent", *{None: [appeared], REFUSES: ["loosened"]}.get(before, _topics(old.outcome, new.outcome))]
    elif before is None:
        found = [appeared]
    elif before == DIED:
        found = ["mended"]
    elif before == WRONG:
        found = ["tightened", "mended"] if after == REFUSES else ["mended"]
    elif before == after == REFUSES:
        found = ["surfaces"] if {old.outcome, new.outcome} == {"raises", "raises-late"} else ["answer"]
    elif REFUSES in (before, after):
        found = ["loosened" if before == REFUSES else "tightened"]
    else:
        found = _topics(old.outcome, new.outcome)
    return dict.fromkeys(found)


def _topics(*words: str) -> list[str]:
    return [kind for kind, pattern in _WORDS.items() if any(pattern.fullmatch(word) for word in words)]


def _facet_differences(old: Cell, new: Cell, kinds: Mapping[str, None]) -> Iterator[Difference]:
    """Yield the facets that differ and that the change of the answer doesn't explain."""
    if not (old.behaves and new.behaves):
        return
    alike = _class(old) == _class(new) or not {REFUSES, DIED} & {_class(old), _class(new)}
    explained = not alike or "mended" in kinds
    surfaces = {old.facets.get("error.surfaces"), new.facets.get("error.surfaces")} - {None}
    same = old.outcome == new.outcome and len(surfaces) < 2
    for facet in dict.fromkeys([*old.facets, *new.facets]):
        if facet in _NUMBERS or (explained and facet != "warnings"):
            continue
        before, after = (_UNSAID.get(facet) if cell.facets.get(facet) is None else cell.facets[facet] for cell in (old, new))
        if facet == "error.type":
            before, after = _qualified(old, new)
        lacking = (before is None) != (after is None)
        if before == after or (lacking and (facet in _OPTIONAL or not same or _probed(facet, before, after))):
            continue
        for kind in _facet_kinds(facet, before, after, same=same):
            yield Difference(kind, facet, shown(before), shown(after))


def _probed(facet: str, *values: Any) -> bool:
    """Say whether only one side had a refusal to probe, and the probes found nothing."""
    return _FACETS.get(facet) == "damage" and not {"damaged", False} & {*values}


def _facet_kinds(facet: str, before: Any, after: Any, *, same: bool) -> tuple[str, ...]:
    if _UNKNOWN.get(facet, object()) in (before, after):
        return ("unsettled",)
    if facet == "identity":
        shares = "none" in (before, after)
        return ("aliasing",) * shares + ("identity",) * ("object" in (before, after) or not shares)
    if facet == "value":
        if {before, after} == {_RIGHT, _REDUCED}:
            return ("precision",)
        if not same:
            return ()  # the answers say it: what a case expects to read is not always what is right
        return ("silent",) if after == "wrong" else ("mended",) if before == "wrong" else ("answer",)
    if (facet == "operands" and after == "intact") or (facet == "device works" and after is True):
        return ("mended",)
    return (_FACETS.get(facet, "answer"),)


def _qualified(old: Cell, new: Cell) -> tuple[Any, Any]:
    """Return the classes of two errors, with their modules where the names alone are alike."""
    before, after = old.facets.get("error.type"), new.facets.get("error.type")
    one, other = old.error or {}, new.error or {}
    if before == after and one.get("module") and other.get("module"):
        return f"{one['module']}.{before}", f"{other['module']}.{after}"
    return before, after


def shown(value: Any) -> str:
    """Return a facet's value as a word."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {None: "none", True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
