"""The case language: a lab whose operations return symbols, traced once into a neutral program.

A case is a function of a `Lab`. It is never run against a framework: what it does to the lab is
written down, step by step, in static single assignment form. Besides operations there are four
constructs: an *attempt* (a step that may refuse, the program goes on), a *scoped region*, an
*effect* (a step that changes a value or the world) and an *opaque handle* (a device, a host
buffer). Looking is a step of its own: nothing is read that a case doesn't ask for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cases.words import EFFECTS, IMPLIED, LOOKS, OPERATIONS, ROLES, SCOPES, SPELLINGS


class LanguageError(Exception):
    """A case uses the language wrongly; the message says how."""


@dataclass(frozen=True)
class Place:
    """A device in a program: a role, or a device that is missing, and how it is written."""

    name: str
    spelled: str = "object"

    def wire(self) -> dict[str, str]:
        """Return the argument as it goes to a worker."""
        return {"device": self.name, "spelled": self.spelled}

    def as_(self, spelled: str) -> Place:
        """Return the same device, written otherwise."""
        if spelled not in SPELLINGS:
            raise LanguageError(f"no spelling {spelled!r}; there are {', '.join(SPELLINGS)}")
        return Place(self.name, spelled)


@dataclass(frozen=True)
class Symbol:
    """A value that a step will have. It can be passed to later steps and nothing else."""

    id: str


@dataclass(frozen=True)
class Numbers:
    """Many expected elements, by position, without a list of them."""

    count: int
    at: Callable[[int], float]


Expected = Sequence[Any] | float | complex | bool | Numbers


@dataclass
class Program:
    """A traced case: what goes over the wire, and what the case knows about the answer."""

    steps: list[dict[str, Any]]
    #: Names that the vocabulary looks for -> step.
    marks: dict[str, str]
    #: `observe` step -> what it must read.
    expected: dict[str, Expected]
    #: The probes after a refusal: operand observations, and the healthy operation's.
    operands: list[str]
    healthy: str | None
    roles: frozenset[str]
    dtypes: frozenset[str]
    operations: frozenset[str]
    #: Whether a clock is read.
    timed: bool

    def wire(self) -> dict[str, Any]:
        """Return the program as it goes to a worker."""
        return {"steps": self.steps}

    @cached_property
    def asked(self) -> list[dict[str, Any]]:
        """Return the steps that ask, those inside scopes too, without the probes after a refusal."""
        return _asked(self.steps)

    @cached_property
    def digest(self) -> str:
        """Return a fingerprint of what is asked: records with the same one can be compared."""
        text = json.dumps(self.wire(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Operations:
    """The operations as methods: `lab.add(x, y)`, `lab.attempt.add(x, y)`."""

    def __init__(self, lab: Lab, attempt: bool) -> None:
        self._lab = lab
        self._attempt = attempt

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name not in OPERATIONS and name not in LOOKS:
            raise LanguageError(f"no operation {name!r} in the case language")
        return lambda *args, **kw: self._lab.step(name, args, kw, attempt=self._attempt)


class Lab:
    """What a case works with. Devices are `host`, `accelerator`, `peer`, `alias` and `device`."""

    host = Place("host")
    accelerator = Place("accelerator")
    peer = Place("peer")
    alias = Place("alias")
    device = Place("device")

    def __init__(self) -> None:
        """Start an empty program."""
        self._steps: list[dict[str, Any]] = []
        self._block = self._steps
        self._count = 0
        self._expected: dict[str, Expected] = {}
        self._made: dict[str, Expected] = {}
        self._questions: list[str] = []
        #: Operations that may be refused.
        self.attempt = _Operations(self, attempt=True)
        #: Operations that a program can't go on without.
        self.do = _Operations(self, attempt=False)

    # --- steps ----------------------------------------------------------------------------------

    def step(self, op: str, args: Sequence[Any], kw: Mapping[str, Any], *, attempt: bool) -> Symbol:
        """Write down one step."""
        step: dict[str, Any] = {"id": self._next(), "op": op}
        if args:
            step["args"] = [_wire(a) for a in args]
        if kw:
            step["kw"] = {key: _wire(a) for key, a in kw.items()}
        if attempt:
            step["attempt"] = True
            self._questions.append(step["id"])
        if op in EFFECTS:
            self._forget(args if op == "add_out" else args[:1])
        self._block.append(step)
        return Symbol(step["id"])

    def _next(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def _forget(self, changed: Sequence[Any]) -> None:
        for value in changed:
            if isinstance(value, Symbol):
                self._made.pop(value.id, None) if not self._questions else None

    @contextlib.contextmanager
    def scope(self, name: str, *args: Any) -> Iterator[None]:
        """Put the steps inside into a scoped region of the framework."""
        if name not in SCOPES:
            raise LanguageError(f"no scope {name!r}; there are {', '.join(SCOPES)}")
        step: dict[str, Any] = {"id": self._next(), "scope": name, "args": [_wire(a) for a in args], "body": []}
        self._block.append(step)
        outer, self._block = self._block, step["body"]
        yield
        self._block = outer

    # --- looking --------------------------------------------------------------------------------

    def observe(self, value: Symbol, expect: Expected | None = None) -> Symbol:
        """Read a value, waiting for it; `expect` is what it must read, computed on the host."""
        step: dict[str, Any] = {"id": self._next(), "op": "observe", "args": [_wire(value)], "attempt": True}
        self._block.append(step)
        if expect is not None:
            self._expected[step["id"]] = expect
        self._questions.append(step["id"])
        return Symbol(step["id"])

    # --- operands -------------------------------------------------------------------------------

    def tensor(
        self, values: Any, on: Place, dtype: str = "float32", *, imag: Any = None,
        commitment: str = "committed", memory: str = "device", layout: str = "contiguous", alignment: str | None = None,
        shared: bool = False,
    ) -> Symbol:  # fmt: skip
        """Make an operand. A role is not enough to say what it is, so these are its other axes.

        `commitment`: `committed` (an explicit device), `uncommitted` (none said), `scoped` (made under
        a default device). `memory`: `device` or `pinned-host`. `layout`: `contiguous`, `offset-view`
        (storage starts earlier), `expanded` (stride 0), `transposed`. `alignment`: made of host
        memory that is `aligned` to 64 bytes or `misaligned`. `shared`: another name views its storage.
        """
        raw = {"data": values} if imag is None else {"data": values, "imag": imag}
        kind = {"dtype": dtype}
        if alignment is not None:
            value = self.do.from_buffer(self.do.buffer(raw, alignment), on)
        elif layout == "offset-view":
            padded = [_fill(values[0], -7.0), *values]
            value = self.do.tail(self._placed({"data": padded}, kind, on, commitment), 1)
        elif layout == "expanded":
            value = self.do.expand(self._placed({"data": [values[0]]}, kind, on, commitment), [len(values), *_shape(values)[1:]])
        elif layout == "transposed":
            value = self.do.transpose(self._placed({"data": [list(row) for row in zip(*values, strict=True)]}, kind, on, commitment))
        elif layout == "contiguous":
            value = self._placed(raw, kind, on, commitment)
        else:
            raise LanguageError(f"no layout {layout!r}")
        if memory != "device":
            value = self.do.to_memory(value, memory)
        if shared:
            self.do.tail(value, 0)
        self._made[value.id] = values if imag is None else _complex(values, imag)
        return value

    def _placed(self, raw: Any, kind: dict[str, str], on: Place, commitment: str) -> Symbol:
        if commitment == "committed":
            return self.do.tensor(raw, kind, on)
        if commitment == "scoped":
            with self.scope("default-device", on):
                return self.do.tensor_uncommitted(raw, kind)
        if commitment == "uncommitted":
            return self.do.tensor_uncommitted(raw, kind)
        raise LanguageError(f"no commitment {commitment!r}")

    def full(self, shape: Sequence[int], value: float, on: Place, dtype: str = "float32") -> Symbol:
        """Fill a shape with one value."""
        made = self.do.full(list(shape), value, {"dtype": dtype}, on)
        self._made[made.id] = Numbers(_size(shape), lambda _: value)
        return made

    def ramp(self, shape: Sequence[int], on: Place, *, start: int = 2, dtype: str = "float32") -> Symbol:
        """Count upwards, so that each element is another one and none is zero or one."""
        made = self.do.ramp(_size(shape), start, list(shape), {"dtype": dtype}, on)
        self._made[made.id] = Numbers(_size(shape), lambda i: float(start + i))
        return made

    def halves(self, shape: Sequence[int], on: Place) -> Symbol:
        """Make truths, the first half of them true, by a comparison: not every framework has a dtype to make them of."""
        size = _size(shape)
        kind = {"dtype": "float32"}
        counted, middle = self.do.ramp(size, 2, list(shape), kind, on), self.do.full(list(shape), 2 + size / 2, kind, on)
        made = self.do.less(counted, middle)
        self._made[made.id] = Numbers(size, lambda i: i < size / 2)
        return made

    # --- the whole ------------------------------------------------------------------------------

    def program(self, marks: Mapping[str, Symbol]) -> Program:
        """Close the program: after a refusal, look at the operands and try a healthy operation."""
        operands: list[str] = []
        healthy = None
        question = marks.get("result")
        if question is not None and question.id in self._questions:
            # All attempts: where the refused one is an earlier step that the question needs, all marks are skipped.
            when = list(self._questions)
            for made, values in list(self._made.items()):
                look = self._probe("observe", [{"ref": made}], when)
                self._expected[look] = values
                operands.append(look)
            two = self._probe("full", [[2], 3.0, {"dtype": "float32"}, self.device.wire()], when)
            total = self._probe("add", [{"ref": two}, {"ref": two}], when)
            healthy = self._probe("observe", [{"ref": total}], when)
            self._expected[healthy] = [6.0, 6.0]
        # The probes are not part of the question: they neither weaken its evidence nor need a dtype.
        found = _asked(self._steps)
        return Program(
            steps=self._steps,
            marks={name: symbol.id for name, symbol in marks.items()},
            expected=self._expected,
            operands=operands,
            healthy=healthy,
            roles=frozenset(a["device"] for s in found for a in _flat(s) if "device" in a and a["device"] in ROLES)
            | {role for s in found for op, role in IMPLIED.items() if s.get("op") == op},
            dtypes=frozenset(a["dtype"] for s in found for a in _flat(s) if "dtype" in a),
            operations=frozenset(s["op"] for s in found if s.get("op") in OPERATIONS)
            | {s["kw"]["op"] for s in found if s.get("op") == "time"},
            timed=any(s.get("op") == "time" for s in found),
        )

    def _probe(self, op: str, args: list[Any], when: list[str]) -> str:
        step = {"id": self._next(), "op": op, "args": args, "attempt": True, "when": when}
        self._steps.append(step)
        return str(step["id"])


def _wire(arg: Any) -> Any:
    if isinstance(arg, Symbol):
        return {"ref": arg.id}
    if isinstance(arg, Place):
        return arg.wire()
    if isinstance(arg, list | tuple):
        return [_wire(a) for a in arg]
    return arg


def _asked(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [step for step in _walk(steps) if "when" not in step]


def _walk(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield step
        yield from _walk(step.get("body", []))


def _flat(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stack: list[Any] = [step.get("args", []), list(step.get("kw", {}).values())]
    while stack:
        arg = stack.pop()
        if isinstance(arg, list):
            stack.extend(arg)
        elif isinstance(arg, dict):
            yield arg


def _size(shape: Sequence[int]) -> int:
    size = 1
    for edge in shape:
        size *= edge
    return size


def _shape(values: Any) -> list[int]:
    return [len(values), *_shape(values[0])] if isinstance(values, list) else []


def _complex(real: Any, imag: Any) -> Any:
    return [_complex(r, i) for r, i in zip(real, imag, strict=True)] if isinstance(real, list) else complex(real, imag)


def _fill(like: Any, value: float) -> Any:
    return [_fill(item, value) for item in like] if isinstance(like, list) else value
