"""The closed sets of answers that cases can have, and how each is decided from a reading.

An answer is one word in one of four classes. A vocabulary decides between its words by the facts
at a case's marks: `result` is the step in question, `value` is what was read of it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cases.reading import Reading

WORKS, REFUSES, WRONG, NEUTRAL = "works", "refuses", "wrong", "neutral"
CLASSES = (WORKS, REFUSES, WRONG, NEUTRAL)


class Inconclusive(Exception):
    """What was observed doesn't decide between the answers; the message says why."""


@dataclass(frozen=True)
class Vocabulary:
    """A closed set of answers: word -> (class, meaning)."""

    words: Mapping[str, tuple[str, str]]
    decide: Callable[[Reading], str]

    def class_of(self, word: str) -> str:
        """Return the class of an answer of this set."""
        return self.words[word][0]


def without(vocabulary: Vocabulary, *words: str) -> Vocabulary:
    """Return the same answers but for some that can't come out for a case."""
    return Vocabulary({word: m for word, m in vocabulary.words.items() if word not in words}, vocabulary.decide)


RAISES = {
    "raises": (REFUSES, "a clean error at the call"),
    "raises-late": (REFUSES, "an error, but only when something waits or looks"),
}
GARBAGE = {"garbage": (WRONG, "a value that is not the right one, and no error")}
ELSEWHERE = {"moves-elsewhere": (WRONG, "the result is on a device that the question doesn't name")}


def refused(reading: Reading) -> str | None:
    """Return the word for an error at the question or later, or None when it went through."""
    if reading.error("result"):
        return "raises"
    return "raises-late" if reading.late_error() else None


def refused_or_wrong(reading: Reading) -> str | None:
    """Return the word for an error or a wrong value, or None when there was neither."""
    wrong = reading.right("value") is False or reading.right("again") is False
    return refused(reading) or ("garbage" if wrong else None)


def role_of(reading: Reading, mark: str = "result") -> Any:
    """Return the role of the device that a value is on, None for a device without one."""
    return reading.value(mark).get("role")


def placed(*roles: str) -> Vocabulary:
    """Return the answers to "where does the result land?" for operands in these roles."""
    moves = {f"moves-to-{r}": (WORKS, f"the right value, on the {r}") for r in roles}

    def decide(reading: Reading) -> str:
        word = refused_or_wrong(reading)
        role = role_of(reading)
        return word or (f"moves-to-{role}" if role in roles else "moves-elsewhere")

    return Vocabulary({**RAISES, **GARBAGE, **ELSEWHERE, **moves}, decide)


def decide_works(reading: Reading) -> str:
    """Return `works` for the right value on the operands' device."""
    word = refused_or_wrong(reading)
    return word or ("works" if at_home(reading) else "moves-elsewhere")


def at_home(reading: Reading) -> bool:
    """Say whether the result is where the question's own operand is (mark `home`)."""
    home = reading.value("home").get("device")
    return home is None or reading.value("result").get("device") == home


#: A control: one device, nothing mixed.
WORKING = Vocabulary({**RAISES, **GARBAGE, **ELSEWHERE, "works": (WORKS, "the right value, on the operands' device")}, decide_works)


def _decide_in_place(reading: Reading) -> str:
    word = refused(reading)
    if word:
        return word
    if not at_home(reading):
        return "moves-elsewhere"
    if reading.right("value") is not False:
        return "writes"
    if not reading.right("before"):
        return "garbage"
    return "writes-copy" if reading.right("copy") else "ignored"


#: An effect on a value: mark `value` reads it expecting the write, `before` expecting none; `copy`, where
#: there is one, reads what came back expecting the write.
IN_PLACE = Vocabulary(
    {
        **RAISES, **GARBAGE, **ELSEWHERE,
        "writes": (WORKS, "the value was changed as asked, where it is"),
        "writes-copy": (WORKS, "what comes back is changed as asked; the value itself is as before"),
        "ignored": (WRONG, "no error, and the value is as before"),
    },
    _decide_in_place,
)  # fmt: skip
#: An effect that gives nothing back but the value itself.
IN_PLACE_ONLY = without(IN_PLACE, "writes-copy")


def _decide_truth(reading: Reading) -> str:
    word = refused(reading)
    if word:
        return word
    right = reading.right("value")
    if right is None:
        raise Inconclusive("the comparison's result can't be read")
    return "says-equal" if right else "says-unequal"


#: Equality of two values that are equal, read as a truth.
TRUTH = Vocabulary(
    {
        **RAISES,
        "says-equal": (WORKS, "the values were compared across the devices"),
        "says-unequal": (WRONG, "equal values are called unequal"),
    },
    _decide_truth,
)


#: What a promotion can do to a right value. `wanted` names the tensor's and the scalar's dtype.
PROMOTIONS = {
    "keeps-dtype": (WORKS, "the right value, in the tensor's dtype"),
    "takes-scalar-dtype": (WORKS, "the right value, in the scalar's dtype"),
    "other-dtype": (NEUTRAL, "the right value, in a dtype that neither operand has"),
    "truncates": (WRONG, "an integer or boolean result: the fraction is lost"),
}


def promotion(*words: str, scalar_on: str | None = None) -> Vocabulary:
    """Return the answers to "which dtype?" for a scalar of another dtype.

    Only the words that can come out: an integer result that is right is impossible where a fraction
    is expected. `scalar_on` is the scalar's role where it isn't the tensor's (mark `home`). Mark
    `scalar` is the scalar where it is a value, which a framework may have narrowed when it made it.
    """
    there = {f"moves-to-{scalar_on}": (NEUTRAL, f"on the {scalar_on}, where only the scalar was")} if scalar_on else {}

    def decide(reading: Reading) -> str:
        word = refused(reading)
        if word:
            return word
        made = reading.value("scalar").get("dtype")
        if made not in (None, reading.wanted["scalar"]):
            raise Inconclusive(f"the scalar was made in {made}, not in {reading.wanted['scalar']}")
        got = str(reading.value("result").get("dtype"))
        if "truncates" in words and got.startswith(("int", "uint", "bool")):
            return "truncates"
        if refused_or_wrong(reading):
            return "garbage"
        if not at_home(reading):
            return f"moves-to-{scalar_on}" if scalar_on and role_of(reading) == scalar_on else "moves-elsewhere"
        names = {reading.wanted["scalar"]: "takes-scalar-dtype", reading.wanted["tensor"]: "keeps-dtype"}
        return names.get(got, "other-dtype")

    return Vocabulary({**RAISES, **GARBAGE, **ELSEWHERE, **there, **{w: PROMOTIONS[w] for w in words}}, decide)


def _decide_move(reading: Reading) -> str:
    word = refused_or_wrong(reading)
    if word:
        return word
    asked = reading.value("asked").get("device") or reading.wanted.get("role")
    got = reading.value("result")
    if asked in (got.get("device"), got.get("role")):
        dtype = reading.wanted.get("dtype")
        return "moves" if dtype in (None, got.get("dtype")) else "other-dtype"
    return "stays" if got.get("role") == reading.wanted.get("from") else "moves-elsewhere"


#: A move: `wanted` names the role to reach, the role it came from, and the dtype to reach.
MOVE = Vocabulary(
    {
        **RAISES, **GARBAGE, **ELSEWHERE,
        "moves": (WORKS, "the right value, on the device asked for"),
        "stays": (WRONG, "no error, and the value is where it was"),
    },
    _decide_move,
)  # fmt: skip
#: A move that names a dtype too.
MOVE_CAST = Vocabulary({**MOVE.words, "other-dtype": (WRONG, "moved, but not in the dtype asked for")}, _decide_move)


def _decide_alias(reading: Reading) -> str:
    word = decide_works(reading)
    if word != "works":
        return word
    facts = reading.value("identity")
    if facts.get("object"):
        return "same-object"
    if facts.get("storage") is None:
        raise Inconclusive("the framework doesn't show whether storage is shared")
    return "shared-storage" if facts["storage"] else "copy"


#: Is what comes back the same value? Mark `identity` compares it with the original.
ALIAS = Vocabulary(
    {
        **RAISES, **GARBAGE, **ELSEWHERE,
        "same-object": (WORKS, "the very object that was put in"),
        "shared-storage": (WORKS, "another object over the same storage"),
        "copy": (WORKS, "storage of its own"),
    },
    _decide_alias,
)  # fmt: skip


def _decide_untouched(reading: Reading) -> str:
    word = refused(reading)
    if word:
        return word
    if reading.value("value").get("device") != reading.value("home").get("device"):
        return "moved"
    return "changed" if reading.right("value") is False else "untouched"


#: The original after a move: mark `value` looks at it again.
UNTOUCHED = Vocabulary(
    {
        **RAISES,
        "untouched": (WORKS, "where it was, as it was"),
        "moved": (WRONG, "the original itself went along"),
        "changed": (WRONG, "the original reads another value"),
    },
    _decide_untouched,
)


def _decide_comparison(reading: Reading) -> str:
    if reading.error("result"):
        return "raises"
    facts = reading.value("result")
    if facts["equal"] != facts["mirrored"]:
        return "asymmetric"
    if not facts["equal"]:
        return "unequal"
    return "equal-other-hash" if facts["hash"] is False else "equal"


#: Two devices compared as values.
COMPARISON = Vocabulary(
    {
        "raises": (REFUSES, "devices can't be compared"),
        "equal": (WORKS, "equal, with the same hash where devices have one"),
        "unequal": (NEUTRAL, "not equal"),
        "equal-other-hash": (WRONG, "equal, yet hashed differently: a dictionary loses it"),
        "asymmetric": (WRONG, "equal in one order only"),
    },
    _decide_comparison,
)


#: What a program gets that asked for a device which isn't there, by the role of what it got.
FALLS_BACK = {
    "host": (WRONG, "silently made on the host"),
    "accelerator": (WRONG, "silently made on another device than the one asked for"),
}


def missing_device(*roles: str) -> Vocabulary:
    """Return the answers to "what comes of a device that is not there?", where these roles are."""

    def decide(reading: Reading) -> str:
        word = refused(reading)
        role = role_of(reading)
        return word or (f"falls-back-to-{role}" if role in roles else "accepted")

    falls = {f"falls-back-to-{role}": FALLS_BACK[role] for role in roles}
    return Vocabulary({**RAISES, **falls, "accepted": (WRONG, "made on a device that isn't there")}, decide)


#: A device that is not there.
MISSING_DEVICE = missing_device("host", "accelerator")


def lands(*roles: str) -> Vocabulary:
    """Return the answers to "where is it created?"."""
    there = {f"on-{r}": (WORKS, f"created on the {r}") for r in roles}

    def decide(reading: Reading) -> str:
        word = refused_or_wrong(reading)
        role = role_of(reading)
        return word or (f"on-{role}" if role in roles else "on-another")

    return Vocabulary({**RAISES, **GARBAGE, **there, "on-another": (WRONG, "created on some other device")}, decide)
