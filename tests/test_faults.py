"""Whose fault it is: an adapter's own failure is never shown as what the framework refuses. Asked of the dummy."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from adapters.base import NotModelled
from adapters.interpret import run
from cases.lab import Lab, Symbol
from cases.reading import Reading
from tests.dummy import Dummy
from tests.test_interpret import observed, traced


class _Describes(Dummy):
    """Asks a value for what it hasn't."""

    def describe(self, value: Any) -> dict[str, Any]:
        return {"device": value.nothing_of_that_name}


class _Reads(Dummy):
    """Counts where there is nothing to count."""

    def read(self, value: Any) -> Any:
        return [value, *[][0]]


class _Nests(Dummy):
    """Reads rows instead of elements."""

    def read(self, value: Any) -> Any:
        return [super().read(value)] * 2


class _Identifies(Dummy):
    """Calls what can't be called."""

    def identity_of(self, value: Any) -> Any:
        return value.shape()


class _Waits(Dummy):
    """Waits for what isn't there."""

    def barrier(self, values: list[Any]) -> None:
        raise LookupError(len(values))


class _Adds(Dummy):
    """Says a name that nobody gave."""

    def add(self, x: Any, y: Any) -> Any:
        return nobody.add(x, y)  # type: ignore[name-defined]  # noqa: F821  the mistake that is looked for


class _AddsOne(Dummy):
    """Takes other operands than the operation has."""

    def add(self, x: Any) -> Any:  # type: ignore[override]
        return x


def looked(lab: Lab) -> dict[str, Symbol]:
    """Compute, look, compare and wait."""
    x = lab.tensor([2.0, 3.0], lab.device)
    y = lab.attempt.add(x, x)
    return {"result": y, "value": lab.observe(y, [4.0, 6.0]), "identity": lab.attempt.same(x, y)}


@pytest.mark.parametrize(
    ("faulty", "where", "says"),
    [
        (_Describes, "s1", "the adapter can't describe a Tensor: AttributeError: "),
        (_Reads, "value", "the adapter failed in read: IndexError: "),
        (_Nests, "value", "the adapter failed in plain: TypeError: "),
        (_Identifies, "identity", "the adapter failed in identity_of: TypeError: "),
        (_Waits, "drain", "the adapter failed in barrier: LookupError: 2"),
        (_Adds, "result", "the adapter failed in add: NameError: "),
        (_AddsOne, "result", "the adapter failed in operation: TypeError: "),
    ],
)
def test_a_fault_of_the_adapter_is_no_refusal_of_the_framework(faulty: type[Dummy], where: str, says: str) -> None:
    adapter = faulty("accel", Dummy.kinds()["accel"])
    facts = observed(looked, adapter)
    assert facts["steps"].get(where, facts.get(where))["adapter_failed"].startswith(says)
    assert not any("error" in fact for fact in facts["steps"].values())
    program = traced(looked)
    assert Reading(program, run(adapter, program.wire()), {}).unanswerable()[0] == "inconclusive"  # type: ignore[index]


class _Refuses(Dummy):
    """As a compiled framework does it: without a frame of its own."""

    def add(self, x: Any, y: Any) -> Any:  # noqa: ARG002  whatever they are
        raise TypeError("add(): operands on two devices")

    def read(self, value: Any) -> Any:  # noqa: ARG002
        raise RuntimeError("an earlier call failed on dev:0")


def test_what_comes_out_of_a_compiled_framework_is_its_own_error() -> None:
    adapter = _Refuses("accel", Dummy.kinds()["accel"])
    assert observed(looked, adapter)["result"]["error"]["type"] == "TypeError"
    late = observed(lambda lab: {"value": lab.observe(lab.tensor([2.0], lab.device), [2.0])}, adapter)
    assert late["value"]["error"]["text"] == "an earlier call failed on dev:0"


class _MuteError(Exception):
    """An error whose text can't be had."""

    def __str__(self) -> str:
        raise ValueError


class _MuteWarning(UserWarning):
    """A warning whose text can be had once, by Python itself when it is issued."""

    asked = 0

    def __str__(self) -> str:
        self.asked += 1
        if self.asked > 1:
            raise ValueError
        return "slow"


class _Mute(Dummy):
    """Refuses and warns without a text; its adapter looks at texts."""

    def add(self, x: Any, y: Any) -> Any:  # noqa: ARG002
        warnings.warn(_MuteWarning(), stacklevel=1)
        raise _MuteError

    def reinterpret(self, error: Exception) -> Exception:
        return NotModelled("a fake") if "fake" in str(error) else error


def test_an_error_and_a_warning_whose_text_raises_are_told_as_such() -> None:
    fact = observed(looked, _Mute("accel", Dummy.kinds()["accel"]))["result"]
    assert (fact["error"]["type"], fact["error"]["text"]) == ("_MuteError", "(its text can't be had: str() raised ValueError)")
    assert fact["warnings"] == [{"category": "_MuteWarning", "text": "(its text can't be had: str() raised ValueError)"}]
