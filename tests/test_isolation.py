"""No program changes the next, and what goes over the wire is plain JSON. Asked of the dummy."""

from __future__ import annotations

import os

import pytest

from adapters.interpret import Malformed, run
from adapters.wire import clean, plain
from cases.lab import Lab, Numbers, Symbol
from tests.dummy import Dummy
from tests.test_interpret import dummy, mixed, observed, traced

# --- no program changes the next -----------------------------------------------------------------


def leak(lab: Lab) -> dict[str, Symbol]:
    """Do what makes the leaking kinds leak."""
    x = lab.full([2, 2], 2.0, lab.accelerator)
    with lab.scope("default-device", lab.accelerator):
        return {"result": lab.attempt.matmul(x, x)}


def where_zeros_land(lab: Lab) -> dict[str, Symbol]:
    """Ask what a leaked default would change."""
    return {"result": lab.attempt.zeros_uncommitted([2])}


def test_a_leaked_default_device_does_not_change_the_next_program(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = dummy("leaks-default-device")
    observed(leak, adapter)
    assert observed(where_zeros_land, adapter)["result"]["value"]["role"] == "host"
    monkeypatch.setattr(Dummy, "reset", lambda _: None)
    observed(leak, adapter)
    assert observed(where_zeros_land, adapter)["result"]["value"]["role"] == "accelerator", "without the reset it would"


def test_a_changed_environment_does_not_reach_the_next_program() -> None:
    before = dict(os.environ)
    adapter = dummy("leaks-environment")
    with adapter.around():
        x = adapter.full([2, 2], 2.0, adapter.dtype("float32"), adapter.device("host"))
        adapter.matmul(x, x)
        assert os.environ.pop("DUMMY_VISIBLE") == "nothing"
    observed(leak, adapter)
    assert dict(os.environ) == before


def test_a_program_that_fails_in_the_interpreter_still_puts_everything_back() -> None:
    adapter = dummy("leaks-default-device")
    bad = {"steps": [*traced(leak).wire()["steps"], {"op": "barrier"}]}
    with pytest.raises(Malformed):
        run(adapter, bad)
    assert observed(where_zeros_land, adapter)["result"]["value"]["role"] == "host"


def test_kinds_do_not_change_one_another() -> None:
    healthy = observed(mixed)["result"]
    for kind in ("moves-to-last", "checks-late", "refuses-everything"):
        observed(mixed, kind)
        assert observed(mixed)["result"] == healthy


# --- what goes over the wire ---------------------------------------------------------------------


def test_numbers_become_plain_json() -> None:
    assert [plain(v) for v in (True, 3, 2.5, 2 + 3j, float("inf"), -float("inf"))] == [True, 3, 2.5, [2.0, 3.0], "inf", "-inf"]
    assert plain(float("nan")) == "nan"
    assert plain(2**63 + 5) == 2**63 + 5


def test_any_text_becomes_one_that_every_json_reader_takes() -> None:
    assert clean("lone \udc80 surrogate") == "lone \\udc80 surrogate"
    assert len(clean("x" * 10_000)) < 2100


def test_complex_and_infinite_values_reach_the_framework() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        z = lab.do.tensor({"data": [2.0, 3.0], "imag": [5.0, -7.0]}, {"dtype": "complex64"}, lab.host)
        return {"complex": lab.observe(z), "infinite": lab.observe(lab.do.tensor({"data": ["inf", 2.0]}, {"dtype": "float32"}, lab.host))}

    facts = observed(trace)
    assert facts["complex"]["value"]["elements"] == [[2.0, 5.0], [3.0, -7.0]]
    assert facts["infinite"]["value"]["elements"] == ["inf", 2.0]


def test_numbers_expected_by_position_are_those_that_are_read() -> None:
    program = traced(lambda lab: {"value": lab.observe(lab.ramp((256, 256), lab.device), Numbers(65536, lambda i: 2.0 + i))})
    facts = run(dummy(), program.wire())["steps"][program.marks["value"]]["value"]
    expected = program.expected[program.marks["value"]]
    assert isinstance(expected, Numbers)
    assert facts["elements"] == [expected.at(i) for i in facts["at"]]
