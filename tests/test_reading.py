"""Reading and answers: what an observation means, with observations written by hand; and tracing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire import plain
from cases import Case, catalogue
from cases.answers import ALIAS, COMPARISON, IN_PLACE, MOVE, UNTOUCHED, WORKING, Inconclusive, Vocabulary, lands, placed, promotion
from cases.lab import Lab, LanguageError, Numbers, Place, Program, Symbol
from cases.reading import TOLERANCE, Reading, agrees, at_positions

Trace = Callable[[Lab], dict[str, Symbol]]
ERROR = {"error": {"type": "DeviceError", "module": "m", "bases": [], "text": "add: host and dev:0 don't mix"}}


def tensor(device: str = "dev:0", role: str | None = "accelerator", **facts: Any) -> dict[str, Any]:
    """Return the fact about a tensor."""
    shape = [len(facts.get("elements", [0, 0]))]
    return {"value": {"kind": "tensor", "device": device, "role": role, "dtype": "float32", "shape": shape, "memory": "device", **facts}}


def question(lab: Lab) -> dict[str, Symbol]:
    """Add a host vector to an accelerator's, and look at the sum twice."""
    x, y = lab.tensor([2.0, 3.0], lab.host), lab.tensor([5.0, 7.0], lab.accelerator)
    result = lab.attempt.add(x, y)
    value, again = lab.observe(result, [7.0, 10.0]), lab.observe(lab.attempt.add(x, y), [7.0, 10.0])
    return {"result": result, "value": value, "again": again, "home": x}


def case_of(trace: Trace = question, answers: Vocabulary | None = None, **more: Any) -> Case:
    """Return a case outside the catalogue."""
    return Case("placement/mine", "Is it?", "Tests.", answers or placed("host", "accelerator"), trace, None, **more)


def reading(facts: Mapping[str, Any], case: Case | None = None, **observation: Any) -> Reading:
    """Return a reading of facts at marks."""
    case = case or case_of()
    steps = {case.program.marks.get(mark, mark): fact for mark, fact in facts.items()}
    return Reading(case.program, {"steps": steps, **observation}, case.wanted)


# --- elements ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "same"),
    [
        (2.0, 2, 0.0, True),
        (2.0000001, 2.0, 0.0, False),
        (2.0000001, 2.0, 1e-5, True),
        (0.00001, 0.0, 1e-5, True),
        (0.1, 0.0, 1e-5, False),
        (1000.01, 1000.0, 1e-5, True),
        (-3.0, 3.0, 0.5, False),
        (2**53 + 1, 2**53, 1e-5, False),
        (True, True, 0.0, True),
        (False, True, 0.0, False),
        ([2.0, 3.0], 2 + 3j, 0.0, True),
        ([3.0, 2.0], 2 + 3j, 0.0, False),
        (2.0, 2 + 0j, 0.0, False),
        ([2.0, 0.0], 2.0, 0.0, True),
        ([2.0, 1.0], 2.0, 0.0, False),
        ("inf", float("inf"), 0.0, True),
        ("-inf", float("inf"), 0.0, False),
        ("nan", float("nan"), 0.0, True),
        ("nan", 2.0, 1.0, False),
    ],
)
def test_elements_agree_within_the_tolerance_and_not_beyond(got: Any, expected: Any, tolerance: float, same: bool) -> None:
    assert agrees(got, expected, tolerance) is same


@given(st.one_of(st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.complex_numbers(allow_nan=False, allow_infinity=False)))
def test_every_number_agrees_with_itself_after_the_wire(number: complex) -> None:
    assert agrees(json.loads(json.dumps(plain(number))), number, 0.0)


@given(st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64))
def test_two_integers_agree_only_when_they_are_one(one: int, other: int) -> None:
    assert agrees(one, other, 0.5) is (one == other)


def test_expected_elements_are_taken_at_the_positions_that_were_read() -> None:
    assert list(at_positions([[2.0, 3.0], [5.0, 7.0]], [2, 2], None)) == [2.0, 3.0, 5.0, 7.0]
    assert list(at_positions([[2.0, 3.0], [5.0, 7.0]], [4], [3, 0])) == [7.0, 2.0]
    assert list(at_positions(Numbers(100, lambda i: 2.0 * i), [10, 10], [7, 99])) == [14.0, 198.0]
    assert list(at_positions(2.5, [], None)) == [2.5]


def test_another_number_of_elements_is_never_right() -> None:
    assert reading({"value": tensor(elements=[7.0])}).right("value") is False
    assert reading({"value": tensor(elements=[], shape=[0])}).right("value") is False, "nothing is not what was expected"
    assert reading({"value": tensor(elements=[7.0, 10.0, 2.0])}).right("value") is False


def test_no_tolerance_is_so_wide_that_neighbouring_whole_numbers_agree() -> None:
    for dtype, slack in TOLERANCE.items():
        assert not agrees(11.0, 10.0, slack), dtype


# --- readings ------------------------------------------------------------------------------------


def test_a_value_is_right_wrong_or_not_known() -> None:
    assert reading({"value": tensor(elements=[7.0, 10.0])}).right("value") is True
    assert reading({"value": tensor(elements=[7.0, 11.0])}).right("value") is False
    assert reading({"value": tensor(readable=False)}).right("value") is None
    assert reading({}).right("value") is None
    assert reading({"home": tensor(elements=[2.0])}).right("home") is None, "nothing is expected of it"


def test_a_python_number_is_held_against_what_is_expected_too() -> None:
    case = case_of(lambda lab: {"result": lab.attempt.item(lab.tensor(2.5, lab.host)), "value": lab.observe(Symbol("s2"), 2.5)})
    for number, right in ((2.5, True), (3.5, False)):
        assert reading({"value": {"value": {"kind": "python", "type": "float", "value": number}}}, case).right("value") is right


def test_a_handle_where_a_value_is_expected_is_not_right() -> None:
    assert reading({"value": {"value": {"kind": "handle", "text": "?"}}}).right("value") is False


def test_an_error_is_late_unless_it_is_at_the_question() -> None:
    assert reading({"result": ERROR, "value": {"skipped": "s3"}}).late_error() is None
    assert reading({"result": tensor(), "value": ERROR}).late_error() == ERROR["error"]
    assert reading({"result": tensor()}, drain=ERROR).late_error() == ERROR["error"]
    assert reading({"result": tensor()}, drain={"not_modelled": "no"}).late_error() is None


def test_a_question_that_was_not_reached_has_the_error_of_the_attempt_it_depends_on() -> None:
    case = case_of(lambda lab: {"result": lab.attempt.sum(lab.attempt.to(lab.tensor([2.0], lab.host), lab.accelerator))})
    found = reading({"s2": ERROR, "s3": {"skipped": "s2"}}, case)
    assert case.program.marks == {"result": "s3"}
    assert found.error("result") == ERROR["error"]


def test_a_refused_setup_is_named_and_an_attempt_is_no_setup() -> None:
    assert reading({"home": ERROR}).setup_error() == ("tensor", ERROR["error"])
    assert reading({"result": ERROR}).setup_error() is None


def test_a_refused_scope_is_a_refused_setup() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        with lab.scope("default-device", lab.accelerator):
            return {"result": lab.attempt.zeros_uncommitted([2])}

    assert reading({"s1": ERROR}, case_of(trace)).setup_error() == ("scope default-device", ERROR["error"])


def test_what_stops_a_question_is_found_inside_scopes_and_not_in_probes() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        with lab.scope("inference"):
            return {"result": lab.attempt.add(lab.tensor([2.0], lab.host), 3)}

    case = case_of(trace)
    assert reading({"result": {"not_offered": "no add"}}, case).unanswerable() == ("not-offered", "no add")
    assert reading({"result": {"not_modelled": "no values"}}, case).unanswerable() == ("not-modelled", "no values")
    probe = case.program.operands[0]
    assert reading({"result": ERROR, probe: {"not_offered": "no observe"}}, case).unanswerable() is None


# --- answers -------------------------------------------------------------------------------------

SEEN = {"value": tensor(elements=[7.0, 10.0]), "again": tensor(elements=[7.0, 10.0]), "home": tensor("host", "host")}


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"result": tensor(), **SEEN}, "moves-to-accelerator"),
        ({"result": tensor("host", "host"), **SEEN}, "moves-to-host"),
        ({"result": tensor("dev:1", "peer"), **SEEN}, "moves-elsewhere"),
        ({"result": tensor("dev:7", None), **SEEN}, "moves-elsewhere"),
        ({"result": ERROR}, "raises"),
        ({"result": tensor(), "value": ERROR}, "raises-late"),
        ({"result": tensor(), **SEEN, "value": tensor(elements=[7.0, 9.0])}, "garbage"),
        ({"result": tensor(), **SEEN, "again": tensor(elements=[7.0, 9.0])}, "garbage"),
        ({"result": tensor("dev:7", None), **SEEN, "value": tensor(elements=[0.0, 0.0])}, "garbage"),
        ({"result": tensor(), "value": tensor(readable=False), "again": tensor(readable=False)}, "moves-to-accelerator"),
    ],
)
def test_where_a_result_lands(facts: Mapping[str, Any], answer: str) -> None:
    assert placed("host", "accelerator").decide(reading(facts)) == answer


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"result": tensor("host", "host"), **SEEN}, "works"),
        ({"result": tensor(), **SEEN}, "moves-elsewhere"),
        ({"result": tensor("host", "host"), **SEEN, "value": tensor(elements=[7.0, 9.0])}, "garbage"),
    ],
)
def test_a_control_works_only_with_the_right_value_at_home(facts: Mapping[str, Any], answer: str) -> None:
    assert WORKING.decide(reading(facts)) == answer


def test_an_alias_without_word_on_storage_is_inconclusive() -> None:
    case = case_of(lambda lab: {**question(lab), "identity": lab.do.same(Symbol("s1"), Symbol("s2"))})
    home = {"result": tensor("host", "host"), **SEEN}
    for identity, answer in (((True, True), "same-object"), ((False, True), "shared-storage"), ((False, False), "copy")):
        fact = {"value": {"kind": "identity", "object": identity[0], "storage": identity[1]}}
        assert ALIAS.decide(reading({**home, "identity": fact}, case)) == answer
    with pytest.raises(Inconclusive, match="doesn't show whether storage is shared"):
        ALIAS.decide(reading({**home, "identity": {"value": {"kind": "identity", "object": False, "storage": None}}}, case))


def test_a_move_is_held_against_the_device_that_was_asked_for() -> None:
    case = case_of(wanted={"role": "accelerator", "from": "host"})
    for fact, answer in (
        (tensor(), "moves"),
        (tensor("host", "host"), "stays"),
        (tensor("dev:1", "peer"), "moves-elsewhere"),
    ):
        assert MOVE.decide(reading({**SEEN, "result": fact}, case)) == answer


def test_a_promotion_is_named_by_the_dtype_that_came_out() -> None:
    case = case_of(wanted={"tensor": "float32", "scalar": "float64"})
    words = promotion("keeps-dtype", "takes-scalar-dtype", "other-dtype", "truncates")
    answers = {"float32": "keeps-dtype", "float64": "takes-scalar-dtype", "float16": "other-dtype", "int32": "truncates"}
    for dtype, answer in answers.items():
        assert words.decide(reading({**SEEN, "result": tensor("host", "host", dtype=dtype)}, case)) == answer


def test_an_ignored_write_and_garbage_are_told_apart() -> None:
    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.host)
        result = lab.attempt.add_(x, x)
        return {"result": result, "value": lab.observe(result, [4.0, 6.0]), "before": lab.observe(result, [2.0, 3.0]), "home": x}

    case = case_of(trace, IN_PLACE)
    for elements, answer in (([4.0, 6.0], "writes"), ([2.0, 3.0], "ignored"), ([9.0, 9.0], "garbage")):
        facts = {mark: tensor("host", "host", elements=elements) for mark in ("result", "value", "before", "home")}
        assert IN_PLACE.decide(reading(facts, case)) == answer


def test_an_original_is_untouched_moved_or_changed() -> None:
    for place, elements, answer in (
        ("host", [7.0, 10.0], "untouched"),
        ("dev:0", [7.0, 10.0], "moved"),
        ("host", [0.0, 0.0], "changed"),
    ):
        facts = {"result": tensor(), "value": tensor(place, elements=elements), "home": tensor("host", "host")}
        assert UNTOUCHED.decide(reading(facts)) == answer


@pytest.mark.parametrize(
    ("equal", "mirrored", "alike", "answer"),
    [
        (True, True, True, "equal"), (True, True, False, "equal-other-hash"), (False, False, True, "unequal"),
        (True, False, True, "asymmetric"), (False, True, False, "asymmetric"),
    ],
)  # fmt: skip
def test_devices_compare(equal: bool, mirrored: bool, alike: bool, answer: str) -> None:
    fact = {"value": {"kind": "comparison", "equal": equal, "mirrored": mirrored, "hash": alike}}
    assert COMPARISON.decide(reading({"result": fact})) == answer


def test_a_creation_is_named_by_the_role_it_landed_on() -> None:
    assert lands("host", "accelerator").decide(reading({**SEEN, "result": tensor()})) == "on-accelerator"
    assert lands("host").decide(reading({**SEEN, "result": tensor()})) == "on-another"


def test_every_vocabulary_of_the_catalogue_knows_the_class_of_each_of_its_words() -> None:
    for name, case in catalogue().items():
        for word in case.answers.words:
            assert case.answers.class_of(word) in ("works", "refuses", "wrong", "neutral"), name


# --- tracing -------------------------------------------------------------------------------------


def traced(trace: Trace) -> Program:
    """Trace a program as a case is traced."""
    lab = Lab()
    return lab.program(trace(lab))


def test_a_program_knows_what_it_needs_but_not_for_its_probes() -> None:
    program = traced(question)
    assert program.roles == {"host", "accelerator"}, "the healthy operation on the device is a probe"
    assert program.dtypes == {"float32"}
    assert program.operations == {"tensor", "add"}
    assert len(program.operands) == 2


def test_a_value_that_the_question_changes_is_still_probed_and_one_changed_before_is_not() -> None:
    def written_before(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.host)
        lab.do.add_(x, x)
        return {"result": lab.attempt.sum(x)}

    assert traced(written_before).operands == []
    assert len(traced(lambda lab: {"result": lab.attempt.add_(lab.tensor([2.0], lab.host), 3)}).operands) == 1


def test_the_digest_changes_with_the_program_alone() -> None:
    assert traced(question).digest == traced(question).digest
    assert traced(question).digest != traced(lambda lab: {"result": lab.attempt.sum(lab.tensor([2.0], lab.host))}).digest


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda lab: lab.attempt.sing(), "no operation 'sing'"),
        (lambda lab: lab.scope("moonlight").__enter__(), "no scope 'moonlight'"),
        (lambda lab: lab.tensor([2.0], lab.host, layout="spiral"), "no layout 'spiral'"),
        (lambda lab: lab.tensor([2.0], lab.host, commitment="vague"), "no commitment 'vague'"),
        (lambda _: Place("host").as_("backwards"), "no spelling 'backwards'"),
    ],
)
def test_the_language_says_how_it_was_misused(misuse: Callable[[Lab], Any], sentence: str) -> None:
    with pytest.raises(LanguageError, match=sentence):
        misuse(Lab())
