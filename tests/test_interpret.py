"""The interpreter: one fact for each step, nothing read unasked, no program changes the next. Asked of the dummy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from adapters.base import NotModelled, positions
from adapters.interpret import Malformed, run
from cases.lab import Lab, Place, Program, Symbol
from tests.dummy import Dummy

Trace = Callable[[Lab], dict[str, Symbol]]


def dummy(kind: str = "accel") -> Dummy:
    """Return a fresh dummy of a kind."""
    return Dummy(kind, Dummy.kinds()[kind])


def traced(trace: Trace) -> Program:
    """Trace a program as a case is traced."""
    lab = Lab()
    return lab.program(trace(lab))


def observed(trace: Trace, kind: str | Dummy = "accel") -> dict[str, Any]:
    """Run a program over the wire's JSON and return the facts at its marks, and the drain's."""
    program = traced(trace)
    adapter = kind if isinstance(kind, Dummy) else dummy(kind)
    observation = json.loads(json.dumps(run(adapter, json.loads(json.dumps(program.wire())))))
    facts = {mark: observation["steps"].get(step) for mark, step in program.marks.items()}
    return {**facts, "drain": observation.get("drain"), "poisoned": observation.get("poisoned", False), "steps": observation["steps"]}


def mixed(lab: Lab) -> dict[str, Symbol]:
    """Add a host vector to an accelerator's."""
    x, y = lab.tensor([2.0, 3.0], lab.host), lab.tensor([5.0, 7.0], lab.accelerator)
    result = lab.attempt.add(x, y)
    return {"result": result, "value": lab.observe(result, [7.0, 10.0]), "x": x}


# --- facts ---------------------------------------------------------------------------------------


def test_a_result_is_described_without_its_elements() -> None:
    facts = observed(lambda lab: {"result": lab.attempt.full([2, 3], 2.5, {"dtype": "float32"}, lab.accelerator)})
    assert facts["result"] == {
        "value": {"kind": "tensor", "device": "dev:0", "role": "accelerator", "dtype": "float32", "shape": [2, 3], "memory": "device"}
    }


def test_how_a_device_that_is_not_there_was_written_is_told() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        place = Place("misspelt", "string")
        return {"named": lab.attempt.name(place), "result": lab.attempt.zeros([2], {"dtype": "float32"}, place)}

    program = traced(trace)
    assert run(dummy(), program.wire())["spelled"] == {"misspelt/string": "'devv:0'"}
    assert "spelled" not in run(dummy(), traced(mixed).wire())


def test_devices_that_can_not_be_hashed_are_compared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fake.Device.__hash__", None)
    adapter = dummy()
    facts = observed(lambda lab: {"result": lab.attempt.compare(lab.do.name(lab.device), lab.do.name(lab.device))}, adapter)
    assert facts["result"]["value"]["hash"] is None
    assert facts["result"]["value"]["equal"]


FULL = {"id": "s1", "op": "full", "args": [[2], 3.0, {"dtype": "float32"}, {"device": "device"}]}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (None, "no steps but None"),
        ([{"op": "barrier"}], "a step without an id"),
        ([{"id": "s1"}], "neither or both of op and scope"),
        ([{"id": "s1", "op": "add", "scope": "inference"}], "neither or both of op and scope"),
        ([{"id": "s1", "scope": "inference"}], "no steps but None"),
        ([{"id": "s1", "scope": "inference", "body": [{"id": "s2"}]}], "'s2' has neither or both"),
        ([FULL, {"id": "s2", "op": "add", "args": [{"ref": "s1"}, {"ref": "s9"}], "attempt": True}], "'s9' has no value"),
        ([FULL, {"id": "s2", "op": "observe", "args": [{"reference": "s1"}], "attempt": True}], "no argument: {'reference': 's1'}"),
        ([FULL, *({"id": f"s{i}", "op": "drop", "args": [{"ref": "s1"}]} for i in (2, 3))], "'s1' has no value"),
    ],
)
def test_what_is_no_program_is_no_refusal_of_the_framework(steps: Any, words: str) -> None:
    with pytest.raises(Malformed, match=re.escape(words)):
        run(dummy(), {"steps": steps})


def test_a_probe_that_is_not_offered_costs_the_probes_that_need_it_and_no_more() -> None:
    gone = {"id": "s1", "op": "zeros", "args": [[2], {"dtype": "float32"}, {"device": "absent"}], "attempt": True}
    probes = [
        {"id": "s2", "op": "levitate", "attempt": True, "when": ["s1"]},
        {"id": "s3", "op": "observe", "args": [{"ref": "s2"}], "attempt": True, "when": ["s1"]},
    ]
    steps = run(dummy(), {"steps": [gone, *probes, {**FULL, "id": "s4"}]})["steps"]
    assert "error" in steps["s1"]
    assert "not_offered" in steps["s2"]
    assert steps["s3"] == {"skipped": "s2"}
    assert steps["s4"]["value"]["kind"] == "tensor"


def test_describing_does_not_wait_and_reading_does() -> None:
    adapter = dummy()

    def queued(lab: Lab) -> dict[str, Symbol]:
        x = lab.full([512, 512], 2.0, lab.accelerator)
        return {"result": lab.attempt.matmul(x, x)}

    program = traced(queued)
    with adapter.around():
        before = adapter.clock()
        x = adapter.full([512, 512], 2.0, adapter.dtype("float32"), adapter.device("accelerator"))
        adapter.describe(adapter.matmul(x, x))
        described = adapter.clock()
        adapter.read(adapter.matmul(x, x))
        read = adapter.clock()
    assert described - before < 1e-4 < 0.1 < read - described
    assert "drain" not in run(adapter, program.wire())


def test_small_values_are_read_whole_and_large_ones_at_spread_positions() -> None:
    facts = observed(
        lambda lab: {
            "small": lab.observe(lab.ramp((3,), lab.device)),
            "large": lab.observe(lab.ramp((256, 256), lab.device)),
        }
    )
    assert facts["small"]["value"]["elements"] == [2.0, 3.0, 4.0]
    large = facts["large"]["value"]
    assert large["at"] == positions(65536)
    assert large["elements"] == [2.0 + i for i in large["at"]]
    assert {0, 65535} < set(large["at"])
    assert len(large["at"]) == 16


def test_an_error_says_type_module_bases_and_text() -> None:
    error = observed(mixed)["result"]["error"]
    assert error["type"] == "DeviceError"
    assert (error["module"], error["bases"]) == ("tests.fake", [])
    assert error["text"] == "add: operands are on host and on dev:0; move one of them first"


def test_what_depends_on_a_refused_step_is_skipped_and_says_for_which() -> None:
    program = traced(mixed)
    facts = run(dummy(), program.wire())["steps"]
    assert facts[program.marks["value"]] == {"skipped": program.marks["result"]}


def test_a_step_that_is_no_attempt_ends_the_program() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.do.add(lab.tensor([2.0, 3.0], lab.host), lab.tensor([2.0, 3.0], lab.accelerator))
        return {"x": x, "after": lab.attempt.sum(lab.tensor([2.0], lab.host))}

    facts = observed(trace)
    assert "error" in facts["x"]
    assert facts["after"] is None


def test_the_probes_run_after_a_refusal_and_not_otherwise() -> None:
    program = traced(mixed)
    for kind, ran in (("accel", True), ("moves-to-last", False)):
        facts = run(dummy(kind), program.wire())["steps"]
        assert {step in facts for step in [*program.operands, program.healthy]} == {ran}, kind


def test_an_operation_that_the_framework_lacks_ends_the_program_as_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Dummy, "add")
    assert observed(mixed)["result"] == {"not_offered": "dummy offers no add"}
    assert observed(mixed)["value"] is None


def test_no_method_of_the_adapter_itself_can_be_asked_as_an_operation() -> None:
    facts = run(dummy(), {"steps": [{"id": "s1", "op": "reset", "attempt": True}]})["steps"]
    assert facts == {"s1": {"not_offered": "dummy offers no reset"}}


def test_a_dtype_that_the_framework_lacks_is_not_offered() -> None:
    facts = observed(lambda lab: {"result": lab.attempt.zeros([2], {"dtype": "float3"}, lab.host)})
    assert facts["result"] == {"not_offered": "dummy has no dtype float3"}


def test_a_value_that_a_simulation_does_not_hold_is_described_and_not_readable() -> None:
    facts = observed(lambda lab: {"value": lab.observe(lab.tensor([2.0], lab.device), [2.0])}, "data-less")["value"]["value"]
    assert (facts["readable"], facts["why"], facts["dtype"]) == (False, "data-less devices hold no values", "float32")


def test_a_simulations_own_failure_is_not_shown_as_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dummy, "reinterpret", lambda *_: NotModelled("the build can't"))
    assert observed(mixed)["result"] == {"not_modelled": "the build can't"}


def test_warnings_are_facts_of_their_step_each_text_once() -> None:
    facts = observed(lambda lab: {"result": lab.attempt.zeros([2], {"dtype": "float64"}, lab.accelerator)}, "accel")
    assert "warnings" not in facts["result"]

    def wide(lab: Lab) -> dict[str, Symbol]:
        return {"result": lab.attempt.tensor({"data": [2.0]}, {"dtype": "float64"}, lab.accelerator)}

    warned = observed(wide, "narrows-with-warning-uploading")["result"]
    assert warned["warnings"] == [{"category": "UserWarning", "text": "float64 is not available on dev:0: float32 is used"}]
    assert warned["value"]["dtype"] == "float32"


def test_a_late_error_is_drained_so_that_the_next_program_is_not_blamed() -> None:
    def lazy(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.accelerator)
        return {"result": lab.attempt.add(x, x)}

    adapter = dummy("fails-late-computing")
    facts = observed(lazy, adapter)
    assert "value" in facts["result"]
    assert facts["drain"]["error"]["text"] == "add failed on dev:0"
    clean_program = observed(lambda lab: {"result": lab.attempt.full([2], 2.0, {"dtype": "float32"}, lab.accelerator)}, adapter)
    assert clean_program["drain"] is None


def test_a_late_error_surfaces_where_the_program_looks_and_is_not_said_twice() -> None:
    facts = observed(mixed, "checks-late")
    assert "value" in facts["result"]
    assert facts["value"]["error"]["type"] == "DeviceError"
    assert facts["drain"] is None


def test_a_lost_device_that_cannot_be_put_back_is_an_observation_all_the_same() -> None:
    class Lost(Dummy):
        def reset(self) -> None:
            if self.state.lost:
                raise RuntimeError("the device is lost")

    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.full((2, 2), 2.0, lab.accelerator)
        return {"result": lab.attempt.matmul(x, x), "after": lab.attempt.add(x, x)}

    facts = observed(trace, Lost("poisons-device", Dummy.kinds()["poisons-device"]))
    assert facts["poisoned"] is True
    assert "error" in facts["after"]


def test_a_lost_device_is_said_to_be_poisoned() -> None:
    def twice(lab: Lab) -> dict[str, Symbol]:
        x = lab.full([2, 2], 2.0, lab.accelerator)
        lab.attempt.matmul(x, x)
        return {"result": lab.attempt.add(x, x)}

    assert observed(twice, "accel")["poisoned"] is False
    assert observed(twice, "poisons-device")["poisoned"] is True


def test_an_adapter_knows_a_program_s_operations_and_scopes_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[set[str]] = []
    monkeypatch.setattr(Dummy, "prepare", lambda _, operations: told.append(set(operations)))
    inner = {"id": "s2", "op": "zeros", "args": [[2]]}
    run(dummy(), {"steps": [{"id": "s1", "scope": "default-device", "args": [{"device": "accelerator"}], "body": [inner]}]})
    with pytest.raises(Malformed):
        run(dummy(), {"steps": ["no step"]})
    assert told == [{"default-device", "zeros"}, set()]
