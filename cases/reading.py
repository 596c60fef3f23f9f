"""Read an observation: what happened at a case's marks, against what the case expects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from cases.lab import Expected, Numbers, Program
from cases.words import MISSING

#: Relative tolerance against a reference computed in double precision: a few units in the last place.
#: Integers and floats of fewer than 16 bits have none: their neighbours are so far apart that a
#: tolerance would take one number for another, and cases ask them for values that they hold exactly.
TOLERANCE: Mapping[str, float] = {
    "float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5, "float16": 4e-3, "complex32": 4e-3,
    "bfloat16": 2e-2,
}  # fmt: skip
#: A product in reduced precision (TF32, bfloat16 passes) is right for its device, and a facet.
REDUCED = 2e-2
#: What a program fills freed memory with, so that memory handed out again is recognised.
SENTINEL = -7777.0


_UNANSWERABLE = {"not_offered": "not-offered", "not_modelled": "not-modelled", "adapter_failed": "inconclusive"}


class Reading:
    """An observation together with the program that it answers."""

    def __init__(self, program: Program, observation: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
        """Take the traced program, what a worker observed, and what the case wants of it."""
        self.program = program
        self.steps: Mapping[str, Any] = observation.get("steps", {})
        self.drain: Any = observation.get("drain")
        #: How a device that isn't there was written: `absent/object` -> expression.
        self.spelled: Mapping[str, str] = observation.get("spelled", {})
        self.wanted = wanted

    def fact(self, mark: str) -> Mapping[str, Any]:
        """Return the fact at a mark; {} when there is no such mark or the step was not reached."""
        found: Mapping[str, Any] = self.steps.get(self.program.marks.get(mark, ""), {})
        return found

    def error(self, mark: str) -> Mapping[str, Any] | None:
        """Return the error at a mark; where the result was not reached, that of the attempt it depends on."""
        fact = self.fact(mark)
        while mark == "result" and "skipped" in fact:
            fact = self.steps.get(fact["skipped"], {})
        found: Mapping[str, Any] | None = fact.get("error")
        return found

    def value(self, mark: str) -> Mapping[str, Any]:
        """Return the facts about the value at a mark."""
        found: Mapping[str, Any] = self.fact(mark).get("value", {})
        return found

    def late_error(self) -> Mapping[str, Any] | None:
        """Return an error that surfaced after the call: where the program looks or waits."""
        for name in self.program.marks:
            error = self.error(name) if name != "result" else None
            if error is not None:
                return error
        drain: Mapping[str, Any] | None = (self.drain or {}).get("error")
        return drain

    def warned(self, mark: str) -> bool:
        """Say whether the framework warned at a mark."""
        return bool(self.fact(mark).get("warnings"))

    def right(self, mark: str) -> bool | None:
        """Say whether the value read at a mark is the expected one; None where it can't be read."""
        return self.step_right(self.program.marks.get(mark, ""))

    def step_right(self, step: str, tolerance: float | None = None) -> bool | None:
        """Say whether an `observe` step read what it must; None where it can't be read."""
        facts = self.steps.get(step, {}).get("value")
        if step not in self.program.expected or facts is None or facts.get("readable") is False:
            return None
        expected = self.program.expected[step]
        if facts["kind"] == "python":
            return agrees(facts["value"], expected, 1e-5)
        got = facts.get("elements")
        if got is None:
            return False
        if elements(expected) != math.prod(facts["shape"]):
            return False
        wanted = list(at_positions(expected, facts["shape"], facts.get("at")))
        slack = TOLERANCE.get(str(facts.get("dtype")), 0.0) if tolerance is None else tolerance
        return len(got) == len(wanted) and all(agrees(g, w, slack) for g, w in zip(got, wanted, strict=True))

    def readable(self) -> bool:
        """Say whether everything that the program looked at could be read."""
        return all(fact.get("value", {}).get("readable", True) for fact in self.steps.values())

    def asks_missing(self) -> bool:
        """Say whether the question is about a device that isn't there."""
        given = (a for s in walk(self.program.steps) for a in [*s.get("args", []), *s.get("kw", {}).values()] if isinstance(a, dict))
        return any(a.get("device") in MISSING for a in given)

    def setup_error(self) -> tuple[str, Mapping[str, Any]] | None:
        """Return the operation and the error of a step that the question needed, and was refused."""
        for step in walk(self.program.steps):
            fact = self.steps.get(step["id"], {})
            if "error" in fact and not step.get("attempt"):
                return step.get("op") or f"scope {step['scope']}", fact["error"]
        return None

    def unanswerable(self) -> tuple[str, str] | None:
        """Return (status, reason) when a step of the question says that it can't be answered."""
        for step in walk(self.program.steps):
            fact = self.steps.get(step["id"], {})
            for key, status in _UNANSWERABLE.items():
                if key in fact and "when" not in step:
                    return status, str(fact[key])
        failed = (self.drain or {}).get("adapter_failed")
        return ("inconclusive", str(failed)) if failed else None


def walk(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield every step, those inside scopes too."""
    for step in steps:
        yield step
        yield from walk(step.get("body", []))


def elements(expected: Expected) -> int:
    """Return how many elements are expected."""
    return expected.count if isinstance(expected, Numbers) else len(flatten(expected))


def at_positions(expected: Expected, shape: list[int], at: list[int] | None) -> Iterator[Any]:
    """Yield the expected elements at the positions that a worker read: all, unless it says which."""
    where = range(math.prod(shape)) if at is None else at
    if isinstance(expected, Numbers):
        yield from (expected.at(i) for i in where)
    else:
        flat = flatten(expected)
        yield from (flat[i] for i in where)


def flatten(values: Any) -> list[Any]:
    """Return the numbers of nested lists."""
    if not isinstance(values, list | tuple):
        return [values]
    found: list[Any] = []
    for item in values:
        if isinstance(item, list | tuple):
            found += flatten(item)
        else:
            found.append(item)
    return found


def agrees(got: Any, expected: Any, tolerance: float) -> bool:
    """Compare one element with its expectation, complex numbers as [real, imaginary]."""
    if isinstance(expected, complex):
        if not isinstance(got, list):
            return False
        return agrees(got[0], expected.real, tolerance) and agrees(got[1], expected.imag, tolerance)
    if isinstance(got, list):
        return agrees(got[0], expected, tolerance) and agrees(got[1], 0.0, tolerance)
    if isinstance(got, str):
        return str(float(expected)) == got
    if isinstance(expected, int) and isinstance(got, int):  # Python integers compare exactly at any width
        return got == expected
    return abs(float(got) - float(expected)) <= tolerance * max(abs(float(expected)), 1.0 if tolerance else 0.0)
