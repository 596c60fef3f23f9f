"""Every line that really goes over the wire fits the protocol's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters.targets import Spec
from adapters.worker import _State
from cases import catalogue

SCHEMA = json.loads((Path(__file__).parent.parent / "adapters" / "protocol.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def check(line: dict[str, Any], part: str) -> None:
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})
    validator.validate(json.loads(json.dumps(line)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_program_fits_the_schema() -> None:
    for number, case in enumerate(catalogue().values()):
        check({"type": "run", "id": number, "device": "cpu", "program": case.program.wire()}, "run-request")


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
    "line", [{"type": "run", "id": 1}, {"type": "observation", "id": 1, "observation": {"steps": {"s1": {}}}}, {"id": 1}]
)
def test_a_line_of_another_form_is_refused_by_the_schema(line: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(line)


def test_a_spec_in_another_environment_is_another_worker() -> None:
    spec = Spec("jax", None, None, (("A", "1"),))
    assert spec.within({"B": "2"}).environment == (("A", "1"), ("B", "2"))
    assert spec.within({"A": "3"}).environment == (("A", "3"),)
