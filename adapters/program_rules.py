"""What PROTOCOL.md says of programs and observations, a function for each rule: its docstring is the rule (controller side).

The programs are made of what a worker says that it offers. One that offers too little for a rule, or a
device without values, is not checked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.base import MISSING, WHOLE, positions
from adapters.conversation import NotChecked, Talk, Wrong, short
from adapters.programs import (
    FLOAT,
    OPERANDS,
    PLACES,
    Step,
    added,
    at,
    elements,
    error,
    fact_of,
    look,
    made,
    offers,
    ref,
    refusing,
    role_of,
    skipped,
    step,
    untouched,
    value,
)  # fmt: skip


def described(talk: Talk, kind: str) -> None:
    """Make a value on the device, of the dtype and shape that were asked for, and tell these and the role."""
    offers(talk, "tensor")
    roles = talk.hello["devices"][kind]["roles"]
    here = [role for role in PLACES if role in roles]
    facts = talk.run(kind, [made(f"s{i}", [[2.0, 3.0]], role) for i, role in enumerate((*here, "device"))])["steps"]
    for i, role in enumerate((*here, "accelerator" if "accelerator" in roles else "host")):
        found = value(facts, f"s{i}")
        wanted = {"kind": "tensor", "device": roles[role]["name"], "role": role, "dtype": "float32", "shape": [1, 2]}
        for key, expected in wanted.items():
            if found.get(key) != expected:
                raise Wrong(f"a float32 tensor of shape [1, 2] on the {role} has {key} {short(found.get(key))}, not {short(expected)}")


def unread(talk: Talk, kind: str) -> None:
    """Read no value that the program doesn't ask for."""
    offers(talk, "tensor", "add")
    facts = talk.run(kind, [made("s1"), added("s2", "s1", "s1"), look("s3", "s2")])["steps"]
    for name in ("s1", "s2"):
        if "elements" in value(facts, name):
            raise Wrong(f"step {name}, which isn't observe, comes to {short(facts[name])}")
    elements(facts, "s3", [4.0, 6.0])


def observed(talk: Talk, kind: str) -> None:
    """Read all of up to 64 elements, in order."""
    offers(talk, "tensor")
    numbers = [float(i) for i in range(WHOLE)]
    rows = [numbers[i : i + 8] for i in range(0, WHOLE, 8)]
    found = elements(talk.run(kind, [made("s1", rows), look("s2", "s1")])["steps"], "s2", numbers)
    if "at" in found:
        raise Wrong("it says where they are (at), and all are there")


def sampled(talk: Talk, kind: str) -> None:
    """Read of more elements those at the page's positions, and say which."""
    offers(talk, "tensor")
    for count in (WHOLE + 1, 5000):
        where = positions(count)
        facts = talk.run(kind, [made("s1", [float(i) for i in range(count)]), look("s2", "s1")])["steps"]
        found = value(facts, "s2")
        if found.get("readable") is False:
            raise NotChecked(f"it has no values: {short(found.get('why'))}")
        if found.get("at") != where:
            raise Wrong(f"of {count} elements it reads those at {short(found.get('at'))}, not at {short(where)}")
        elements(facts, "s2", [float(i) for i in where])


def numbers(talk: Talk, kind: str) -> None:
    """Tell numbers that JSON doesn't have as the page says, and whole ones and truths as such."""
    offers(talk, "tensor")
    odd: list[Any] = ["nan", "inf", "-inf", 2.5]
    elements(talk.run(kind, [made("s1", odd), look("s2", "s1")])["steps"], "s2", odd)
    plain: dict[str, list[Any]] = {"int32": [2, -3], "bool": [True, False]}
    for dtype in [name for name in plain if name in talk.hello["dtypes"]]:
        found = elements(talk.run(kind, [made("s1", plain[dtype], dtype={"dtype": dtype}), look("s2", "s1")])["steps"], "s2", plain[dtype])
        if [type(item) for item in found["elements"]] != [type(item) for item in plain[dtype]]:
            raise Wrong(f"of the elements {short(plain[dtype])} of {dtype} it reads {short(found['elements'])}")
    if "complex64" in talk.hello["dtypes"]:
        pair = step("s1", "tensor", {"data": [2.0, 3.0], "imag": [5.0, 7.0]}, {"dtype": "complex64"}, at("device"))
        elements(talk.run(kind, [pair, look("s2", "s1")])["steps"], "s2", [[2.0, 5.0], [3.0, 7.0]])


def attempts(talk: Talk, kind: str) -> None:
    """Go on after an attempt that was refused, and skip what refers to it, and what refers to that."""
    offers(talk, "tensor", "add")
    refuse = refusing(talk, kind)
    steps = [
        *OPERANDS, refuse("s3", attempt=True), added("s4", "s3", "s1", attempt=True), added("s5", "s1", "s4", attempt=True),
        added("s6", "s1", "s1"),
    ]  # fmt: skip
    facts = talk.run(kind, steps)["steps"]
    error(facts, "s3")
    skipped(facts, "s4", "s3")
    skipped(facts, "s5", "s4")
    value(facts, "s6")


def ends(talk: Talk, kind: str) -> None:
    """End the program at an error in a step that is no attempt."""
    offers(talk, "tensor", "add")
    refuse = refusing(talk, kind)
    facts = talk.run(kind, [*OPERANDS, refuse("s3"), added("s4", "s1", "s1")])["steps"]
    error(facts, "s3")
    untouched(facts, "s4", "after s3 had failed")


def missing_words(talk: Talk, kind: str) -> None:
    """Say not_offered of an unknown operation, dtype, scope or role, and end the program there, even in an attempt."""
    offers(talk, "tensor", "add")
    wanting: dict[str, Step] = {
        "operation": step("s2", "levitate", ref("s1"), attempt=True),
        "dtype": made("s2", dtype={"dtype": "float7"}, attempt=True),
        "scope": {"id": "s2", "scope": "levitation", "body": [made("s3")], "attempt": True},
    }
    roles = talk.hello["devices"][kind]["roles"]
    wanting |= {f"role ({role})": made("s2", role=role, attempt=True) for role in (*PLACES, "alias") if role not in roles}
    for what, wants in wanting.items():
        facts = talk.run(kind, [made("s1"), wants, added("s4", "s1", "s1")])["steps"]
        value(facts, "s1")
        if "not_offered" not in fact_of(facts, "s2"):
            raise Wrong(f"a step with an unknown {what} comes to {short(facts['s2'])}")
        for name in ("s3", "s4"):
            untouched(facts, name, f"after one with an unknown {what}")


def probes(talk: Talk, kind: str) -> None:
    """Run a probe if one of the steps that it names has an error, and end nothing, whatever it comes to."""
    offers(talk, "tensor", "add")
    refuse = refusing(talk, kind)
    steps = [
        *OPERANDS, refuse("s3", attempt=True), added("s4", "s3", "s1", attempt=True),
        added("s5", "s1", "s1", when=["s3"]), added("s6", "s1", "s1", when=["s1"]), added("s7", "s1", "s1", when=["s1", "s3"]),
        added("s8", "s1", "s1", when=["s4"]), refuse("s9", when=["s3"]), step("s10", "levitate", when=["s3"]),
        look("s11", "s10", attempt=True, when=["s3"]), added("s12", "s1", "s1"),
    ]  # fmt: skip
    facts = talk.run(kind, steps)["steps"]
    error(facts, "s3")
    for name in ("s5", "s7"):
        value(facts, name)
    untouched(facts, "s6", "as a probe of a step without an error")
    untouched(facts, "s8", "as a probe of a step that was skipped")
    error(facts, "s9")
    if "not_offered" not in fact_of(facts, "s10"):
        raise Wrong(f"an operation that isn't there comes to {short(facts['s10'])} in a probe")
    skipped(facts, "s11", "s10")
    if "s12" not in facts:
        raise Wrong("a probe that comes to an error, or is not_offered, ends the program")


def scopes(talk: Talk, kind: str) -> None:
    """Tell the steps in a scope like any others, and end the program around it at an error there."""
    offers(talk, "tensor", "add")
    refuse = refusing(talk, kind)
    for scope in ({"scope": "inference"}, {"scope": "default-device", "args": [at("host")]}):
        body = [*OPERANDS, refuse("s3", attempt=True), refuse("s4"), added("s5", "s1", "s1")]
        facts = talk.run(kind, [{"id": "s0", **scope, "body": body}, made("s6")])["steps"]
        if fact_of(facts, "s0").keys() & {"not_offered", "not_modelled"}:
            continue
        error(facts, "s3")
        error(facts, "s4")
        untouched(facts, "s5", "after s4 had failed in the same scope")
        untouched(facts, "s6", "after s4 had failed in a scope before it")
        facts = talk.run(kind, [{"id": "s0", **scope, "body": [step("s1", "levitate")]}, made("s2")])["steps"]
        if "not_offered" not in fact_of(facts, "s0"):
            raise Wrong(f"a scope of what isn't offered comes to {short(facts['s0'])}")
        untouched(facts, "s2", "after what isn't offered, in a scope before it")
        return
    raise NotChecked("it offers no scope that is known here")


def left(talk: Talk, kind: str) -> None:
    """Leave a scope when the program ends in it: no default device stays for the next program."""
    offers(talk, "tensor", "add", "zeros_uncommitted")
    plain = [step("s1", "zeros_uncommitted", [2])]
    before = role_of(talk.run(kind, plain)["steps"], "s1")
    roles = talk.hello["devices"][kind]["roles"]
    others = [role for role in PLACES if role in roles and role != before]
    if not others:
        raise NotChecked("there is one device")
    refuse = refusing(talk, kind)
    region = {"id": "s0", "scope": "default-device", "args": [at(others[0])], "body": [*OPERANDS, refuse("s3")]}
    facts = talk.run(kind, [region])["steps"]
    value(facts, "s0")
    error(facts, "s3")
    after = role_of(talk.run(kind, plain)["steps"], "s1")
    if after != before:
        raise Wrong(f"a tensor for which no device is said was on the {before}, and then on the {after}")


def forgotten(talk: Talk, kind: str) -> None:
    """Let no program see another's values: a reference to what isn't there is no program."""
    offers(talk, "tensor")
    value(talk.run(kind, [made("s1")])["steps"], "s1")
    talk.refused(talk.request("run", device=kind, program={"steps": [look("s2", "s1", attempt=True)]}))
    talk.alive()


def repeated(talk: Talk, kind: str) -> None:
    """Come to the same when a program is asked again after others."""
    offers(talk, "tensor", "add")
    refuse = refusing(talk, kind)
    program = [*OPERANDS, refuse("s3", attempt=True), added("s4", "s1", "s1"), look("s5", "s4")]
    first = talk.run(kind, program)["steps"]
    talk.run(kind, [*OPERANDS, refuse("s3")])
    second = talk.run(kind, program)["steps"]
    for name in first.keys() | second.keys():
        if first.get(name) != second.get(name):
            raise Wrong(f"step {name} came to {short(first.get(name))}, and then to {short(second.get(name))}")


def given(talk: Talk, kind: str) -> None:
    """Take the roles that a request gives for a device kind that isn't found here."""
    offers(talk, "tensor")
    devices = talk.hello["devices"]
    hidden = next((other for other, facts in devices.items() if not facts["available"]), None)
    if hidden is None:
        raise NotChecked("every device kind that it knows is here")
    found = role_of(talk.run(hidden, [made("s1")], roles={"host": devices[kind]["roles"]["host"]})["steps"], "s1")
    if found != "host":
        raise Wrong(f"a tensor on `device` is on the {found}, though the request's roles are the host alone")


def spelled(talk: Talk, kind: str) -> None:
    """Tell how a device that isn't there was written."""
    told = 0
    for name in MISSING:
        for spelling in ("object", "string"):
            observation = talk.run(kind, [step("s1", "name", {"device": name, "spelled": spelling}, attempt=True)])
            if fact_of(observation["steps"], "s1").keys() & {"not_offered", "not_modelled"}:
                continue
            told += 1
            if f"{name}/{spelling}" not in observation.get("spelled", {}):
                raise Wrong(f"a device that is {name} was named as {spelling}, and {name}/{spelling} is not in `spelled`")
    if not told:
        raise NotChecked("it can't name a device that isn't there")


def own(talk: Talk, kind: str) -> None:
    """Give the page's facts for the operations that every worker has."""
    offers(talk, "tensor")
    numbers = {"data": [2.0, 3.0]}
    facts = talk.run(kind, [
        made("s1"), step("s2", "same", ref("s1"), ref("s1")), step("s3", "name", at("device")), step("s4", "name", at("device")),
        step("s5", "compare", ref("s3"), ref("s4"), attempt=True), step("s6", "barrier"), step("s7", "drop", ref("s1")),
        step("s8", "buffer", numbers, "aligned"), step("s9", "write_buffer", ref("s8"), 9.0),
    ])["steps"]  # fmt: skip
    gives = {
        "s2": ("same", "identity"), "s5": ("compare", "comparison"), "s6": ("barrier", "none"), "s7": ("drop", "none"),
        "s8": ("buffer", "handle"), "s9": ("write_buffer", "none"),
    }  # fmt: skip
    if "error" in fact_of(facts, "s5"):  # a framework may refuse to compare devices
        del gives["s5"]
    for name, (op, wanted) in gives.items():
        if value(facts, name)["kind"] != wanted:
            raise Wrong(f"{op} gives a value of kind {facts[name]['value']['kind']}, not {wanted}")


def timed(talk: Talk, kind: str) -> None:
    """Time a loop round by round, the first one at the head, and tell what it computed."""
    offers(talk, "full", "add", "corner", "item")
    question = {"op": "add", "device": at("device"), "dtype": FLOAT, "chain": 2, "end": "read"}
    question |= {"at_most": 1.0, "at_least": 0.0, "weight": 0}
    found, single = (value(talk.run(kind, [step("s1", "time", kw={**question, "rounds": n})])["steps"], "s1") for n in (2, 0))
    for times in (found, single):
        if times["kind"] != "times":
            raise Wrong(f"time gives a value of kind {times['kind']}")
        expected = 3.0 + 0.5 * times["chain"]
        if abs(times["value"] - expected) > 0.01:
            raise Wrong(f"after {times['chain']} sums of a half, from 3 on, an element is {times['value']}, not {expected}")
    rounds = found.get("rounds")
    if not rounds or len(rounds) != 3:
        raise Wrong(f"of two rounds after the first one it tells {short(rounds)}")
    for one in rounds:
        parts = [one.get(part, -1) for part in ("returned", "read", "synchronised")]
        if parts != sorted(parts) or parts[0] < 0:
            raise Wrong(f"a round is told as {short(one)}: returned, read and synchronised are seconds since its start, in this order")
    if not single["calls"] or "rounds" in single:
        raise Wrong(f"of no rounds it tells {short(single)}, not single calls alone")


#: In the order in which they are checked.
RULES: tuple[Callable[[Talk, str], None], ...] = (
    described, unread, observed, sampled, numbers, attempts, ends, missing_words, probes, scopes, left, forgotten, repeated, given,
    spelled, own, timed,
)  # fmt: skip
