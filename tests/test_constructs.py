"""The interpreter's constructs: scoped regions, identity, comparisons, forgetting, host memory. Asked of the dummy."""

from __future__ import annotations

import pytest

from adapters.base import HostBuffer
from adapters.interpret import run
from cases.lab import Lab, Symbol
from tests.dummy import Dummy
from tests.test_interpret import dummy, observed


def test_a_scope_holds_for_its_body_alone() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        with lab.scope("default-device", lab.accelerator):
            inside = lab.attempt.zeros_uncommitted([2])
        return {"inside": inside, "outside": lab.attempt.zeros_uncommitted([2])}

    facts = observed(trace)
    assert (facts["inside"]["value"]["role"], facts["outside"]["value"]["role"]) == ("accelerator", "host")


def test_a_scope_that_the_framework_lacks_is_not_offered() -> None:
    facts = run(dummy(), {"steps": [{"id": "s1", "scope": "moonlight", "args": [], "body": []}]})["steps"]
    assert facts == {"s1": {"not_offered": "dummy has no moonlight scope"}}


def test_what_is_not_offered_inside_a_scope_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Dummy, "zeros_uncommitted")

    def trace(lab: Lab) -> dict[str, Symbol]:
        with lab.scope("inference"):
            inside = lab.attempt.zeros_uncommitted([2])
        return {"inside": inside, "after": lab.attempt.tensor({"data": [2.0]}, {"dtype": "float32"}, lab.host)}

    facts = observed(trace)
    assert facts["inside"] == {"not_offered": "dummy offers no zeros_uncommitted"}
    assert facts["after"] is None


def test_identity_tells_object_storage_and_neither_apart() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.device)
        return {
            "object": lab.do.same(x, lab.do.to(x, lab.device)),
            "storage": lab.do.same(x, lab.do.tail(x, 1)),
            "copy": lab.do.same(x, lab.do.to_copy(x, lab.device)),
        }

    facts = observed(trace)
    assert facts["object"]["value"] == {"kind": "identity", "object": True, "storage": True}
    assert facts["storage"]["value"] == {"kind": "identity", "object": False, "storage": True}
    assert facts["copy"]["value"] == {"kind": "identity", "object": False, "storage": False}


def test_devices_are_compared_both_ways_and_each_name_is_a_handle_of_its_own() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        return {"result": lab.attempt.compare(lab.do.name(lab.device), lab.do.name(lab.device))}

    for kind, found in (
        ("accel", (True, True, True)),
        ("devices-compare-handles", (False, False, True)),
        ("devices-compare-one-way", (True, False, True)),
        ("devices-hash-handles", (True, True, False)),
    ):
        facts = observed(trace, kind)["result"]["value"]
        assert (facts["equal"], facts["mirrored"], facts["hash"]) == found, kind


def test_a_dropped_value_is_forgotten_and_nothing_else() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.device)
        y = lab.do.to(x, lab.device)
        lab.do.drop(y)
        return {"value": lab.observe(x, [2.0, 3.0])}

    assert observed(trace)["value"]["value"]["elements"] == [2.0, 3.0]


@pytest.mark.parametrize(("kind", "seen"), [("accel", 2.0), ("aliases-host-memory", 9.0)])
def test_host_memory_is_written_behind_the_frameworks_back(kind: str, seen: float) -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        buffer = lab.do.buffer({"data": [2.0, 3.0]}, "misaligned")
        x = lab.do.from_buffer(buffer, lab.device)
        lab.do.write_buffer(buffer, 9.0)
        return {"value": lab.observe(x)}

    assert observed(trace, kind)["value"]["value"]["elements"][0] == seen


@pytest.mark.parametrize(("alignment", "rest"), [("aligned", 0), ("misaligned", 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64", "complex128"])
def test_host_memory_stands_where_it_was_asked_for(alignment: str, rest: int, dtype: str) -> None:
    import ctypes

    memory = HostBuffer([2, 3], alignment, dtype).memory
    assert ctypes.addressof(ctypes.c_char.from_buffer(memory)) % 64 == rest


@pytest.mark.parametrize(("kind", "early"), [("accel", True), ("blocks", False)])
def test_a_timed_loop_returns_its_raw_times_and_what_it_computed(kind: str, early: bool) -> None:
    ask = {
        "op": "matmul", "device": Lab.device, "dtype": {"dtype": "float32"}, "chain": 20, "rounds": 3, "end": "barrier",
        "at_most": 0.5, "at_least": 0.8, "weight": 5,
    }  # fmt: skip
    times = observed(lambda lab: {"result": lab.attempt.time(**ask)}, kind)["result"]["value"]
    assert len(times["rounds"]) == 4
    assert all((r["returned"] <= 0.5 * r["synchronised"]) == early for r in times["rounds"])
    assert times["value"] == 3.0 * 2**20


def test_what_computes_nothing_cannot_be_timed() -> None:
    facts = observed(lambda lab: {"result": lab.attempt.time(op="matmul", device=Lab.device)}, "data-less")
    assert facts["result"] == {"not_modelled": "no work is done, so none can be timed"}
