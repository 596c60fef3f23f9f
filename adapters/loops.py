"""Timed loops as code, for reproducers: the same operands, calls and waits as `timing` has (controller side)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.evaluate import RefusedError
from adapters.phrases import Phrases

Barrier = Callable[[Sequence[str]], str]


def timed(phrases: Phrases, barrier: Barrier, asked: Mapping[str, Any], size: int) -> str:
    """Return a timed loop as the worker runs it, with operands of a size; `barrier` writes a wait for values. Raises RefusedError."""
    if phrases.facts.get("untimed"):
        raise RefusedError("NotModelled", phrases.facts["untimed"])
    device, dtype = phrases.argument(asked["device"]), phrases.argument(asked["dtype"])
    shape = f"({size}, {size})"
    if asked["op"] == "to_async":
        return _moved(phrases, barrier, asked, shape, device, dtype)
    value = f"2.0 / {size}" if asked["op"] == "matmul" else "0.5"
    made, left = phrases.phrase("full", [shape, value, dtype, device], {}, prefix="left")
    more, right = phrases.phrase("full", [shape, "3.0", dtype, device], {}, prefix="right")
    call, result = phrases.phrase(asked["op"], ["left", "value"], {}, prefix="call")
    operands = [*made, f"left = {left}", *more, f"right = {right}"]
    names, read, shown = ["left", "right"], [], "returned {returned:.4f} s, "
    if asked["end"] != "barrier":
        other = asked["end"] == "read-other"
        look, corner = phrases.phrase("corner", ["left" if other else "value"], {}, prefix="corner")
        if other:
            operands += [*look, f"other = {corner}"]
            names, look, corner = [*names, "other"], [], "other"
        last, item = phrases.phrase("item", [corner], {}, prefix="item")
        read = [*look, *last, item, "read = time.perf_counter() - started"]
        shown += "read {read:.4f} s, "
    loop = [
        "value = right", "started = time.perf_counter()", f"for _ in range({asked['chain']}):",
        *(f"    {line}" for line in [*call, f"value = {result}"]), "returned = time.perf_counter() - started", *read,
        *barrier(["value"]).splitlines(), "synchronised = time.perf_counter() - started",
        f"print(f'{shown}synchronised {{synchronised:.4f}} s')",
    ]  # fmt: skip
    ready = barrier(names).splitlines()
    return "\n".join([*operands, *ready, f"for _ in range({asked['rounds'] + 1}):", *(f"    {line}" for line in loop)])


def _moved(phrases: Phrases, barrier: Barrier, asked: Mapping[str, Any], shape: str, device: str, dtype: str) -> str:
    made, value = phrases.phrase("full", [shape, "0.5", dtype, phrases.argument(asked["source"])], {}, prefix="left")
    operands = [*made, f"left = {value}"]
    if asked["memory"] != "device":
        more, pinned = phrases.phrase("to_memory", ["left", repr(asked["memory"])], {}, prefix="pinned")
        operands += [*more, f"left = {pinned}"]
    call, result = phrases.phrase("to_async", ["left", device], {}, prefix="call")
    loop = [
        "arrived = []", "started = time.perf_counter()", f"for _ in range({asked['chain']}):",
        *(f"    {line}" for line in [*call, f"arrived.append({result})"]), "returned = time.perf_counter() - started",
        *barrier(["*arrived"]).splitlines(), "synchronised = time.perf_counter() - started",
        "print(f'returned {returned:.4f} s, synchronised {synchronised:.4f} s')",
    ]  # fmt: skip
    ready = barrier(["left"]).splitlines()
    return "\n".join([*operands, *ready, f"for _ in range({asked['rounds'] + 1}):", *(f"    {line}" for line in loop)])
