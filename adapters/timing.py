"""The clock of a timed loop: returned against synchronised (worker side).

A loop chains its outputs, since some frameworks synchronise values and not devices, and holds at
most 20 calls: longer queues fill up (JAX's CPU runtime blocks from the 32nd call in flight on).
Sizes come from a fixed ladder; the smallest whose synchronised loop takes `wanted` seconds is used.
"""

from __future__ import annotations

from typing import Any

from .base import Adapter

#: Edge lengths of the square operands.
LADDER = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
#: Seconds of synchronised work that a loop should at least hold.
WANTED = 0.05


def time_loop(adapter: Adapter, op: str, device: Any, dtype: Any, chain: int, rounds: int, end: str) -> dict[str, Any]:
    """Time `rounds` loops of `chain` calls of a binary operation and return the raw times in seconds.

    `end` is what follows the loop: `barrier` (wait for all) or `read` (read one value, then wait).
    Each round gives `returned` (the loop's own time), `read` (for `read`) and `synchronised`; the
    first one compiles and allocates, and is kept apart by whoever reads the times.
    """
    for size in LADDER:
        operands = _operands(adapter, op, size, device, dtype)
        first = _round(adapter, op, operands, chain, end)
        if _round(adapter, op, operands, chain, end)["synchronised"] >= WANTED:
            break
    later = [_round(adapter, op, operands, chain, end) for _ in range(rounds)]
    return {"op": op, "size": size, "chain": chain, "end": end, "rounds": [first, *later]}


def _operands(adapter: Any, op: str, size: int, device: Any, dtype: Any) -> tuple[Any, Any]:
    # A matmul with 1/size everywhere keeps its other operand's values; a sum grows slowly.
    left = adapter.full((size, size), 1.0 / size if op == "matmul" else 0.5, dtype, device)
    right = adapter.full((size, size), 3.0, dtype, device)
    adapter.barrier([left, right])
    return left, right


def _round(adapter: Any, op: str, operands: tuple[Any, Any], chain: int, end: str) -> dict[str, float]:
    call = getattr(adapter, op)
    left, value = operands
    started = adapter.clock()
    for _ in range(chain):
        value = call(left, value)
    times = {"returned": adapter.clock() - started}
    if end == "read":
        adapter.item(adapter.corner(value))
        times["read"] = adapter.clock() - started
    adapter.barrier([value])
    times["synchronised"] = adapter.clock() - started
    return times
