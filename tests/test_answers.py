"""Every answer of every case comes out of some defect of the dummy, and no other ever does.

A defect is a fault of an operation or of the runtime (see `tests.dummy`); none knows cases or answers.
So a case whose answers can't all be reached asks its question badly, or promises words that mean nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters.base import Adapter
from adapters.interpret import run
from cases import Case, catalogue
from cases.answers import WORKING, WORKS, Vocabulary
from cases.case import AREAS
from cases.judge import ANSWERED, applicable, judge
from cases.lab import Lab, Symbol
from cases.reading import walk
from tests.defects import DANGEROUS, HEALTHY, KINDS, struck
from tests.dummy import Dummy

#: The kinds that can be asked in this process.
HARMLESS = tuple(kind for kind in KINDS if kind not in DANGEROUS)


@contextlib.contextmanager
def environment(name: str | None) -> Iterator[None]:
    """Put the process into an environment that a case asks for."""
    variables = Dummy.environments[name] if name else {}
    os.environ.update(variables)
    try:
        yield
    finally:
        for variable in variables:
            del os.environ[variable]


@cache
def backend(kind: str) -> Mapping[str, Any]:
    """Return what the worker of a kind says of it."""
    roles = Dummy.kinds()[kind]
    return {
        "target": f"dummy:{kind}", "framework": "dummy", "device": kind, "version": "1.0", "roles": roles,
        "operations": [n for n in dir(Dummy) if n not in dir(Adapter) and not n.startswith("_")],
        "dtypes": Dummy.offered_dtypes(), "environments": sorted(Dummy.environments),
    }  # fmt: skip


@cache
def made(kind: str, _: str | None) -> Dummy:
    """Return the dummy of a kind in the environment that the process is in: what that hides it is asked about all the same."""
    return Dummy(kind, backend(kind)["roles"])


#: Stands for an answer outside a case's set.
UNKNOWN = "?"


class Outcome(NamedTuple):
    """What a kind of the dummy came to on a case."""

    status: str
    answer: str | None
    verdict_class: str | None
    why: str
    #: Errors that the dummy didn't mean to raise: its own bugs would look like refusals.
    accidents: tuple[str, ...]


def ask(case: Case, kind: str) -> Outcome:
    """Ask a kind of the dummy a case, over the wire's JSON both ways."""
    said = backend(kind)
    refused = applicable(case, said)
    if refused:
        return Outcome(refused[0], None, None, refused[1], ())
    with environment(case.environment):
        dummy = Dummy(kind, said["roles"]) if case.fresh else made(kind, case.environment)
        observation = json.loads(json.dumps(run(dummy, json.loads(json.dumps(case.program.wire())))))
    try:
        cell = judge(case, said, {"observation": observation})
    except KeyError as word:
        return Outcome(ANSWERED, UNKNOWN, None, f"answers {word}, which is not among its answers", ())
    errors = [fact["error"] for fact in (*observation["steps"].values(), observation.get("drain", {})) if "error" in fact]
    accidents = tuple(f"{e['type']}: {e['text']}" for e in errors if e["module"] != "tests.fake")
    return Outcome(cell["status"], cell["answer"], cell["class"], cell["why"], accidents)


@cache
def seen(name: str, kind: str) -> Outcome:
    """Ask a kind of the dummy a case of the catalogue, once."""
    return ask(catalogue()[name], kind)


def used(case: Case) -> frozenset[str]:
    """Return the operations and scopes that a case's question uses."""
    steps = [step for step in walk(case.program.steps) if "when" not in step]
    timed = {step["kw"]["op"] for step in steps if step.get("op") == "time"}
    return frozenset({step.get("op") or step["scope"] for step in steps} | timed | ({"full", "corner", "item"} if timed else set()))


def concerned(case: Case) -> list[str]:
    """Return the kinds whose defects strike what a case does, the healthy one first."""
    names = used(case)
    return ["accel", *(kind for kind in HARMLESS if names & struck(kind))]


def complaints(cases: Mapping[str, Case], asked: Callable[[str, str], Outcome], kinds: Sequence[str] = ()) -> list[str]:
    """Return a sentence for each case that defects don't bring to each of its answers, or bring to another.

    Kinds are asked until all answers were seen; when `kinds` are given, all of these.
    """
    found = []
    for name, case in cases.items():
        reached: set[str] = set()
        for kind in kinds or concerned(case):
            outcome = asked(name, kind)
            if outcome.accidents:
                found.append(f"{name} on dummy:{kind}: the dummy itself fails: {outcome.accidents[0]}")
            if outcome.answer == UNKNOWN:
                found.append(f"{name} on dummy:{kind}: {outcome.why}")
            elif outcome.answer:
                reached.add(outcome.answer)
            if not kinds and len(reached) > 1 and reached >= set(case.answers.words):
                break
        missing = set(case.answers.words) - reached
        if missing:
            found.append(f"{name}: no defect reaches {', '.join(sorted(missing))} (reached: {', '.join(sorted(reached))})")
        if len(reached) < 2:
            found.append(f"{name}: no defect changes its answer")
    return found


@pytest.mark.parametrize("area", AREAS)
def test_every_answer_is_reached_by_some_defect(area: str) -> None:
    cases = {name: case for name, case in catalogue().items() if case.area == area}
    assert cases
    found = complaints(cases, seen)
    assert not found, "\n".join(found)


def test_the_healthy_dummy_works_on_every_control() -> None:
    for name in sorted({case.control for case in catalogue().values() if case.control}):
        outcome = seen(name, "accel")
        assert (outcome.status, outcome.verdict_class) == (ANSWERED, WORKS), f"{name}: {outcome}"


def test_the_healthy_dummy_answers_every_case() -> None:
    for name in catalogue():
        assert seen(name, "accel").status == ANSWERED, f"{name}: {seen(name, 'accel')}"


def test_no_defect_whatever_brings_another_answer_or_an_accident() -> None:
    sample = dict(list(catalogue().items())[::25])
    found = complaints(sample, seen, HARMLESS)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("kind", "missing"), [("host-only", {"accelerator", "peer", "alias"}), ("no-peer", {"peer"})])
def test_a_case_is_not_applicable_exactly_where_one_of_its_roles_is_missing(kind: str, missing: set[str]) -> None:
    said = backend(kind)
    for name, case in catalogue().items():
        refused = applicable(case, said)
        assert (refused is not None) == bool(case.program.roles & missing), f"{name}: {refused}"
        assert refused is None or refused[0] == "not-applicable"


def test_every_defect_is_seen_by_some_case_but_the_one_that_the_interpreter_puts_right() -> None:
    names = {name: used(case) for name, case in catalogue().items()}

    def sees(name: str, kind: str) -> bool:
        return bool(names[name] & struck(kind)) and seen(name, kind)[:2] != seen(name, "accel")[:2]

    unseen = {kind for kind in HARMLESS if kind not in HEALTHY and not any(sees(name, kind) for name in catalogue())}
    assert unseen == {"leaks-environment"}


def planted(answers: Vocabulary) -> Case:
    """Return a case like those of the catalogue, with other answers."""

    def trace(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor([2.0, 3.0], lab.device)
        result = lab.attempt.add(x, x)
        return {"result": result, "value": lab.observe(result, [4.0, 6.0]), "home": x}

    return Case("placement/planted/device", "Is it seen?", "Tests.", answers, trace, "placement/create/device")


def complain(answers: Vocabulary) -> list[str]:
    """Return the complaints about a planted case with these answers."""
    case = planted(answers)
    return complaints({case.id: case}, lambda _, kind: ask(case, kind))


def test_a_case_whose_answers_are_all_reached_gives_no_complaint() -> None:
    assert complain(WORKING) == []


def test_a_case_with_an_answer_that_no_defect_reaches_is_named_with_that_answer() -> None:
    unreachable = replace(WORKING, words={**WORKING.words, "sings": (WORKS, "a tune")})
    (sentence,) = complain(unreachable)
    assert sentence.startswith("placement/planted/device: no defect reaches sings")


def test_a_case_that_answers_a_word_outside_its_set_is_named() -> None:
    narrow = replace(WORKING, words={word: meaning for word, meaning in WORKING.words.items() if word != "garbage"})
    assert any("dummy:garbles-computing: answers 'garbage'" in sentence for sentence in complain(narrow))


def test_a_case_that_no_defect_changes_is_named() -> None:
    deaf = Vocabulary({"works": (WORKS, "whatever happened")}, lambda _: "works")
    assert complain(deaf) == ["placement/planted/device: no defect changes its answer"]


def test_no_defect_knows_a_case_or_the_language_that_cases_are_written_in() -> None:
    for name in ("fake", "fake_runtime", "fake_operations", "fake_modules", "defects", "dummy"):
        text = (Path(__file__).parent / f"{name}.py").read_text("utf-8")
        imported = {line.split()[1].partition(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
        assert not imported & {"cases", "reports"}, name
        assert not [case for case in catalogue() if case in text], name


def test_a_move_of_which_the_call_does_a_part_returns_before_the_value_has_arrived() -> None:
    assert seen("time/transfer/pageable", "half-blocks").answer == "asynchronous"
    assert seen("time/transfer/pageable", "blocks").answer == "synchronous"
    assert seen("time/loop/add", "half-blocks").status == "inconclusive"
