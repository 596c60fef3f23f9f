"""How a cell looks in every view: its class, mark, word and flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from cases.answers import CLASSES
from cases.judge import STATUSES
from reports.cells import Cell
from reports.matrix import Column, Matrix

#: The class of a cell that holds no behaviour.
NONE = "none"
KINDS = (*CLASSES, NONE)
MARKS: Mapping[str, str] = {"works": "✓", "refuses": "⊘", "wrong": "✗", "neutral": "~", NONE: "·"}
#: For terminals that can't print the others.
PLAIN_MARKS: Mapping[str, str] = {"works": "+", "refuses": "/", "wrong": "X", "neutral": "~", NONE: "."}
#: The words for which a mark alone stands where room is short.
PLAIN_WORDS = ("works", "raises")
SAYS: Mapping[str, str] = {
    "works": "works", "refuses": "refuses", "wrong": "wrong", "neutral": "neither right nor wrong", NONE: "no answer",
}  # fmt: skip
#: What may stand behind a word, and what it says.
FLAGS: Mapping[str, str] = {
    "!": "deviates from what the framework promises",
    "*": "a known deviation",
    "^": "a known deviation that is gone",
    "?": "asked more than once, with different answers",
}
STATUS_SAYS: Mapping[str, str] = {
    "crashed": "the worker died over it", "hung": "no answer within the deadline",
    "not-offered": "the framework has no such concept", "not-applicable": "the target lacks the device role",
    "unavailable": "the target did not start, or not again", "not-modelled": "the simulation cannot express the question",
    "inconclusive": "what was observed doesn't decide", "not-run": "it was not asked",
}  # fmt: skip
#: Parts of words and their short forms; what is still too long is cut.
_SHORT = {
    "not-applicable": "n/a", "not-modelled": "not-mod.", "not-offered": "not-off.", "accelerator": "acc.", "moves-to-": "to-",
    "falls-back-to-": "fell-to-",
}  # fmt: skip


def kind(cell: Cell) -> str:
    """Return the class to show a cell in; a crash or a hang is as wrong as a wrong value."""
    if cell.status in ("crashed", "hung"):
        return "wrong"
    return cell.kind or NONE


def tone(cell: Cell) -> str:
    """Return the name of a cell's colour: the verdict's where it deviates, since a right value can break a promise, else its class's."""
    if deviates(cell) or cell.stale:
        return "deviates"
    return "known" if cell.verdict == "known-deviation" else kind(cell)


def flags(cell: Cell) -> str:
    """Return the flags behind a cell's word."""
    verdict = {"deviates": "!", "known-deviation": "*"}.get(cell.verdict or "", "")
    return verdict + ("^" if cell.stale else "") + ("?" if cell.answers else "")


def deviates(cell: Cell) -> bool:
    """Say whether a cell deviates from its framework's contract; a known deviation does not, nor one that is gone."""
    return cell.verdict == "deviates"


def differs(cells: Iterable[Cell]) -> bool:
    """Say whether targets answer a question differently, or one of them not as its framework promises."""
    cells = list(cells)
    return any(map(flags, cells)) or len({cell.outcome for cell in cells if cell.behaves}) > 1


def differing(matrix: Matrix) -> Matrix:
    """Return the rows that there is something to see in."""
    return matrix.chosen(matrix.columns, [case for case in matrix.rows() if differs(column.cell(case) for column in matrix.columns)])


def shorten(words: Iterable[str], limit: int) -> dict[str, str]:
    """Return a short form of each word, no two alike, of at most `limit` characters where there are that many."""
    short: dict[str, str] = {}
    taken: set[str] = set()
    for word in dict.fromkeys(words):
        short[word] = next(form for form in _forms(word, limit) if form not in taken)
        taken.add(short[word])
    return short


def _forms(word: str, limit: int) -> Iterator[str]:
    """Yield ever less telling short forms of a word."""
    if len(word) <= limit:
        yield word
    text = word
    for long, brief in _SHORT.items():
        text = text.replace(long, brief)
    if limit < 6:  # a code more than a word
        text = text.removeprefix("to-").removesuffix(".")
        if numbered := re.fullmatch(r"([a-z])[a-z]*(\d+)", text):
            yield f"{numbered[1]}{numbered[2]}"[:limit]
        yield text[:limit].rstrip("-.")
        yield text[0] + text.rpartition("-")[2][: limit - 1]
    elif len(text) <= limit:
        yield text
    else:
        yield text[: limit - 1].rstrip("-.") + "."
    for number in count(2):
        yield f"{text[: max(limit - len(str(number)), 1)].rstrip('-.')}{number}"


def meanings(matrix: Matrix) -> dict[str, tuple[str, str]]:
    """Return each outcome that the matrix shows -> its class and what it means."""
    found: dict[str, tuple[str, str]] = {}
    for _, cell in matrix.cells():
        if cell.outcome in found:
            continue
        case = matrix.cases.get(cell.case)
        if cell.outcome in STATUSES:
            found[cell.outcome] = kind(cell), STATUS_SAYS.get(cell.outcome, "")
        elif case is not None and cell.outcome in case.answers.words:
            found[cell.outcome] = case.answers.words[cell.outcome]
        else:
            found[cell.outcome] = kind(cell), "a word of another catalogue"
    order = {outcome: n for n, outcome in enumerate(KINDS)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[1][0], 9)))


def evidence_mark(column: Column, cell: Cell) -> str:
    """Return the first letter of a cell's evidence where it is not what the column's head says."""
    return "" if cell.evidence == column.target.evidence or not cell.behaves else cell.evidence[0]
