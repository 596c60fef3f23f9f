"""The kinds of change that the gate tells apart, the most dangerous first, and what each does unless somebody says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: What a kind does: `deny` fails the gate, `warn` is listed, `allow` is counted.
LEVELS = ("deny", "warn", "allow")
DENY, WARN, ALLOW = LEVELS


@dataclass(frozen=True)
class Kind:
    """One kind of change."""

    #: What it is, in a few words.
    says: str
    level: str
    #: What to look at in code that relies on the old answer.
    advice: str


#: In the order in which they name a change that several fit: what goes on without a word stands before what is loud.
KINDS: Mapping[str, Kind] = {
    "silent": Kind("silently wrong now, and not before", DENY, "code that goes through now computes with a wrong value"),
    "crash": Kind("the process dies or never answers", DENY, "no `except` catches it: keep the operation away from the new version"),
    "damage": Kind("operands or the device don't survive a refusal", DENY, "code that catches the error must not go on with the operands"),
    "precision": Kind("the value is right in another precision", DENY, "tolerances, and comparisons with stored results"),
    "placement": Kind("the result is on another device", DENY, "what is done with the result next, and what moves it"),
    "dtype": Kind("the result has another dtype or type", DENY, "memory, precision and promotion in what follows"),
    "memory": Kind("the result is in another kind of memory", DENY, "pinned buffers, copies that should not wait"),
    "aliasing": Kind("storage is shared where it wasn't, or no longer", DENY, "writes to either value, and peak memory"),
    "commitment": Kind("the result is bound to its device, or no longer", DENY, "mixing it with values of other devices"),
    "identity": Kind("another object comes back, or devices compare otherwise", DENY, "`is`, `==`, sets and dictionaries, optimisers"),
    "tightened": Kind("worked before, refused now", DENY, "this raises: move an operand first, or ask for the device by name"),
    "vanished": Kind("answered before, no longer offered", DENY, "the operation, device or dtype is gone"),
    "unmodelled": Kind("answered before, the simulation no longer models it", DENY, "what it does now only a real device can tell"),
    "surfaces": Kind("the error comes at another time", DENY, "where the `try` stands: at the call, or where something waits"),
    "timing": Kind("calls wait where they didn't, or no longer", DENY, "clocks around calls, and what overlaps with them"),
    "error-class": Kind("the error has another class", DENY, "`except` clauses and tests that name the class"),
    "answer": Kind("another answer, which no other kind names", DENY, "what relies on the old answer"),
    "loosened": Kind("refused before, works now", WARN, "code that waits for the error, and tests that expect it"),
    "mended": Kind("silently wrong, dead or damaged before, no longer", WARN, "workarounds that are no longer needed"),
    "error-text": Kind("the text names more or fewer devices, or the operation", WARN, "code that reads the text, and people who do"),
    "warning": Kind("a warning appeared or went", WARN, "a deprecation names what is used next; `-W error` makes it fail"),
    "appeared": Kind("not offered before, answered now", WARN, "what was done instead"),
    "modelled": Kind("the simulation didn't model it before, answered now", WARN, "hold it against a real device's answer"),
    # What keeps answers from being compared.
    "missing": Kind("OLD has an answer, and NEW was not asked", DENY, "run NEW with all the targets and cases of OLD"),
    "incomplete": Kind("a record that was cut short", DENY, "run it again to its end"),
    "evidence": Kind("measured on one side, simulated on the other", DENY, "compare like with like"),
    "machine": Kind("another class of machine", DENY, "run both on one machine"),
    "environment": Kind("variables that may change answers differ", DENY, "run both with the same variables"),
    "incomparable": Kind("OLD doesn't have the question, or asked it otherwise", WARN, "make OLD anew with this suite"),
    "unsettled": Kind("one side doesn't decide, or not always alike", WARN, "ask again, with --repeat, on a quiet machine"),
    # What an accept file holds that doesn't hold any more.
    "stale": Kind("an accepted change that isn't there", DENY, "take the entry out"),
    "expired": Kind("an acceptance that has run out", DENY, "take the entry out, or renew it with a reason"),
}  # fmt: skip
_ORDER = {name: n for n, name in enumerate(KINDS)}


def danger(name: str) -> int:
    """Return a kind's place in the order: the smaller, the more dangerous."""
    return _ORDER[name]


def strictest(levels: list[str]) -> str:
    """Return the strictest of some levels."""
    return min(levels, key=LEVELS.index)
