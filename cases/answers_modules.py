"""Answers of the area `modules`: where a module and what it keeps are after a move."""

from __future__ import annotations

from cases.answers import (
    ELSEWHERE,
    GARBAGE,
    NEUTRAL,
    RAISES,
    UNTOUCHED,
    WORKS,
    WRONG,
    Vocabulary,
    lands,
    refused_or_wrong,
    role_of,
    without,
)
from cases.reading import Reading


def moved_module(*, registered: bool) -> Vocabulary:
    """Return the answers to "what is moved when a module is?", told by one of its members.

    Mark `moved` is the member of what came back, `original` that of the module itself, `identity` compares the two modules.
    A member that the framework was told of has to come along; of any other one that is open.
    """

    def decide(reading: Reading) -> str:
        word = refused_or_wrong(reading)
        if word:
            return word
        if role_of(reading, "moved") != "accelerator":
            return "stays" if role_of(reading, "moved") == "host" else "moves-elsewhere"
        if role_of(reading, "original") != "accelerator":
            return "moves-copy"
        return "moves-itself" if reading.value("identity")["object"] else "moves-both"

    words = {
        **RAISES, **GARBAGE, **ELSEWHERE,
        "moves-itself": (WORKS, "the module is moved in place, and it is what comes back"),
        "moves-copy": (WORKS, "another module comes back, and the one that was moved is where it was"),
        "moves-both": (NEUTRAL, "another module comes back, and the one that was moved is there too"),
        "stays": (WRONG if registered else NEUTRAL, "the module was moved, and what it keeps is where it was"),
    }  # fmt: skip
    return Vocabulary(words, decide)


#: A module that was built before something else is changed: mark `value` reads what it keeps.
BUILT = UNTOUCHED
#: The next module, with values that are known.
NEXT = lands("host", "accelerator")
#: The next module, with values of the framework's own.
NEXT_ANEW = without(NEXT, "garbage")
