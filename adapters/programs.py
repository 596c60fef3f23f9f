"""Programs for the rules of a check, and what is to be found in their observations (controller side)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.conversation import NotChecked, Talk, Wrong, short

FLOAT = {"dtype": "float32"}
#: Roles that a value can be on; the fourth is another name for one of them.
PLACES = ("host", "accelerator", "peer")
_TWO, _THREE = [2.0, 3.0], [2.0, 3.0, 5.0]

Step = dict[str, Any]
Facts = dict[str, Any]


# --- making programs -----------------------------------------------------------------------------


def step(name: str, op: str, *args: Any, **more: Any) -> Step:
    """Return a step; `more` are its attempt, when and kw."""
    return {"id": name, "op": op, **({"args": list(args)} if args else {}), **more}


def ref(name: str) -> dict[str, str]:
    """Return an argument that is an earlier step's value."""
    return {"ref": name}


def at(role: str) -> dict[str, str]:
    """Return an argument that is a device."""
    return {"device": role, "spelled": "object"}


def made(name: str, values: Any = _TWO, role: str = "device", dtype: dict[str, str] = FLOAT, **more: Any) -> Step:
    """Return a step that makes a tensor of values."""
    return step(name, "tensor", {"data": values}, dtype, at(role), **more)


def added(name: str, left: str, right: str, **more: Any) -> Step:
    """Return a step that adds two values."""
    return step(name, "add", ref(left), ref(right), **more)


def look(name: str, of: str, **more: Any) -> Step:
    """Return a step that reads a value."""
    return step(name, "observe", ref(of), **more)


def refusing(talk: Talk, kind: str) -> Callable[..., Step]:
    """Return what makes a step that the framework refuses, with OPERANDS before it. Raises NotChecked where nothing is found."""
    for op, *args in _REFUSABLE:
        if op in talk.hello["operations"]:
            facts = talk.run(kind, [*OPERANDS, step("s3", op, *args, attempt=True)])["steps"]
            if "error" in fact_of(facts, "s3"):
                return lambda name, **more: step(name, op, *args, **more)
    raise NotChecked("nothing is known here that it refuses")


#: Two elements, and three, and what no framework is known to do with them.
OPERANDS = [made("s1"), made("s2", _THREE)]
_REFUSABLE: tuple[tuple[Any, ...], ...] = (
    ("add", ref("s1"), ref("s2")), ("reshape", ref("s1"), [3]), ("tensor", {"data": _TWO}, FLOAT, at("misspelt")),
)  # fmt: skip


def offers(talk: Talk, *names: str) -> None:
    """Raise NotChecked unless the worker offers operations, and a dtype to ask them of."""
    for name in names:
        if name not in talk.hello["operations"]:
            raise NotChecked(f"it offers no {name}")
    if "float32" not in talk.hello["dtypes"]:
        raise NotChecked("it offers no float32")


# --- reading observations ------------------------------------------------------------------------


def value(facts: Facts, name: str) -> dict[str, Any]:
    """Return a step's value. Raises Wrong for anything else, NotChecked for what it was honest about."""
    fact = fact_of(facts, name)
    for honest in ("not_offered", "not_modelled"):
        if honest in fact:
            raise NotChecked(short(fact[honest]))
    if "value" not in fact:
        raise Wrong(f"step {name} should have a value, and comes to {short(fact)}")
    found: dict[str, Any] = fact["value"]
    return found


def role_of(facts: Facts, name: str) -> Any:
    """Return the role that a step's value is on. Raises Wrong for a value that is no tensor."""
    found = value(facts, name)
    if found["kind"] != "tensor":
        raise Wrong(f"step {name} should make a tensor, and comes to {short(found)}")
    return found["role"]


def fact_of(facts: Facts, name: str) -> dict[str, Any]:
    """Return what is told of a step. Raises Wrong when nothing is."""
    if name not in facts:
        raise Wrong(f"nothing is told of step {name}, which was to be run")
    found: dict[str, Any] = facts[name]
    return found


def error(facts: Facts, name: str) -> None:
    """Make sure that a step that is known to be refused was."""
    fact = fact_of(facts, name)
    if "error" not in fact:
        raise Wrong(f"step {name}, which was refused before, comes to {short(fact)}, which is no error")


def skipped(facts: Facts, name: str, because: str) -> None:
    """Make sure that a step was skipped, because of the step that it refers to."""
    fact = fact_of(facts, name)
    if fact.get("skipped") != because:
        raise Wrong(f"step {name} refers to {because}, which has no value, and comes to {short(fact)}")


def untouched(facts: Facts, name: str, why: str) -> None:
    """Make sure that a step was not run."""
    if name in facts:
        raise Wrong(f"step {name} is run {why}: {short(facts[name])}")


def elements(facts: Facts, name: str, expected: list[Any]) -> dict[str, Any]:
    """Make sure that a value was read right, and return it. Raises NotChecked where there are no values."""
    found = value(facts, name)
    if found.get("readable") is False:
        raise NotChecked(f"it has no values: {short(found.get('why'))}")
    if found.get("elements") != expected:
        raise Wrong(f"of the elements {short(expected)} it reads {short(found.get('elements'))}")
    return found
