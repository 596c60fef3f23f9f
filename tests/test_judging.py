"""Judging: from a worker's reply to a cell, with observations written by hand or made by the dummy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from adapters.interpret import run
from cases import Case, catalogue
from cases.contract import Contract, Entry
from cases.controls import held
from cases.judge import applicable, evidence, judge
from cases.lab import Lab, Place, Symbol
from tests.dummy import Dummy
from tests.test_reading import ERROR, case_of, tensor


def target(kind: str = "accel", **changes: Any) -> dict[str, Any]:
    """Return what a dummy's worker says of itself."""
    return {
        "target": f"dummy:{kind}", "framework": "dummy", "device": kind, "version": "1.0", "environment": {},
        "roles": Dummy.kinds()[kind], "operations": ["tensor", "add"], "dtypes": ["float32"], "environments": ["no-accelerator"],
        **changes,
    }  # fmt: skip


def asked(case: Case, kind: str = "accel") -> dict[str, Any]:
    """Return the cell of a case on a kind of the dummy."""
    observation = json.loads(json.dumps(run(Dummy(kind, Dummy.kinds()[kind]), case.program.wire())))
    return judge(case, target(kind), {"observation": observation})


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, None),
        ({"roles": {"host": {}}}, ("not-applicable", "dummy:accel has no accelerator")),
        ({"operations": ["tensor"]}, ("not-offered", "dummy offers no add")),
        ({"dtypes": []}, ("not-offered", "dummy has no dtype float32")),
        ({"operations": ["tensor"], "dtypes": []}, ("not-offered", "dummy offers no add")),
    ],
)
def test_what_a_target_lacks_is_known_without_asking(changes: dict[str, Any], found: tuple[str, str] | None) -> None:
    assert applicable(case_of(), target(**changes)) == found


def test_an_environment_that_a_framework_has_no_switch_for_is_not_offered() -> None:
    assert applicable(case_of(environment="wide-dtypes"), target()) == ("not-offered", "dummy has no switch for wide-dtypes")
    assert applicable(case_of(environment="no-accelerator"), target()) is None


def test_evidence_is_that_of_the_weakest_role_in_use() -> None:
    roles = {role: {"name": role, "evidence": how} for role, how in (("host", "measured"), ("accelerator", "simulated"))}
    alone = case_of(lambda lab: {"result": lab.attempt.sum(lab.tensor([2.0], lab.host))})
    assert evidence(alone, target(roles=roles)) == "measured"
    assert evidence(case_of(), target(roles=roles)) == "simulated"
    device = case_of(lambda lab: {"result": lab.attempt.sum(lab.tensor([2.0], lab.device))})
    assert evidence(device, target(roles=roles)) == "simulated"
    assert evidence(device, target(roles={"host": roles["host"]})) == "measured"


@pytest.mark.parametrize(
    ("role", "device", "found"),
    [("accelerator", "?", "simulated"), ("host", "?", "measured"), (None, "?", "measured"), (None, "alias", "simulated")],
)
def test_evidence_is_that_of_where_a_value_landed_that_nobody_placed(role: str | None, device: str, found: str) -> None:
    evidences = (("host", "measured"), ("accelerator", "simulated"), ("alias", "simulated"))
    roles = {name: {"name": name, "evidence": how} for name, how in evidences}
    case = case_of(lambda lab: {"result": lab.attempt.zeros_uncommitted([2])})
    (step, *probes) = case.program.steps
    landed = tensor(device, role=role)
    observation = {"steps": {step["id"]: landed, **{probe["id"]: tensor("?", role="accelerator") for probe in probes}}}
    assert judge(case, target(roles=roles), {"observation": observation})["evidence"] == found


@pytest.mark.parametrize(("told", "found"), [("simulated", "simulated"), ("measured", "measured"), (None, "measured"), (["?"], "measured")])
def test_evidence_of_a_device_without_a_role_is_what_the_value_says(told: Any, found: str) -> None:
    case = case_of(lambda lab: {"result": lab.attempt.zeros_uncommitted([2])})
    (step, *_) = case.program.steps
    observation = {"steps": {step["id"]: tensor("elsewhere", role=None, evidence=told)}}
    roles = {"host": {"name": "host", "evidence": "measured"}}
    assert judge(case, target(roles=roles), {"observation": observation})["evidence"] == found


@pytest.mark.parametrize("status", ["crashed", "hung", "unavailable", "not-run"])
def test_a_reply_without_observation_keeps_its_status_and_reason_and_never_an_answer(status: str) -> None:
    cell = judge(case_of(), target(), {"status": status, "why": "so it was"})
    assert (cell["status"], cell["why"], cell["answer"], cell["class"]) == (status, "so it was", None, None)
    assert (cell["verdict"] is not None) == (status in ("crashed", "hung")), "only behaviour has a verdict"


def test_a_refused_setup_is_inconclusive_and_says_what_was_refused() -> None:
    cell = asked(case_of(), "refuses-uploading")
    assert (cell["status"], cell["answer"], cell["verdict"]) == ("inconclusive", None, None)
    assert cell["why"] == "the tensor that the question needs was refused: RefusedError: tensor is not implemented on host"


def test_the_facets_of_a_refusal() -> None:
    facets = asked(case_of())["facets"]
    assert facets == {
        "error.type": "DeviceError", "error.surfaces": "at the call", "error.names": "all devices", "error.operation": True,
        "operands": "intact", "device works": True,
    }  # fmt: skip


def test_a_late_refusal_surfaces_later() -> None:
    cell = asked(case_of(), "checks-late")
    assert (cell["answer"], cell["facets"]["error.surfaces"]) == ("raises-late", "later")


def test_an_error_that_names_nothing_is_seen_to_name_nothing() -> None:
    case = case_of()
    for text, names, operation in (
        ("can't do that", "no device", False),
        ("expected dev:0", "some devices", False),
        ("wrapper_CUDA_add: host and DEV:0", "all devices", True),
        ("add on dev:01 and ghost", "no device", True),
    ):
        steps = {case.program.marks["result"]: {"error": {**ERROR["error"], "text": text}}}
        facets = judge(case, target(), {"observation": {"steps": steps}})["facets"]
        assert (facets["error.names"], facets["error.operation"]) == (names, operation), text


def test_damaged_operands_and_a_broken_device_are_facets() -> None:
    case = case_of()
    left, right = case.program.operands
    steps = {
        case.program.marks["result"]: ERROR, left: tensor("host", "host", elements=[2.0, 3.0]), right: tensor(elements=[0.0, 0.0]),
        str(case.program.healthy): ERROR,
    }  # fmt: skip
    facets = judge(case, target(), {"observation": {"steps": steps}})["facets"]
    assert (facets["operands"], facets["device works"]) == ("damaged", False)
    steps[right] = ERROR
    assert judge(case, target(), {"observation": {"steps": steps}})["facets"]["operands"] == "unknown"


def test_the_facets_of_a_result() -> None:
    facets = asked(case_of(), "moves-to-last")["facets"]
    assert facets == {"result.device": "accelerator", "result.dtype": "float32", "value": "right"}


def test_a_value_that_is_nearly_right_is_a_facet_and_a_value_that_is_not_there_too() -> None:
    case = case_of()
    marks = case.program.marks
    for elements, found in (([7.0, 10.0], "right"), ([7.05, 10.0], "right in reduced precision"), ([8.0, 10.0], "wrong")):
        steps = {marks["result"]: tensor(), marks["value"]: tensor(elements=elements), marks["again"]: tensor(elements=elements)}
        assert judge(case, target(), {"observation": {"steps": steps}})["facets"]["value"] == found
    steps = {marks["result"]: tensor(), marks["value"]: tensor(readable=False), marks["again"]: tensor(readable=False)}
    assert judge(case, target(), {"observation": {"steps": steps}})["facets"]["value"] == "not observable"


def test_warnings_at_any_mark_are_a_facet() -> None:
    case = case_of()
    steps = {case.program.marks["result"]: {**tensor(), "warnings": [{"category": "UserWarning", "text": "slow"}]}}
    assert judge(case, target(), {"observation": {"steps": steps}})["facets"]["warnings"] == ["UserWarning"]


def test_what_a_simulation_without_values_cannot_decide_is_not_modelled() -> None:
    case = catalogue()["placement/array-equal/device-device"]
    cell = asked(case, "data-less")
    assert (cell["status"], cell["answer"]) == ("not-modelled", None)


@pytest.mark.parametrize("name", ["dtypes/float64/move", "dtypes/float64/move-and-cast", "dtypes/float64/sum"])
def test_an_operand_that_was_made_in_another_dtype_says_nothing_of_the_one_asked_about(name: str) -> None:
    case = catalogue()[name]
    observation = json.loads(json.dumps(run(Dummy("accel", Dummy.kinds()["accel"]), case.program.wire())))
    assert judge(case, target(), {"observation": observation})["answer"] == "works"
    (made,) = [step["id"] for step in case.program.steps if step.get("op") == "tensor"]
    observation["steps"][made] = {"value": {**observation["steps"][made]["value"], "dtype": "float32"}}
    cell = judge(case, target(), {"observation": observation})
    assert (cell["status"], cell["verdict"]) == ("inconclusive", None)
    assert cell["why"] == "it needs an operand of float64, and that comes out as float32 where it is made"


@pytest.mark.parametrize("name", ["moving/to-accelerator/with-dtype", "dtypes/float64/move-and-cast"])
def test_the_control_of_a_move_with_a_cast_casts_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise TypeError("no dtype is taken here")

    monkeypatch.setattr(Dummy, "to_both", refuse)
    monkeypatch.setattr(Dummy, "cast", refuse)
    cell, control = asked(catalogue()[name]), asked(catalogue()[catalogue()[name].control or ""])
    assert cell["answer"] == control["answer"] == "raises"
    assert held(catalogue()[name], cell, control["answer"])["status"] == "inconclusive"


def test_an_answer_is_held_against_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(answers: tuple[str, ...], strength: str = "guaranteed", kinds: tuple[str, ...] = ("*",), versions: str = "") -> Entry:
        return Entry(("placement/*",), kinds, answers, strength, "https://a", "so it is", SpecifierSet(versions))

    def verdict(*promises: Entry, deviations: tuple[Entry, ...] = (), status: str | None = None) -> tuple[str, str | None]:
        mine = {"dummy": Contract("dummy", promises, deviations)}
        monkeypatch.setattr("cases.judge.contract_for", lambda name: mine.get(name, Contract(name, (), ())))
        cell = judge(case_of(), target(), {"status": status, "why": ""}) if status else asked(case_of())
        return cell["verdict"], cell.get("stale")

    works, raises = entry(("moves-to-host",)), entry(("raises",))
    assert verdict() == ("unpinned", None)
    assert verdict(raises) == ("conforms", None)
    assert verdict(works) == ("deviates", None)
    assert verdict(entry((), "undocumented")) == ("unpinned", None)
    assert verdict(entry((), "undocumented"), status="crashed") == ("deviates", None)
    assert verdict(entry(("raises",), kinds=("other-*",)), works) == ("deviates", None)
    assert verdict(entry(("raises",), versions=">=2"), works) == ("deviates", None)
    assert verdict(works, deviations=(raises,)) == ("known-deviation", None)
    assert verdict(raises, deviations=(entry(("garbage",)),)) == ("conforms", "known deviation is gone: so it is (https://a)")
    assert verdict(works, deviations=(entry(("crashed",)),), status="crashed") == ("known-deviation", None)
    # What hangs on the hardware is gone only where that hardware was asked; the dummy's devices are simulated.
    for seen_with, stale in (("measured", None), ("simulated", "known deviation is gone: so it is (https://a)")):
        assert verdict(raises, deviations=(replace(entry(("garbage",)), evidence=seen_with),)) == ("conforms", stale)


def test_the_norm_is_a_contract_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = Contract("norm", (Entry(("placement/*",), ("*",), ("raises",), "recommended", "https://a", "it raises", SpecifierSet()),), ())
    monkeypatch.setattr("cases.judge.contract_for", lambda name: norm if name == "norm" else Contract(name, (), ()))
    assert [asked(case_of(), kind)["norm"] for kind in ("accel", "moves-to-last")] == ["conforms", "deviates"]
    assert {asked(case_of(), kind)["verdict"] for kind in ("accel", "moves-to-last")} == {"unpinned"}


MIXED = "placement/matmul/host-accelerator"


@pytest.mark.parametrize(
    ("answer", "control", "stands"),
    [
        ("raises", "works", True),
        ("raises-late", "works", True),
        ("raises", "raises", False),
        ("raises", "garbage", False),
        ("raises", "crashed", False),
        ("raises", "not-modelled", False),
        ("garbage", "raises", True),
        ("moves-to-host", "raises", True),
    ],
)
def test_a_refusal_stands_only_where_the_control_works(answer: str, control: str, stands: bool) -> None:
    case = catalogue()[MIXED]
    cell = {
        "status": "answered", "answer": answer, "class": case.answers.class_of(answer), "verdict": "conforms", "norm": "conforms", "why": ""
    }  # fmt: skip
    found = held(case, cell, control)
    assert (found["status"] == "answered") is stands
    assert found["answer"] == (answer if stands else None)
    assert found["verdict"] == ("conforms" if stands else None)
    assert stands or (str(case.control) in found["why"] and control in found["why"])


def test_a_case_without_a_control_stands_alone() -> None:
    cell = {"status": "answered", "answer": "raises", "class": "refuses"}
    assert held(catalogue()["placement/create/device"], cell, None) == cell


def test_probes_run_where_an_earlier_step_than_the_question_was_refused() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.host)
        there = lab.attempt.to(x, Place("absent"))
        result = lab.attempt.add(there, there)
        return {"result": result, "value": lab.observe(result, [4.0, 6.0])}

    facets = asked(case_of(trace))["facets"]
    assert facets["device works"] is True
    assert facets["operands"] == "intact"


def test_devices_without_a_hash_are_equal_and_those_with_another_one_are_not_quite() -> None:
    case = catalogue()["moving/equality/clone"]
    for alike, answer in ((None, "equal"), (True, "equal"), (False, "equal-other-hash")):
        facts = {"kind": "comparison", "equal": True, "mirrored": True, "hash": alike}
        assert judge(case, target(), {"observation": {"steps": {case.program.marks["result"]: {"value": facts}}}})["answer"] == answer
