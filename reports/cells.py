"""What a record holds: targets and cells, read and written the same way."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cases.answers import CLASSES
from cases.contract import VERDICTS
from cases.judge import ANSWERED, BEHAVIOUR, EVIDENCE, STATUSES

#: The version of the file format. Readers refuse newer ones and know all older ones.
SCHEMA = 1
#: So deep may a line be nested: what a suite writes is a tenth of that, and whoever shows it goes down a call for each level.
DEPTH = 64
#: What a case and an outcome are called. Views take words apart and put them into markup.
_CASE = re.compile("[a-z]+(/[a-z0-9_-]+){1,3}")
_OUTCOME = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_KINDS = tuple(CLASSES)

#: The status of a cell that was asked and didn't decide.
UNDECIDED = "inconclusive"
#: The status of a cell that a simulation can't express.
NOT_MODELLED = "not-modelled"


class RecordError(Exception):
    """A record that can't be written or read; the message is one sentence that says what to do."""


class MalformedError(Exception):
    """A part of a record that isn't made as it must be; the message says what, with the part as its subject."""


def get(data: Any, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
    """Return what stands under a key, of the right type; with a default it may be absent or null. Raises MalformedError."""
    value = data.get(key) if isinstance(data, dict) else None
    if type(value) is kind:  # nearly always, and a record has a hundred thousand of them
        return value
    if value is None and default is not ...:
        return default
    if value is None:
        raise MalformedError(f"lacks {key!r}")
    # To Python a bool is an int, to JSON it is no number.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise MalformedError(f"has {reprlib.repr(value)} as {key!r}")
    return value


def one_of(data: Any, key: str, words: Sequence[str | None]) -> Any:
    """Return the word under a key, which must be one of these. Raises MalformedError."""
    value = data.get(key)
    if value is None and None not in words:
        raise MalformedError(f"lacks {key!r}")
    if not isinstance(value, str | None) or value not in words:
        raise MalformedError(f"has {reprlib.repr(value)} as {key!r}")
    return value


def texts(data: Any, key: str, default: Any = ...) -> Mapping[str, str]:
    """Return a table of texts. Raises MalformedError."""
    found: Mapping[str, str] = get(data, key, dict, default)
    for name in found:
        get(found, name, str)
    return found


def names(data: Any, key: str, pattern: str | re.Pattern[str] = "(?s:.*)") -> tuple[str, ...]:
    """Return a list of texts that fit a pattern. Raises MalformedError."""
    found = get(data, key, list)
    if not all(isinstance(name, str) and re.fullmatch(pattern, name) for name in found):
        raise MalformedError(f"has {reprlib.repr(found)} as {key!r}")
    return tuple(found)


@dataclass(frozen=True)
class Target:
    """A target as a record's header describes it."""

    name: str
    available: bool
    #: Why it didn't start.
    why: str = ""
    framework: str = ""
    #: The device kind (`cuda` in `torch:cuda`).
    device: str = ""
    version: str = ""
    label: str | None = None
    build: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    #: The variables that the adapter looked at and found set.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Role -> `name` (as the framework prints it), `expression` (as it is written), `evidence`.
    roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    #: Everything else that the worker said of it.
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> Target:
        """Take one entry of a header's `targets`. Raises MalformedError."""
        if not get(data, "available", bool):
            return cls(name, False, why=get(data, "why", str))
        roles = get(data, "roles", dict)
        for role in roles:
            for key in ("name", "expression"):
                get(get(roles, role, dict), key, str)
            one_of(roles[role], "evidence", EVIDENCE)
        # Of what else the worker said these are read when its code is written out.
        get(data, "adapter", str, None)
        for key in ("spelled", "phrases"):
            texts(data, key, {})
        own = {
            "framework", "device", "version", "build", "machine", "environment", "roles", "operations", "dtypes", "environments",
            "label", "available", "target", "why",
        }  # fmt: skip
        return cls(
            name, True, framework=get(data, "framework", str), device=get(data, "device", str), version=get(data, "version", str),
            label=get(data, "label", str, None), build=texts(data, "build"), machine=texts(data, "machine"),
            environment=texts(data, "environment"), roles=roles, operations=names(data, "operations"),
            dtypes=names(data, "dtypes"), environments=names(data, "environments"),
            more={key: value for key, value in data.items() if key not in own},
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in a header."""
        if not self.available:
            return {"target": self.name, "available": False, "why": self.why}
        return {
            "target": self.name, "available": True, "framework": self.framework, "device": self.device,
            "version": self.version, "label": self.label, "build": dict(self.build), "machine": dict(self.machine),
            "environment": dict(self.environment), "roles": {role: dict(facts) for role, facts in self.roles.items()},
            "operations": list(self.operations), "dtypes": list(self.dtypes), "environments": list(self.environments),
            **self.more,
        }  # fmt: skip

    @property
    def evidence(self) -> str:
        """Return how answers about this target's own device are come by."""
        own = self.roles.get("accelerator") or self.roles.get("host") or {}
        return own.get("evidence", EVIDENCE[0])

    @property
    def provenance(self) -> tuple[str, ...]:
        """Return what must be alike for two runs of a target to be the same column of a matrix."""
        facts = (self.name, self.label, self.version, dict(self.build), dict(self.machine), dict(self.environment))
        return tuple(json.dumps(fact, sort_keys=True) for fact in facts)


@dataclass(frozen=True)
class Cell:
    """One answer, or why there is none."""

    target: str
    case: str
    #: The digest of the program that was asked.
    program: str
    status: str
    answer: str | None
    #: `works`, `refuses`, `wrong`, `neutral`; None without an answer.
    kind: str | None
    facets: Mapping[str, Any]
    evidence: str
    #: Held against the framework's own contract, and against the norm; None without behaviour.
    verdict: str | None
    norm: str | None
    #: Why there is no answer.
    why: str = ""
    #: What the case's control came to, where the answer leans on it.
    control: str = ""
    #: Set when a known deviation is gone.
    stale: str = ""
    seconds: float | None = None
    #: Different outcomes, in the order they came, where it was asked more than once.
    answers: tuple[str, ...] = ()
    observation: Mapping[str, Any] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """Take one line of a record: all that a view reads is of the form that it reads. Raises MalformedError."""
        status = one_of(data, "status", STATUSES)
        answered, behaves = status == ANSWERED, status in BEHAVIOUR
        # Nothing but an answer may look like one.
        answer = get(data, "answer", str, None)
        if (answer is not None) != answered or not _OUTCOME.fullmatch(answer or status):
            raise MalformedError(f"has {reprlib.repr(answer)} as 'answer' of what is {status}")
        verdicts = VERDICTS if behaves else (None,)
        seconds = get(data, "seconds", (int, float), None)
        if seconds is not None and not 0 <= seconds < math.inf:
            raise MalformedError(f"has {reprlib.repr(seconds)} as 'seconds'")
        case = get(data, "case", str)
        if not _CASE.fullmatch(case):
            raise MalformedError(f"has {reprlib.repr(case)} as 'case'")
        observation = get(data, "observation", dict, ... if answered else None)
        if observation is not None:
            _check_observation(observation)
        found = object.__new__(cls)  # thousands of times: `cls(...)` would set each of them by itself
        found.__dict__.update(
            target=get(data, "target", str), case=case, program=get(data, "program", str), status=status, answer=answer,
            kind=one_of(data, "class", _KINDS if answered else (None,)), facets=get(data, "facets", dict),
            evidence=one_of(data, "evidence", EVIDENCE), verdict=one_of(data, "verdict", verdicts), norm=one_of(data, "norm", verdicts),
            why=get(data, "why", str, ""), control=get(data, "control", str, ""), stale=get(data, "stale", str, ""), seconds=seconds,
            answers=names(data, "answers", _OUTCOME) if "answers" in data else (), observation=observation,
        )  # fmt: skip
        return found

    def of(self, target: str, seconds: float | None) -> Cell:
        """Return the same cell of another target, without the second look at every part that `replace` takes: records have thousands."""
        cell = object.__new__(Cell)
        cell.__dict__.update(self.__dict__, target=target, seconds=seconds)
        return cell

    def to_json(self, *, observation: bool = True) -> dict[str, Any]:
        """Return the cell as it stands in a record, with or without what was observed."""
        data: dict[str, Any] = {
            "type": "cell", "target": self.target, "case": self.case, "program": self.program, "status": self.status,
            "answer": self.answer, "class": self.kind, "facets": dict(self.facets), "evidence": self.evidence,
            "verdict": self.verdict, "norm": self.norm, "why": self.why,
        }  # fmt: skip
        optional = {"control": self.control, "stale": self.stale, "seconds": self.seconds, "answers": list(self.answers)}
        data.update({key: value for key, value in optional.items() if value not in ("", None, [])})
        if observation and self.observation is not None:
            data["observation"] = self.observation
        return data

    @property
    def outcome(self) -> str:
        """Return the answer where there is one, else the status."""
        return self.answer if self.status == ANSWERED and self.answer else self.status

    @property
    def behaves(self) -> bool:
        """Say whether this is behaviour of the target; all else says why there is none."""
        return self.status in BEHAVIOUR

    @property
    def error(self) -> Mapping[str, str] | None:
        """Return the error that the answer is about, or else the first one that was observed."""
        seen = self.observation or {}
        facts = [*seen.get("steps", {}).values(), seen.get("drain") or {}]
        errors = [fact["error"] for fact in facts if "error" in fact]
        return next((error for error in errors if error["type"] == self.facets.get("error.type")), errors[0] if errors else None)


def decided(outcomes: Iterable[str]) -> tuple[str, ...]:
    """Return the different outcomes of asking more than once; that it once didn't decide is none where it did another time."""
    seen = tuple(dict.fromkeys(outcomes))
    return tuple(one for one in seen if one != UNDECIDED) or seen


def readable(line: Mapping[str, Any]) -> None:
    """Check that a cell, once it is written, can be read again. Raises MalformedError."""
    shallow(line)
    Cell.from_json(line)


def shallow(line: Any) -> None:
    """Check that a line isn't nested so deeply that it could not be shown. Raises MalformedError."""
    level = [line]
    for _ in range(DEPTH):
        level = [part for one in level if isinstance(one, dict | list) for part in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return
    raise MalformedError("is nested too deeply")


def _check_observation(observation: Mapping[str, Any]) -> None:
    """Check what views read of an observation. Raises MalformedError."""
    texts(observation, "spelled", {})
    steps = get(observation, "steps", dict)
    for step, fact in (*steps.items(), ("drain", get(observation, "drain", dict, {}))):
        if type(fact) is not dict:
            get(steps, step, dict)
        if "error" in fact:
            error = get(fact, "error", dict)
            get(error, "type", str), get(error, "text", str)
        if "warnings" in fact:
            for warning in get(fact, "warnings", list):
                get(warning, "category", str), get(warning, "text", str)
        if "value" in fact and "size" in get(fact, "value", dict):
            get(fact["value"], "size", int)
