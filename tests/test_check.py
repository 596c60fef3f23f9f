"""`python -m adapters check`: whole workers pass, and one with a fault is found out by the rule that it breaks."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters import check, message_rules, program_rules
from adapters.conversation import NotChecked, Talk, Wrong
from adapters.message_rules import (
    again,
    bye,
    closed,
    cut_off,
    descriptors,
    early,
    foreign,
    half_line,
    hello,
    ids,
    in_order,
    lacking,
    long_line,
    no_json,
    no_object,
    too_long_line,
    unknown_device,
    unknown_key,
    unknown_type,
    warm,
)  # fmt: skip
from adapters.process import NotStarted, WorkerFailed
from adapters.program_rules import (
    attempts,
    described,
    ends,
    forgotten,
    given,
    left,
    missing_words,
    numbers,
    observed,
    own,
    probes,
    repeated,
    sampled,
    scopes,
    spelled,
    timed,
    unread,
)  # fmt: skip
from adapters.targets import Spec

ROOT = Path(__file__).parent.parent
SMALL = (sys.executable, "-m", "tests.small_worker")
BROKEN = str(ROOT / "tests" / "broken.py")
SCHEMA = json.loads((ROOT / "adapters" / "protocol.schema.json").read_text())
Rule = Callable[..., None]
RULES: tuple[Rule, ...] = (*message_rules.RULES, *program_rules.RULES, *message_rules.ENDS)

#: What a worker does wrong, the rule by which it is found out, and words of the sentence that says so.
FAULTS: list[tuple[str, Rule, str]] = [
    ("early", early, '"run", "id": 2, .*"device": "gpu".* is answered with {.*observation'),
    ("other-name", hello, "asked for lists, it says that it is for tuples"),
    ("counts-greetings", again, 'build was {"greetings": "1"} and is {"greetings": "2"}'),
    ("any-framework", foreign, "it answers {.*hello"),
    ("misnames-warm", warm, "it answers {.*observation"),
    ("dies-of-rubbish", no_json, "ended with exit status 1: json.decoder.JSONDecodeError"),
    ("rubbish-is-0", no_json, "good morning is answered with the id 0, not null"),
    ("hangs", no_json, "no answer within 1 s"),
    ("takes-lists", no_object, r"\[\] is answered with {.*warm"),
    ("echoes-ids", ids, r"doesn't fit protocol.schema.json: \$.id: 'seven' is not of type 'integer'"),
    ("truth-is-id", ids, r"doesn't fit protocol.schema.json: \$.id: True is not of type 'integer'"),
    ("forgets-ids", unknown_type, "is answered with the id null, not 2"),
    ("tells-tracebacks", lacking, "is answered with no sentence: Traceback"),
    ("no-program-is-one", lacking, '"type": "run", .* is answered with {.*observation'),
    ("any-device", unknown_device, "no-such-device.* is answered with {.*observation"),
    ("strict-keys", unknown_key, "a program is answered with {.*a key that isn't known"),
    ("short-lines", long_line, "it is answered with {.*no JSON"),
    ("cuts-lines", too_long_line, "request 2 is answered with the id null: .*no JSON"),
    ("eager", half_line, "{.*no JSON: "),
    ("answers-twice", in_order, "request 4 is answered with .*no type dance"),
    ("reorders", in_order, "request 2 is answered with .*no-such-framework"),
    ("keeps-descriptors", descriptors, "its descriptors 0 and 1 are still those of the suite"),
    ("answers-bye", bye, 'it says {"type": "bye", "id": 0}'),
    ("stays", bye, "it is still there after 1 s"),
    ("bye-is-3", bye, "^ended with exit status 3"),
    ("outlives-input", closed, "it is still there after 1 s"),
    ("last-words", closed, 'it says {"type": "warm", "id": 0}'),
    ("dies-of-half-a-line", cut_off, "ended with exit status 1: json.decoder.JSONDecodeError"),
    ("last-words", cut_off, 'it says {"type": "warm", "id": 0}'),
    ("lowercase", described, 'on the host has device "gpu", not "cpu"|on the host has device gpu, not cpu'),
    ("no-role", described, "on the host has role null, not host"),
    ("dies", unread, "ended by SIGABRT"),
    ("reads-everything", unread, "step s1, which isn't observe, comes to {.*elements"),
    ("invents-steps", unread, "it tells of a step s99 that the program doesn't have"),
    ("reads-the-first", observed, r"of the elements \[0.0, .* it reads \[0.0, 1.0, .*15.0\]"),
    ("always-at", observed, r"it says where they are \(at\), and all are there"),
    ("says-the-first", sampled, r"of 65 elements it reads those at \[0, 1, 2, .*, not at \[0, "),
    ("misreads", sampled, r"of the elements \[0.0, .* it reads \[0.0, 1.0, 2.0"),
    ("writes-nan", numbers, "which is no JSON: NaN is no number"),
    ("truths-are-numbers", numbers, r"of the elements \[true, false\] of bool it reads \[1, 0\]"),
    ("complex-is-text", numbers, r"of the elements \[\[2.0, 5.0\], \[3.0, 7.0\]\] it reads .*2\+5j"),
    ("attempt-ends", attempts, "nothing is told of step s4, which was to be run"),
    ("runs-skipped", attempts, "step s4 refers to s3, which has no value, and comes to {.*no operand"),
    ("skips-by-root", attempts, 'step s5 refers to s4, which has no value, and comes to {"skipped": "s3"}'),
    ("wordless", attempts, "doesn't fit protocol.schema.json: .*s3.error: 'text' is a required property"),
    ("fails-itself", attempts, "step s3 failed in the worker itself: add: "),
    ("goes-on", ends, "step s4 is run after s3 had failed"),
    ("invents", missing_words, 'a step with an unknown operation comes to {"value": {"kind": "none"}}'),
    ("any-dtype", missing_words, "a step with an unknown dtype comes to {.*float7"),
    ("ignores-scope", missing_words, "a step with an unknown scope comes to "),
    ("peer-is-host", missing_words, r"a step with an unknown role \(peer\) comes to {.*cpu"),
    ("goes-on-unoffered", missing_words, "step s4 is run after one with an unknown operation"),
    ("never-probes", probes, "nothing is told of step s5, which was to be run"),
    ("always-probes", probes, "step s6 is run as a probe of a step without an error"),
    ("probes-skipped", probes, "step s8 is run as a probe of a step that was skipped"),
    ("loses-probes", probes, "a program is answered with {.*s10 has no value"),
    ("probe-ends", probes, "nothing is told of step s10"),
    ("scope-goes-on", scopes, "step s6 is run after s4 had failed in a scope before it"),
    ("hides-body", scopes, "nothing is told of step s3, which was to be run"),
    ("goes-on", scopes, "step s5 is run after s4 had failed in the same scope"),
    ("hollow-scopes", scopes, "a scope of what isn't offered comes to {.*none"),
    ("keeps-default", left, "for which no device is said was on the host, and then on the accelerator"),
    ("remembers", forgotten, 's2", "op": "observe".* is answered with {.*observation'),
    ("tells-the-time", repeated, "step s3 came to {.*, and then to {"),
    ("ignores-roles", given, "a program is answered with {.*no device kind tpu here"),
    ("mute-spelling", spelled, "was named as object, and absent/object is not in `spelled`"),
    ("answers-barrier", own, "barrier gives a value of kind python, not none"),
    ("forgets-the-first", timed, "of two rounds after the first one it tells "),
    ("reads-before", timed, "a round is told as {.* in this order"),
    ("computes-nothing", timed, "after 2 sums of a half, from 3 on, an element is 3.0, not 4.0"),
    ("no-rounds-are-some", timed, "of no rounds it tells {.*, not single calls alone"),
]  # fmt: skip


@contextmanager
def talking(fault: str = "", deadline: float = 30.0) -> Iterator[Talk]:
    talk = Talk(Spec("lists", None, (*SMALL, fault), program=True), deadline, 30.0)
    talk.kinds = ("gpu",)
    try:
        yield talk
    finally:
        talk.end()


def tried(talk: Talk, rule: Any) -> None:
    """Try one rule."""
    talk.process()
    rule(talk, "gpu") if rule in program_rules.RULES else rule(talk)


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(("fault", "rule", "words"), FAULTS, ids=[f"{fault}-{rule.__name__}" for fault, rule, _ in FAULTS])
def test_a_worker_with_a_fault_is_found_out_by_the_rule_that_it_breaks(fault: str, rule: Rule, words: str) -> None:
    if rule is descriptors and not sys.platform.startswith("linux"):
        pytest.skip("only Linux shows what a process has open")
    slow = fault in ("hangs", "stays", "outlives-input")
    with talking(fault, 1.0 if slow else 30.0) as talk, pytest.raises((Wrong, WorkerFailed), match=words):
        tried(talk, rule)


def test_every_rule_is_broken_by_some_fault_and_kept_without_one() -> None:
    assert {rule for _, rule, _ in FAULTS} == set(RULES)
    with talking() as talk:
        for rule in RULES:
            tried(talk, rule)


def test_a_rule_is_a_sentence_of_its_own() -> None:
    said = [check.sentence(rule) for rule in RULES]
    assert len(set(said)) == len(said)
    assert all(re.fullmatch(r"[A-Z][^.]+", sentence) for sentence in said)


def test_programs_that_are_asked_fit_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/run-request", "$defs": SCHEMA["$defs"]})
    asked: list[Any] = []
    ask = Talk.ask  # its own

    def noted(talk: Talk, request: Any, *more: Any) -> dict[str, Any]:
        asked.append(request)
        return ask(talk, request, *more)

    monkeypatch.setattr(Talk, "ask", noted)
    with talking() as talk:
        talk.process()
        for rule in program_rules.RULES:
            rule(talk, "gpu")
    assert len(asked) > len(program_rules.RULES)
    for request in asked:
        validator.validate(json.loads(json.dumps(request)))


# --- what a worker of which little is known gives no occasion to check ----------------------------


def test_a_worker_that_offers_nothing_is_not_checked_for_it() -> None:
    with talking() as talk:
        talk.process()
        talk.hello = {**talk.hello, "operations": []}
        with pytest.raises(NotChecked, match="it offers no tensor"):
            unread(talk, "gpu")


def test_a_worker_without_devices_is_still_checked_for_its_messages() -> None:
    with talking() as talk:
        talk.kinds = ()
        no_json(talk)
        with pytest.raises(NotChecked, match="no device is here"):
            warm(talk)


def test_a_worker_that_does_not_read_is_not_waited_for() -> None:
    with talking("hangs", 1.0) as talk:
        process = talk.process()
        with pytest.raises(WorkerFailed, match="it has not read 8000000 bytes within 1 s"):
            process.tell(b"x" * 4_000_000 + b"\n" + b"y" * 3_999_999, 1.0)


def test_an_interpreter_that_answers_nothing_is_not_started() -> None:
    talk = Talk(Spec("lists", None, (sys.executable, BROKEN, "silent"), program=True), 1.0, 1.0)
    with pytest.raises(NotStarted, match="doesn't answer hello: no answer within 1 s"):
        list(check.check(talk))
    talk.end()
