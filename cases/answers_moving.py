"""Answers of the area `moving` alone: writes that are seen elsewhere, memory kinds, ordinals, read-back."""

from __future__ import annotations

from cases.answers import (
    ELSEWHERE,
    GARBAGE,
    NEUTRAL,
    RAISES,
    REFUSES,
    WORKS,
    WRONG,
    Inconclusive,
    Vocabulary,
    decide_works,
    refused,
    refused_or_wrong,
)
from cases.reading import Reading


def write_seen(*, copied: bool, by: str = "tensor") -> Vocabulary:
    """Return the answers to "is a write through one name read through another?".

    `copied`: the case asked for a copy, so that a write which is seen is wrong. `by` says whether a
    tensor was written, whose write can be ignored (mark `written`), or the host's own memory.
    """
    words = {
        **RAISES, **GARBAGE,
        "visible": (WRONG if copied else NEUTRAL, "what was written is read"),
        "invisible": (WORKS, "the value is as before the write"),
    }  # fmt: skip
    if by == "tensor":
        words["ignored"] = (WRONG, "no error, and nothing was written")

    def decide(reading: Reading) -> str:
        word = refused(reading)
        if word:
            return word
        written, seen, kept = (reading.right(mark) for mark in ("written", "value", "before"))
        if seen is None or kept is None:
            raise Inconclusive("the values can't be read")
        if written is False:
            return "ignored"
        return "invisible" if kept else "visible" if seen else "garbage"

    return Vocabulary(words, decide)


def _decide_pinned(reading: Reading) -> str:
    word = decide_works(reading)
    if word != "works":
        return word
    return "pins" if reading.value("result").get("memory") == "pinned-host" else "ignored"


#: A move to pinned host memory: the device stays, the memory kind is another one.
PINNED = Vocabulary(
    {
        **RAISES, **GARBAGE, **ELSEWHERE,
        "pins": (WORKS, "the right value in pinned host memory, on the same device"),
        "ignored": (WRONG, "no error, and the memory is of the old kind"),
    },
    _decide_pinned,
)  # fmt: skip


def _decide_number(reading: Reading) -> str:
    if reading.error("result"):
        return "raises"
    number = reading.value("result").get("value")
    return "none" if number is None else "zero" if number == 0 else "another"


#: The ordinal that a device reports.
ORDINAL = Vocabulary(
    {
        "raises": (REFUSES, "the device can't be asked"),
        "zero": (WORKS, "the first of its kind"),
        "none": (WORKS, "no ordinal"),
        "another": (NEUTRAL, "some other number, such as a registry's"),
    },
    _decide_number,
)
#: How many accelerators there are, where they are hidden.
COUNT = Vocabulary(
    {
        "raises": (REFUSES, "asking is an error"),
        "zero": (WORKS, "there is none, and asking is no error"),
        "another": (WRONG, "devices are counted that can't be used"),
    },
    _decide_number,
)


def _decide_counted(reading: Reading) -> str:
    word = _decide_number(reading)
    return "one" if word == "another" and reading.value("result").get("value") == 1 else word


#: How many accelerators there are, where one is shown.
COUNTED = Vocabulary(
    {
        "raises": (REFUSES, "asking is an error"),
        "one": (WORKS, "there is one"),
        "zero": (WRONG, "there is said to be none"),
        "another": (WRONG, "devices are counted that can't be used"),
    },
    _decide_counted,
)


def _decide_made(reading: Reading) -> str:
    return refused_or_wrong(reading) or "works"


#: A value made where only one device can be used: there is nowhere else that it could be.
MADE = Vocabulary({**RAISES, **GARBAGE, "works": (WORKS, "made, with the right value")}, _decide_made)


def _decide_read(reading: Reading) -> str:
    return refused_or_wrong(reading) or "reads"


#: A value brought to plain host data.
READ = Vocabulary({**RAISES, **GARBAGE, "reads": (WORKS, "the right numbers, on the host")}, _decide_read)
