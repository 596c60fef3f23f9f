"""From what a worker observed to a cell: status, answer, facets, evidence, verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases.answers import Inconclusive
from cases.case import Case
from cases.contract import UNPINNED, Contract, contract_for
from cases.errors import devices_named, operation_named
from cases.reading import REDUCED, Reading, walk

ANSWERED = "answered"
#: Statuses that are behaviour; all others say why there is no answer.
BEHAVIOUR = (ANSWERED, "crashed", "hung")
STATUSES = (*BEHAVIOUR, "not-offered", "not-applicable", "unavailable", "not-modelled", "inconclusive", "not-run")
#: From the strongest to the weakest.
EVIDENCE = ("measured", "simulated", "documented")


def applicable(case: Case, target: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (status, reason) when a case can't be asked of a target, without asking; else None.

    `target` is what the worker said of it: roles, operations, dtypes, environments.
    """
    roles = target["roles"]
    for role in sorted(case.program.roles - {"device"}):
        if role not in roles:
            return "not-applicable", f"{target['target']} has no {role}"
    if case.environment is not None and case.environment not in target["environments"]:
        return "not-offered", f"{target['framework']} has no switch for {case.environment}"
    if target.get("untimed") and case.program.timed:
        return "not-modelled", target["untimed"]
    # First what no other operand would mend.
    for operation in sorted(case.program.operations):
        if operation not in target["operations"]:
            return "not-offered", f"{target['framework']} offers no {operation}"
    for dtype in sorted(case.program.dtypes):
        if dtype not in target["dtypes"]:
            return "not-offered", f"{target['framework']} has no dtype {dtype}"
    return None


def evidence(case: Case, target: Mapping[str, Any], reading: Reading | None = None) -> str:
    """Return the weakest evidence of the roles that the case uses, and of where its values landed that it placed nowhere."""
    roles = target["roles"]
    fallback = "accelerator" if "accelerator" in roles else "host"
    used = {fallback if role == "device" else role for role in case.program.roles} or {"host"}
    told: list[Any] = []
    if reading is not None:
        # Probes ask whether the device still works, which is not the question.
        asked = (reading.steps.get(step["id"], {}) for step in case.program.asked)
        landed = [fact.get("value", {}) for fact in asked]
        # Of another handle for a device that has a role the name alone is told.
        there = {text for value in landed for text in (value.get("role"), value.get("device"))}
        used |= {role for role, facts in roles.items() if {role, facts["name"]} & there}
        # A device without a role has its evidence said by the value itself.
        told = [value.get("evidence") for value in landed]
    found = [roles[role]["evidence"] for role in used if role in roles] + [how for how in told if how in EVIDENCE] or ["measured"]
    return str(max(found, key=EVIDENCE.index))


def judge(case: Case, target: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Make a cell of a worker's reply: `{"observation": ...}`, or `{"status": ..., "why": ...}`."""
    cell = observed(case, target, reply)
    if cell["status"] in BEHAVIOUR:
        cell.update(verdicts(case, target, cell["answer"] or cell["status"]))
    return cell


def observed(case: Case, target: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Make a cell that isn't held against any contract: two answers are compared without one."""
    cell: dict[str, Any] = {
        "type": "cell", "target": target["target"], "case": case.id, "program": case.program.digest,
        "status": ANSWERED, "answer": None, "class": None, "facets": {}, "evidence": evidence(case, target),
        "verdict": None, "norm": None, "why": "",
    }  # fmt: skip
    if "seconds" in reply:
        cell["seconds"] = reply["seconds"]
    observation = reply.get("observation")
    if observation is None:
        cell["status"], cell["why"] = reply["status"], reply.get("why", "")
    else:
        cell["observation"] = observation
        reading = Reading(case.program, observation, case.wanted)
        cell["evidence"] = evidence(case, target, reading)
        _answer(case, cell, reading, target)
    return cell


def verdicts(case: Case, target: Mapping[str, Any], behaviour: str) -> dict[str, Any]:
    """Hold an answer against the framework's own contract and against the norm."""
    where = case.id, target["device"], target["version"]
    own = contract_for(target["framework"])
    found: dict[str, Any] = {"verdict": own.verdict(*where, behaviour), "norm": norm_verdict(case, target, behaviour)}
    stale = own.stale(*where, behaviour)
    # Contracts speak of frameworks as they come: a variable that changes answers may hide a bug without mending it.
    seen_here = stale is not None and stale.evidence in ("", evidence(case, target))
    if stale is not None and seen_here and case.environment is None and not target["environment"]:
        found["stale"] = f"known deviation is gone: {stale.says} ({stale.source})"
    return found


def norm_verdict(case: Case, target: Mapping[str, Any], behaviour: str) -> str:
    """Hold an answer against the array API standard's device rules."""
    norm: Contract = contract_for("norm")
    verdict = norm.verdict(case.id, target["device"], "0", behaviour)
    return UNPINNED if verdict != "conforms" and norm.promise(case.id, target["device"], "0") is None else verdict


def _answer(case: Case, cell: dict[str, Any], reading: Reading, target: Mapping[str, Any]) -> None:
    stopped = reading.unanswerable()
    setup = reading.setup_error()
    if stopped:
        cell["status"], cell["why"] = stopped
    elif setup:
        operation, error = setup
        cell["status"] = "inconclusive"
        cell["why"] = f"the {operation} that the question needs was refused: {error['type']}: {first_line(error['text'])}"
    else:
        try:
            cell["answer"] = case.answers.decide(reading)
            cell["class"] = case.answers.class_of(cell["answer"])
        except Inconclusive as reason:
            # What can't be decided because a simulation holds no values is not the framework's fault.
            cell["status"], cell["why"] = "inconclusive" if reading.readable() else "not-modelled", str(reason)
        cell["facets"] = facets(reading, target)


def facets(reading: Reading, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smaller facts around an answer."""
    found: dict[str, Any] = {}
    result = reading.value("result")
    if result.get("kind") == "tensor":
        found["result.device"] = result.get("role") or result.get("device")
        found["result.dtype"] = result.get("dtype")
        for key in ("committed", "memory"):
            if result.get(key) not in (None, "device"):
                found[f"result.{key}"] = result[key]
        if result.get("weak"):  # a dtype that gives way to any other
            found["result.weak"] = True
    elif result.get("kind") == "python":
        found["result.type"] = result.get("type")
    found.update(_value_facets(reading))
    error = reading.error("result") or reading.late_error()
    if error:
        found.update(_error_facets(reading, error, target))
    identity = reading.value("identity")
    if identity:
        found["identity"] = "object" if identity["object"] else {True: "storage", False: "none", None: "unknown"}[identity["storage"]]
    comparison = result if result.get("kind") == "comparison" else {}
    found.update({key: comparison[key] for key in ("equal", "mirrored", "hash") if key in comparison})
    warned = sorted({w["category"] for name in reading.program.marks for w in reading.fact(name).get("warnings", [])})
    if warned:
        found["warnings"] = warned
    return found


def _value_facets(reading: Reading) -> dict[str, Any]:
    marks = [m for m in ("value", "again") if reading.fact(m).get("value")]
    if not marks:
        times = reading.value("result")
        return {key: times[key] for key in ("size", "chain", "rounds") if key in times}
    right = [reading.right(m) for m in marks]
    if None in right:
        readable = all(reading.value(m).get("readable", True) for m in marks)
        return {} if readable else {"value": "not observable"}
    if all(right):
        return {"value": "right"}
    close = [reading.step_right(reading.program.marks[m], REDUCED) for m in marks]
    return {"value": "right in reduced precision" if all(close) else "wrong"}


def _error_facets(reading: Reading, error: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    text = error["text"]
    asked = next((s for s in walk(reading.program.steps) if s["id"] == reading.program.marks.get("result")), {})
    found: dict[str, Any] = {
        "error.type": error["type"],
        "error.surfaces": "when named" if reading.error("named") else "at the call" if reading.error("result") else "later",
        "error.names": devices_named(reading, text, target),
        "error.operation": operation_named(str(asked.get("op", "?")), text),
    }
    operands = [reading.step_right(step) for step in reading.program.operands]
    if operands:
        found["operands"] = "damaged" if False in operands else "unknown" if None in operands else "intact"
    if reading.program.healthy is not None:
        healthy = reading.steps.get(reading.program.healthy)
        if healthy is not None:  # the probes run only after a refusal that they know of
            found["device works"] = "value" in healthy and reading.step_right(reading.program.healthy) is not False
    return found


def first_line(text: str) -> str:
    """Return the first line of a text, for a sentence."""
    return text.strip().splitlines()[0][:200] if text.strip() else "(no text)"
