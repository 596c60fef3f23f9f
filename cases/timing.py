"""Time: when is work really finished? The area `time`.

A loop of calls is timed twice in one go: when it was left, and when all its work was done. What
counts is the one as a part of the other, in each round after the first, so that no machine is too
slow or too fast; what lies between is inconclusive. Nothing else of the run works meanwhile.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cases.answers import GARBAGE, NEUTRAL, REFUSES, WORKS, WRONG, Inconclusive, Vocabulary
from cases.case import case
from cases.lab import Lab, Symbol
from cases.reading import Reading

CHAIN = 20
ROUNDS = 3
#: A call that returned after at most this part of the time didn't wait, one after at least that part did.
AT_MOST, AT_LEAST = 0.5, 0.8
#: The same for moves. One from memory that the device can't read is two copies, and a call that makes the first by itself, in whatever part
#: of the time, returns while the other is still to be made.
MOVED_AT_MOST, MOVED_AT_LEAST = 0.85, 0.95
#: The work of a loop should be so many times what its calls alone cost, before they are said to wait.
WEIGHTY = 5
#: A first time is longer from so many times the later ones on, and alike up to so many; what lies between is noise.
LONGER, ALIKE = 2.0, 1.5
#: The part of a round's whole time below which no difference counts.
SLIGHT = 0.02
#: What one element is after so many calls, from 3: doubled by each product, half a unit more by each sum.
AFTER: Mapping[str, Callable[[int], float]] = {
    "matmul": lambda calls: 3.0 * 2**calls, "add": lambda calls: 3.0 + calls / 2, "to_async": lambda _: 0.5,
}  # fmt: skip
#: Products in reduced precision drift a few per cent in a chain; what was never computed is off by far more.
DRIFT = 0.1

RAISES = {"raises": (REFUSES, "an error in the loop, or where it was waited for")}


def _part(reading: Reading, key: str, at_most: float = AT_MOST, at_least: float = AT_LEAST) -> str | None:
    """Say whether a time is `early` or `late` in each later round; None for anything between."""
    later = reading.value("result")["rounds"][1:]
    parts = [r[key] / r["synchronised"] if r["synchronised"] else 1.0 for r in later]
    return "early" if max(parts) <= at_most else "late" if min(parts) >= at_least else None


def _returned(reading: Reading, at_most: float = AT_MOST, at_least: float = AT_LEAST) -> str:
    """Return `asynchronous` or `synchronous`. Raises Inconclusive."""
    facts = reading.value("result")
    part = _part(reading, "returned", at_most, at_least)
    if part is None:
        raise Inconclusive(f"the loop returned after {_parts(facts, 'returned')} of the time: neither at once nor at the end")
    if part == "late" and facts["work"] < WEIGHTY * facts["idle"]:
        raise Inconclusive("calls with work in them take hardly longer than calls without: they can't be told apart")
    return "asynchronous" if part == "early" else "synchronous"


def _parts(facts: Mapping[str, Any], key: str) -> str:
    return ", ".join(f"{100 * r[key] / r['synchronised']:.0f} %" if r["synchronised"] else "all" for r in facts["rounds"][1:])


def _failed(reading: Reading) -> str | None:
    """Return the word for an error or for a loop that didn't compute what it should."""
    if reading.error("result") or reading.late_error():
        return "raises"
    facts = reading.value("result")
    expected = AFTER[facts["op"]](facts["chain"])
    return None if abs(facts["value"] - expected) <= DRIFT * expected else "garbage"


def _decide_loop(reading: Reading) -> str:
    return _failed(reading) or _returned(reading)


def _decide_transfer(reading: Reading) -> str:
    return _failed(reading) or _returned(reading, MOVED_AT_MOST, MOVED_AT_LEAST)


def _decide_read(reading: Reading) -> str:
    word = _failed(reading)
    if word:
        return word
    if _returned(reading) == "synchronous":
        return "nothing-to-wait-for"
    part = _part(reading, "read")
    if part is None:
        raise Inconclusive(f"the value was read after {_parts(reading.value('result'), 'read')} of the time")
    return "returns-early" if part == "early" else "waits"


LOOP = Vocabulary(
    {
        **RAISES, **GARBAGE,
        "asynchronous": (WORKS, "the calls return while the work is still to be done"),
        "synchronous": (WORKS, "the calls return when the work is done"),
    },
    _decide_loop,
)  # fmt: skip


def _reads(early: tuple[str, str]) -> Vocabulary:
    return Vocabulary(
        {
            **RAISES, **GARBAGE,
            "waits": (WORKS, "the value is there when the queued work is done"),
            "returns-early": early,
            "nothing-to-wait-for": (WORKS, "the calls have done their work when they return"),
        },
        _decide_read,
    )  # fmt: skip


#: Reading what the loop computes, and reading what was there before it.
READ_RESULT = _reads((WRONG, "a value is read before the work behind it is done"))
READ_OTHER = _reads((WORKS, "the value is read while work that it doesn't depend on goes on"))


def _warmed_up(first: float, usual: float, slight: float = 0.0) -> str:
    """Return `longer` or `alike` for a first time against later ones. Raises Inconclusive."""
    if first <= ALIKE * usual or first - usual <= slight:
        return "alike"
    if first >= LONGER * usual:
        return "longer"
    raise Inconclusive(f"the first took {first / usual:.1f} times as long as later ones: neither alike nor twice as long")


def _decide_first_call(reading: Reading) -> str:
    calls = reading.value("result").get("calls", [])
    return _failed(reading) or _warmed_up(calls[0], statistics.median(calls[1:]))


def _decide_first_round(reading: Reading) -> str:
    word = _failed(reading)
    if word or _returned(reading) == "synchronous":
        return word or "nothing-queued"
    first, *later = reading.value("result")["rounds"]
    returned = [r["returned"] for r in later]
    if max(returned) - min(returned) > SLIGHT * max(r["synchronised"] for r in later) and max(returned) > ALIKE * min(returned):
        raise Inconclusive("the later rounds are not alike, so that the first can't be held against them")
    return _warmed_up(first["returned"], max(returned), SLIGHT * max(r["synchronised"] for r in later))


def _warm_up(decide: Callable[[Reading], str], **more: tuple[str, str]) -> Vocabulary:
    words = {
        "longer": (NEUTRAL, "the first takes at least twice as long as later ones do"),
        "alike": (NEUTRAL, "the first takes about as long as later ones do"),
    }
    return Vocabulary({**RAISES, **GARBAGE, **words, **more}, decide)


FIRST_CALL = _warm_up(_decide_first_call)
FIRST_ROUND = _warm_up(
    _decide_first_round, **{"nothing-queued": (NEUTRAL, "the calls have done their work when they return: no queue is made")}
)  # fmt: skip


@dataclass(frozen=True)
class _Timed:
    name: str
    op: str
    end: str
    answers: Vocabulary
    question: str
    why: str
    control: str
    claims: tuple[str, ...]
    #: Ask in a process of its own, in which nothing was computed before.
    fresh: bool = False
    rounds: int = ROUNDS


TIMED = (
    _Timed(
        "loop/matmul", "matmul", "barrier", LOOP, "A loop of matrix products: does it return before its work is done?",
        "A host clock around asynchronous calls measures how fast they are queued: timings look instant.",
        "placement/matmul/device-device", ("D1.23", "D3.15"),
    ),
    _Timed(
        "loop/add", "add", "barrier", LOOP, "A loop of elementwise sums: does it return before its work is done?",
        "A runtime may queue products and compute cheap operations at once.", "placement/add/device-device", (),
    ),
    _Timed(
        "read/result", "matmul", "read", READ_RESULT, "Does reading one value of a result wait for the work behind it?",
        "Printing a loss in each step is a synchronisation in each step.", "time/loop/matmul", ("D1.24",),
    ),
    _Timed(
        "read/other-value", "matmul", "read-other", READ_OTHER, "Does reading a value wait for queued work that it doesn't depend on?",
        "Where devices are queues a read waits for all of it; where values are awaited, for the one alone.", "time/loop/matmul", (),
    ),
    _Timed(
        # Small sums: products may wait for threads, whose time says more of the machine than of the call.
        "first/call", "add", "barrier", FIRST_CALL, "Does the very first call of a process take longer than the next ones?",
        "The first call pays for libraries, kernels and compilation; a benchmark that counts it measures those.",
        "placement/add/device-device", ("D3.16",), fresh=True, rounds=0,
    ),
    _Timed(
        "first/round", "matmul", "barrier", FIRST_ROUND, "Does the first round of a loop take longer to return than later rounds?",
        "A runtime that makes its buffers while it queues returns late in the first round alone.",
        "time/loop/matmul", ("D1.25",), fresh=True,
    ),
)  # fmt: skip


def _register(timed: _Timed) -> None:
    @case(
        f"time/{timed.name}", timed.answers, question=timed.question, why=timed.why, control=timed.control, claims=timed.claims,
        alone=True, fresh=timed.fresh,
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        ask: Callable[..., Symbol] = lab.attempt.time
        return {
            "result": ask(
                op=timed.op, device=lab.device, dtype={"dtype": "float32"}, chain=CHAIN, rounds=timed.rounds, end=timed.end,
                at_most=AT_MOST, at_least=AT_LEAST, weight=WEIGHTY,
            )
        }  # fmt: skip


for _timed in TIMED:
    _register(_timed)


# --- transfers ------------------------------------------------------------------------------------

TRANSFER = Vocabulary(
    {
        **RAISES, **GARBAGE,
        "asynchronous": (WORKS, "the calls return while values are still on their way"),
        "synchronous": (WORKS, "the calls return when the values have arrived"),
    },
    _decide_transfer,
)  # fmt: skip
TRANSFER_WHY = "Input pipelines overlap copies with work: only from memory that the device can read by itself does the call return at once."


def _register_transfer(name: str, memory: str, says: str, control: str) -> None:
    @case(
        f"time/transfer/{name}", TRANSFER,
        question=f"A loop of moves from {says} memory of the host to the accelerator: does it return before they have arrived?",
        why=TRANSFER_WHY, control=control, alone=True,
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        ask: Callable[..., Symbol] = lab.attempt.time
        return {
            "result": ask(
                op="to_async", device=lab.accelerator, source=lab.host, memory=memory, dtype={"dtype": "float32"}, chain=CHAIN,
                rounds=ROUNDS, end="barrier", at_most=AT_MOST, at_least=AT_LEAST, weight=WEIGHTY,
            )
        }  # fmt: skip


_register_transfer("pageable", "device", "pageable", "moving/to-accelerator/object")
_register_transfer("pinned", "pinned-host", "pinned", "moving/to-accelerator/pinned")
