"""The clock of a timed loop: returned against synchronised (worker side).

A loop chains its outputs, since some frameworks synchronise values and not devices, and holds at
most 20 calls: longer queues fill up (JAX's CPU runtime blocks from the 32nd call in flight on).
Sizes come from a fixed ladder; the smallest is used whose loop holds enough work to tell queueing
from computing. Raw times are all that is returned: what they mean is decided by their ratios, by
whoever reads them.
"""

from __future__ import annotations

from typing import Any

from .base import Adapter, NotOffered

#: Edge lengths of the square operands.
LADDER = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
#: The largest edge for operations that need memory rather than time: 256 MiB for each value in flight.
LARGEST = {"add": 8192, "to_async": 4096}
#: How the work of a loop grows with the edge.
POWER = {"matmul": 3, "add": 2}
#: Seconds of synchronised work that a loop should at least hold.
WANTED = 0.05
#: How often one call is timed: the shortest time is its own, the others are those of a busy machine.
SAMPLES = 5
#: Times WANTED: on a machine so busy that a loop takes that long, a larger one would take minutes.
LONG = 10
#: Calls of a loop on a machine where even a small loop takes so long: threads that wait for one another while others work.
SHORT = 5
#: How often a set of rounds is taken again when they disagree, because something else used the machine.
TRIES = 3


def time_loop(
    adapter: Adapter, op: str, device: Any, dtype: Any, chain: int, rounds: int, end: str, at_most: float, at_least: float,
    weight: float, source: Any = None, memory: str = "device",
) -> dict[str, Any]:  # fmt: skip
    """Time `rounds` loops of `chain` calls of a binary operation and return the raw times in seconds.

    `to_async` is no such operation: a value in this `memory` of the `source` device is moved to the device, again and again.

    `end` is what follows the loop: `barrier` (wait for all), `read` (read one value of the result) or
    `read-other` (read a value that was there before), then wait. Each round gives `returned` (the
    loop's own time), `read` where one was, and `synchronised`; the first one allocates for a whole
    queue, and is kept apart by whoever reads the times. Rounds agree when these times are all at most
    `at_most` or all at least `at_least` of the synchronised one; the loop should take `weight` times
    what its calls alone cost. With no rounds only single calls are timed, at the smallest size.
    """
    for name in (op, "full", "corner", "item", *(["to_memory"] if memory != "device" else [])):
        if not hasattr(adapter, name):
            raise NotOffered(f"{adapter.framework} offers no {name}")
    size: int | None = LADDER[0]
    idle = 0.0
    calls: list[float] = []
    while size is not None:
        operands = _moved(adapter, size, device, dtype, source, memory) if op == "to_async" else _computed(adapter, op, size, device, dtype)
        loop = _Loop(adapter, size, chain, end, *operands)
        samples = loop.calls_alone()
        work = chain * min(samples)
        idle, calls = idle or work, calls or samples
        if not rounds:
            return {"op": op, "size": loop.size, "chain": 1, "calls": calls, "value": loop.value()}
        if work >= weight * idle and (work >= WANTED or chain * max(samples[1:]) >= LONG * WANTED):
            break
        size = _following(op, size, work)
    first = loop.round()
    if first["synchronised"] >= 2 * LONG * WANTED:
        loop.chain = min(chain, SHORT)
        first = loop.round()
    later, tries = _agreeing(loop, rounds, at_most, at_least)
    return {
        "op": op, "size": loop.size, "chain": loop.chain, "end": end, "rounds": [first, *later], "tries": tries,
        # What as many calls take one by one, at this size and at the smallest: what the calls alone cost.
        # `calls` are those at the smallest size, the first call of all at the head; `cold` is the first one at this size.
        "work": work, "idle": idle, "calls": calls, "cold": samples[0], "value": loop.value(),
    }  # fmt: skip


def _following(op: str, size: int, work: float) -> int | None:
    """Return the next size to try; None at the ladder's end.

    A guess from a small size is far off where memory, not arithmetic, takes the time: it aims low first.
    """
    larger = [s for s in LADDER if size < s <= LARGEST.get(op, LADDER[-1])]
    aim = WANTED if work >= WANTED / 4 else WANTED / 4
    enough = [s for s in larger if work * (s / size) ** POWER.get(op, 2) >= aim]
    return enough[0] if enough else larger[-1] if larger else None


def _agreeing(loop: _Loop, rounds: int, at_most: float, at_least: float) -> tuple[list[dict[str, float]], int]:
    """Return a set of rounds that agree, and how many sets it took; the last set where none agrees."""
    tries = 0
    while True:
        tries += 1
        later = [loop.round() for _ in range(rounds)]
        parts = [[r[key] / r["synchronised"] if r["synchronised"] else 1.0 for r in later] for key in later[0] if key != "synchronised"]
        if tries == TRIES or all(max(p) <= at_most or min(p) >= at_least for p in parts):
            return later, tries


def _computed(adapter: Any, op: str, size: int, device: Any, dtype: Any) -> tuple[Any, Any, Any, list[Any]]:
    """Return a call and its operands. Each call changes every element: a product doubles it, a sum adds a half."""
    left = adapter.full((size, size), 2.0 / size if op == "matmul" else 0.5, dtype, device)
    return getattr(adapter, op), left, adapter.full((size, size), 3.0, dtype, device), []


def _moved(adapter: Any, size: int, device: Any, dtype: Any, source: Any, memory: str) -> tuple[Any, Any, Any, list[Any]]:
    """Return a move and its operand. No move hangs on an earlier one, and so all that arrived are kept and waited for."""
    value = adapter.full((size, size), 0.5, dtype, source)
    if memory != "device":
        value = adapter.to_memory(value, memory)
    arrived: list[Any] = []

    def move(left: Any, _: Any) -> Any:
        result = adapter.to_async(left, device)
        arrived.append(result)
        return result

    return move, value, value, arrived


class _Loop:
    """A chain of calls on operands of one size."""

    def __init__(self, adapter: Any, size: int, chain: int, end: str, call: Any, left: Any, start: Any, arrived: list[Any]) -> None:
        self.adapter, self.call, self.chain, self.end = adapter, call, chain, end
        self.size, self.left, self.start, self.arrived = size, left, start, arrived
        self.other = adapter.corner(self.left)
        self.result = self.start
        adapter.barrier([self.left, self.start, self.other])

    def round(self) -> dict[str, float]:
        """Run the loop once, from the start, and return its times."""
        adapter, call, left, value, clock = self.adapter, self.call, self.left, self.start, self.adapter.clock
        self.arrived.clear()
        started = clock()
        for _ in range(self.chain):
            value = call(left, value)
        times = {"returned": clock() - started}
        if self.end != "barrier":
            adapter.item(self.other if self.end == "read-other" else adapter.corner(value))
            times["read"] = clock() - started
        adapter.barrier([value, *self.arrived])
        times["synchronised"] = clock() - started
        self.result = value
        return times

    def calls_alone(self) -> list[float]:
        """Return what single calls take that are waited for."""
        times = []
        for _ in range(SAMPLES):
            self.arrived.clear()
            started = self.adapter.clock()
            self.result = self.call(self.left, self.start)
            self.adapter.barrier([self.result])
            times.append(self.adapter.clock() - started)
        return times

    def value(self) -> float:
        """Return an element of the last round's result: whether anything was computed at all."""
        found = self.adapter.item(self.adapter.corner(self.result))
        return float(getattr(found, "real", found))
