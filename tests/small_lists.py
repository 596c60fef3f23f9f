"""Plain lists as a framework with two devices, and programs of it: what `tests.small_worker` answers with.

It is made from PROTOCOL.md alone and knows nothing of the suite's code. With the name of a fault, the
process's first argument, it breaks one rule of the page.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
WITHOUT_VALUE = {"error", "skipped", "not_offered"}


def broken(*names: str) -> bool:
    """Say whether one of some faults was asked for."""
    return FAULT in names


class RefusedError(Exception):
    """What the framework raises."""


class NotOfferedError(Exception):
    """What the framework has no concept of."""


class MalformedError(Exception):
    """A request that is none."""


# --- the framework -------------------------------------------------------------------------------


class Tensor:
    """A flat list with a shape, a dtype and a device."""

    def __init__(self, flat: list[Any], shape: list[int], dtype: str, device: str) -> None:
        """Keep them."""
        self.flat, self.shape, self.dtype, self.device = flat, shape, dtype, device


DTYPES = ("bool", "complex64", "float32", "int32")
default = "cpu"


def tensor(values: Any, dtype: str, device: str) -> Tensor:
    shape, flat = [], values
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0]
    flat = values
    for _ in shape[1:]:
        flat = [item for row in flat for item in row]
    return Tensor(list(flat), shape, dtype, device)


def full(shape: list[int], value: Any, dtype: str, device: str) -> Tensor:
    count = 1
    for edge in shape:
        count *= edge
    return Tensor([value] * count, shape, dtype, device)


def zeros_uncommitted(shape: list[int]) -> Tensor:
    return full(shape, 0.0, "float32", default)


def add(x: Tensor, y: Tensor) -> Tensor:
    if x.shape != y.shape or x.device != y.device:
        raise RefusedError(f"add: {x.shape} on {x.device} and {y.shape} on {y.device}")
    if broken("dies"):
        os.abort()
    return Tensor([a + b for a, b in zip(x.flat, y.flat, strict=True)], x.shape, x.dtype, x.device)


def corner(x: Tensor) -> Tensor:
    return Tensor(x.flat[:1], [], x.dtype, x.device)


def item(x: Tensor) -> Any:
    return x.flat[0]


OPERATIONS: dict[str, Any] = {f.__name__: f for f in (tensor, full, zeros_uncommitted, add, corner, item)}
HOST = {"name": "cpu", "expression": "'cpu'", "evidence": "measured"}
GPU = {"name": "gpu:0", "expression": "'gpu:0'", "evidence": "simulated"}
DEVICES: dict[str, Any] = {
    "gpu": {"available": True, "roles": {"host": HOST, "accelerator": GPU}},
    "tpu": {"available": False, "why": "no TPU here"},
}

# --- one program ---------------------------------------------------------------------------------


class Run:
    """One program on one device kind."""

    values: dict[str, Any]

    def __init__(self, roles: dict[str, Any]) -> None:
        """Start with nothing known."""
        self.roles = roles
        self.values = KEPT if broken("remembers") else {}
        self.facts: dict[str, Any] = {}
        self.spelled: dict[str, str] = {}
        self.ended = False

    def steps(self, steps: Any) -> None:
        """Run steps in order until one ends the program."""
        if not isinstance(steps, list):
            raise MalformedError("a program without steps")
        for step in steps:
            if not isinstance(step, dict) or not isinstance(step.get("id"), str) or ("op" in step) == ("scope" in step):
                raise MalformedError("a step is an operation or a scope, and has an id")
            fact = self.step(step)
            if fact is None:
                continue
            self.facts[step["id"]] = fact
            ends = "not_offered" in fact and not (broken("goes-on-unoffered") and step.get("attempt"))
            ends = ends or ("error" in fact and (not step.get("attempt") or broken("attempt-ends")) and not broken("goes-on"))
            if (ends and ("when" not in step or broken("probe-ends"))) or (self.ended and not broken("scope-goes-on")):
                self.ended = True
                return

    def step(self, step: dict[str, Any]) -> dict[str, Any] | None:
        """Run one step and return its fact; None for a probe that has no occasion."""
        counts = {"error", "skipped"} if broken("probes-skipped") else {"error", "value"} if broken("always-probes") else {"error"}
        if "when" in step and (broken("never-probes") or not any(self.facts.get(w, {}).keys() & counts for w in step["when"])):
            return None
        without = {"error", "skipped"} if broken("loses-probes") else WITHOUT_VALUE
        for ref in refs([step.get("args", []), *step.get("kw", {}).values()]):
            if self.facts.get(ref, {}).keys() & without:
                if broken("runs-skipped"):
                    return {"error": failure(RefusedError("no operand"))}
                return {"skipped": self.facts[ref].get("skipped", ref) if broken("skips-by-root") else ref}
        try:
            return {"value": self.scope(step) if "scope" in step else self.operation(step)}
        except NotOfferedError as why:
            return {"not_offered": str(why)}
        except RefusedError as error:
            return {"adapter_failed": str(error)} if broken("fails-itself") else {"error": failure(error)}

    def scope(self, step: dict[str, Any]) -> dict[str, Any]:
        """Run a scope's body inside it."""
        global default
        if step["scope"] != "default-device" and not broken("ignores-scope"):
            raise NotOfferedError(f"lists have no {step['scope']}")
        before, told = default, len(self.facts)
        if "args" in step:
            default = self.argument(step["args"][0])
        outer = self.facts
        if broken("hides-body"):
            self.facts = dict(outer)
        try:
            self.steps(step.get("body"))
        finally:
            if broken("hides-body"):
                self.facts = outer
            if not (self.ended and broken("keeps-default")):
                default = before
        why = next((fact["not_offered"] for fact in list(self.facts.values())[told:] if "not_offered" in fact), None)
        if why and not broken("hollow-scopes"):
            raise NotOfferedError(why)
        return {"kind": "none"}

    def operation(self, step: dict[str, Any]) -> dict[str, Any]:
        """Run one operation and return its value."""
        name = step["op"]
        if name == "time":
            return self.time(**{key: self.argument(arg) for key, arg in step["kw"].items()})
        if name == "drop":
            self.argument(step["args"][0])
            del self.values[step["args"][0]["ref"]]
            return {"kind": "none"}
        args = [self.argument(arg) for arg in step.get("args", [])]
        if name in LOOKS:
            found: dict[str, Any] = LOOKS[name](self, step, *args)
            return found
        if name not in OPERATIONS:
            if broken("invents"):
                return {"kind": "none"}
            raise NotOfferedError(f"lists have no {name}")
        self.values[step["id"]] = OPERATIONS[name](*args)
        return self.describe(self.values[step["id"]])

    def argument(self, arg: Any) -> Any:
        """Return a native argument."""
        if isinstance(arg, list):
            return [self.argument(a) for a in arg]
        if not isinstance(arg, dict):
            return arg
        if "ref" in arg:
            if arg["ref"] not in self.values:
                raise MalformedError(f"{arg['ref']} has no value")
            return self.values[arg["ref"]]
        if "device" in arg:
            return self.device(arg["device"], arg.get("spelled", "object"))
        if "dtype" in arg:
            if arg["dtype"] not in DTYPES and not broken("any-dtype"):
                raise NotOfferedError(f"lists have no {arg['dtype']}")
            return arg["dtype"]
        if "data" in arg:
            return data(arg["data"], arg.get("imag"))
        raise MalformedError(f"no argument: {arg}")

    def device(self, name: str, spelled: str) -> str:
        """Return a native device."""
        if name in ("absent", "out-of-range", "misspelt"):
            if not broken("mute-spelling"):
                self.spelled[f"{name}/{spelled}"] = "'gppu'"
            raise RefusedError("no device 'gppu'")
        if name == "device":
            name = "accelerator" if "accelerator" in self.roles else "host"
        if name not in self.roles:
            if broken("peer-is-host"):
                return "cpu"
            raise NotOfferedError(f"no {name} here")
        return str(self.roles[name]["name"])

    def describe(self, value: Any, elements: bool = False) -> dict[str, Any]:
        """Tell what a value is, and its elements if they are asked for."""
        if isinstance(value, str | Buffer):
            return {"kind": "handle", "text": str(value)}
        if not isinstance(value, Tensor):
            return {"kind": "python", "type": type(value).__name__, "value": value}
        role = next((role for role, facts in self.roles.items() if facts["name"] == value.device), None)
        fact = {"kind": "tensor", "device": value.device, "role": role, "dtype": value.dtype, "shape": value.shape}
        if broken("lowercase"):
            fact["device"] = "gpu"
        if broken("no-role"):
            fact["role"] = None
        if elements or broken("reads-everything"):
            where = positions(len(value.flat))
            if broken("reads-the-first"):
                where = where[:16]
            fact["elements"] = [plain(value.flat[i]) for i in where]
            if len(where) < len(value.flat) or broken("always-at"):
                fact["at"] = list(range(len(where))) if broken("says-the-first") else where
            if broken("misreads"):
                fact["elements"] = [plain(x) for x in value.flat[: len(where)]]
        return fact

    def time(self, op: str, device: str, dtype: str, chain: int, rounds: int, **_end: Any) -> dict[str, Any]:
        """Time a loop of sums: lists are synchronous, so that nothing waits at its end."""
        clock, times, calls = time.perf_counter, [], []
        left, start = full([64, 64], 0.5, dtype, device), full([64, 64], 3.0, dtype, device)
        for _i in range(5):
            began = clock()
            value = OPERATIONS[op](left, start)
            calls.append(clock() - began)
        for _i in range(rounds + (0 if broken("forgets-the-first") else 1) if rounds else 0):
            began, value = clock(), start
            for _i in range(chain):
                value = OPERATIONS[op](left, value)
            one = {"returned": clock() - began, "read": clock() - began, "synchronised": clock() - began}
            times.append({**one, "read": 0.0} if broken("reads-before") else one)
        told: dict[str, Any] = {"kind": "times", "op": op, "size": 64, "chain": chain if rounds else 1, "calls": calls}
        told["value"] = 3.0 if broken("computes-nothing") else value.flat[0]
        return {**told, "rounds": times} if rounds or broken("no-rounds-are-some") else told


class Buffer:
    """Host memory."""

    def __init__(self, values: list[Any]) -> None:
        """Keep the numbers."""
        self.values = values

    def __str__(self) -> str:
        return "host memory"


NONE = {"kind": "none"}
KEPT: dict[str, Any] = {}


def keep(run: Run, step: dict[str, Any], value: Any) -> dict[str, Any]:
    run.values[step["id"]] = value
    return run.describe(value)


#: The operations that every worker has.
LOOKS: dict[str, Any] = {
    "observe": lambda run, _step, x: run.describe(x, elements=True),
    "barrier": lambda _run, _step: {"kind": "python", "type": "bool", "value": True} if broken("answers-barrier") else NONE,
    "same": lambda _run, _step, x, y: {"kind": "identity", "object": x is y, "storage": x is y},
    "name": keep,
    "compare": lambda _run, _step, x, y: {
        "kind": "comparison", "equal": x == y, "mirrored": y == x, "hash": hash(x) == hash(y), "texts": [str(x), str(y)],
    },
    "buffer": lambda run, step, values, _alignment, _dtype="float32": keep(run, step, Buffer(values)),
    "write_buffer": lambda _run, _step, buffer, value: buffer.values.__setitem__(slice(None), [value] * len(buffer.values)) or NONE,
}  # fmt: skip


def failure(error: Exception) -> dict[str, Any]:
    text = f"{error}, {time.monotonic()}" if broken("tells-the-time") else str(error)
    return {"type": type(error).__name__, "module": "lists", "bases": [], **({} if broken("wordless") else {"text": text})}


def refs(arg: Any) -> Iterator[str]:
    if isinstance(arg, list):
        for one in arg:
            yield from refs(one)
    elif isinstance(arg, dict) and "ref" in arg:
        yield arg["ref"]


def data(real: Any, imag: Any) -> Any:
    if isinstance(real, list):
        return [data(r, None if imag is None else imag[i]) for i, r in enumerate(real)]
    return float(real) if isinstance(real, str) else real if imag is None else complex(real, imag)


def plain(value: Any) -> Any:
    if isinstance(value, complex):
        return str(value) if broken("complex-is-text") else [value.real, value.imag]
    if isinstance(value, bool):
        return int(value) if broken("truths-are-numbers") else value
    odd = value != value or value in (float("inf"), -float("inf"))
    return str(value) if odd and not broken("writes-nan") else value


def positions(n: int) -> list[int]:
    return list(range(n)) if n <= 64 else sorted({0, n - 1, *((7919 * i * i + 4099 * i) % n for i in range(1, 15))})
