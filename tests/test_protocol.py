"""Every line that really goes over the wire fits the protocol's schema."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters.array_api_strict import ArrayApiStrict
from adapters.jax import Jax
from adapters.numpy import Numpy
from adapters.targets import Spec
from adapters.torch import Torch
from adapters.worker import _State, understood
from cases import catalogue
from cases.words import OPERATIONS
from tests.dummy import Dummy

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "adapters" / "PROTOCOL.md").read_text("utf-8")
SCHEMA = json.loads((ROOT / "adapters" / "protocol.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def check(line: dict[str, Any], part: str) -> None:
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})
    validator.validate(json.loads(json.dumps(line)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_program_fits_the_schema() -> None:
    for number, case in enumerate(catalogue().values()):
        check({"type": "run", "id": number, "device": "cpu", "program": case.program.wire(), "deadline": 30.0}, "run-request")


def test_hello_and_the_observations_of_the_dummy_fit_the_schema() -> None:
    state = _State()
    hello = state.answer({"type": "hello", "framework": "dummy", "adapter": "tests.dummy:Dummy"}) | {"id": 1}
    check(hello, "hello")
    for case in list(catalogue().values())[::7]:
        if case.alone or case.environment:
            continue
        reply = state.answer({"type": "run", "device": "accel", "program": case.program.wire()}) | {"id": 2}
        check(reply, "observation-reply")


def test_a_message_of_another_type_is_answered_with_an_error() -> None:
    reply = _State().answer({"type": "dance"}) | {"id": 3}
    check(reply, "error-reply")
    assert "dance" in reply["error"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"type": ["hello"]}, "unknown message type ['hello']"),
        ({"type": "hello"}, "hello with None as its framework"),
        ({"type": "run", "device": "accel"}, "run with None as its program"),
        ({"type": "run", "device": "accel", "program": {"steps": [{"id": "s1"}]}}, "neither or both"),
        ({"type": "run", "device": "elsewhere", "program": {"steps": []}}, "no device kind 'elsewhere'"),
        ({"type": "warm", "device": "elsewhere"}, "no device kind 'elsewhere'"),
    ],
)
def test_a_request_that_cannot_be_answered_is_answered_with_a_sentence(request_: dict[str, Any], words: str) -> None:
    state = _State()
    state.answer({"type": "hello", "framework": "dummy", "adapter": "tests.dummy:Dummy"})
    reply = state.answer(request_) | {"id": 3}
    check(reply, "error-reply")
    assert words in reply["error"]
    assert "\n" not in reply["error"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"nonsense\n", "no JSON: "), (b'{"type": "hel', "no JSON: "), (b"\xff\xfe\n", "no JSON: "), (b"[" * 100_000, "no JSON: "),
        (b"[1]\n", "no JSON object"), (b'"hello"\n', "no JSON object"),
        (b'{"type": "bye", "id": "0"}', "as its id"), (b'{"id": true}', "as its id"), (b'{"id": -1}', "as its id"),
        (b'{"id": 1.5}', "as its id"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_request_has_no_id_to_be_answered_with(line: bytes, words: str) -> None:
    request, why = understood(line)
    assert words in why
    assert request.get("id") is None


def test_a_worker_without_the_framework_says_which_it_has() -> None:
    reply = _State().answer({"type": "hello", "framework": "trch", "adapter": None}) | {"id": 1}
    check(reply, "unavailable")
    assert "no adapter for 'trch'; there are torch" in reply["why"]


def test_a_fact_is_one_thing_and_a_value_has_what_its_kind_says() -> None:
    def fits(fact: dict[str, Any]) -> bool:
        return bool(VALIDATOR.is_valid({"type": "observation", "id": 1, "observation": {"steps": {"s1": fact}}}))

    tensor = {"kind": "tensor", "device": "cpu", "role": "host", "dtype": "float32", "shape": [2]}
    assert fits({"value": tensor})
    assert fits({"value": tensor, "warnings": []})
    assert not fits({"value": tensor, "skipped": "s1"})
    assert not fits({"value": {**tensor, "shape": None}})
    assert not any(fits({"value": {key: value for key, value in tensor.items() if key != gone}}) for gone in tensor)
    assert not any(fits({"value": {"kind": kind}}) for kind in ("python", "handle", "identity", "comparison", "times"))
    assert VALIDATOR.is_valid({"type": "warm", "id": 1})


@pytest.mark.parametrize(
    "line", [{"type": "run", "id": 1}, {"type": "observation", "id": 1, "observation": {"steps": {"s1": {}}}}, {"id": 1}]
)
def test_a_line_of_another_form_is_refused_by_the_schema(line: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(line)


# --- the page ------------------------------------------------------------------------------------


def test_the_pages_session_is_what_a_worker_really_says() -> None:
    text = PAGE.split("```text\n")[1].split("```")[0]
    lines = [" ".join(part.split()) for part in re.split(r"^(?=[<>] )", text, flags=re.MULTILINE) if part]
    asked = [line[2:] for line in lines if line.startswith("> ")]
    command = [sys.executable, "-m", "tests.small_worker"]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(asked) + "\n", capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(line[2:]) for line in lines if line.startswith("< ")]
    for line in asked:
        assert line == "good morning" or "dance" in line or VALIDATOR.is_valid(json.loads(line))


def test_the_page_has_every_operation_with_the_parameters_of_the_adapters() -> None:
    told = {
        name: tuple(filter(None, parameters.strip().split(", ")))
        for parameters, names in re.findall(r"^\|([a-z, ]*)\| ((?:`\w+` ?)+)[|(]", PAGE, flags=re.MULTILINE)
        for name in re.findall(r"\w+", names)
    }
    for cls in (Dummy, Numpy, Torch, Jax, ArrayApiStrict):
        for name in OPERATIONS:
            if hasattr(cls, name):
                parameters = tuple(inspect.signature(getattr(cls, name)).parameters)[1:]
                assert told.get(name) == parameters, f"PROTOCOL.md: {', '.join(parameters)} | {name}"
    assert told.keys() == OPERATIONS.keys()


def test_a_spec_in_another_environment_is_another_worker() -> None:
    spec = Spec("jax", None, None, (("A", "1"),))
    assert spec.within({"B": "2"}).environment == (("A", "1"), ("B", "2"))
    assert spec.within({"A": "3"}).environment == (("A", "3"),)
