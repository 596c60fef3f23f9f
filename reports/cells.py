"""What a record holds: targets and cells, read and written the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cases.answers import CLASSES
from cases.judge import ANSWERED, BEHAVIOUR, EVIDENCE, STATUSES

#: The version of the file format. Readers refuse newer ones and know all older ones.
SCHEMA = 1


class RecordError(Exception):
    """A record that can't be written or read; the message is one sentence that says what to do."""


class MalformedError(Exception):
    """A part of a record that lacks something; the message says what."""


def _get(data: Any, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
    """Return what stands under a key, of the right type; with a default it may be absent or null."""
    value = data.get(key) if isinstance(data, Mapping) else None
    if value is None and default is not ...:
        return default
    if not isinstance(value, kind):
        raise MalformedError(f"{key!r}")
    return value


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
        if not _get(data, "available", bool):
            return cls(name, False, why=_get(data, "why", str))
        roles = _get(data, "roles", dict)
        for facts in roles.values():
            for key in ("name", "expression", "evidence"):
                _get(facts, key, str)
        own = {
            "framework", "device", "version", "build", "machine", "environment", "roles", "operations", "dtypes", "environments",
            "label", "available", "target", "why",
        }  # fmt: skip
        return cls(
            name, True, framework=_get(data, "framework", str), device=_get(data, "device", str), version=_get(data, "version", str),
            label=_get(data, "label", str, None), build=_get(data, "build", dict), machine=_get(data, "machine", dict),
            environment=_get(data, "environment", dict), roles=roles, operations=tuple(_get(data, "operations", list)),
            dtypes=tuple(_get(data, "dtypes", list)), environments=tuple(_get(data, "environments", list)),
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
        """Take one line of a record. Raises MalformedError."""
        cell = cls(
            target=_get(data, "target", str), case=_get(data, "case", str), program=_get(data, "program", str),
            status=_get(data, "status", str), answer=_get(data, "answer", str, None), kind=_get(data, "class", str, None),
            facets=_get(data, "facets", dict), evidence=_get(data, "evidence", str), verdict=_get(data, "verdict", str, None),
            norm=_get(data, "norm", str, None), why=_get(data, "why", str, ""), stale=_get(data, "stale", str, ""),
            control=_get(data, "control", str, ""),
            seconds=_get(data, "seconds", (int, float), None),
            answers=tuple(map(str, _get(data, "answers", list, ()))), observation=_get(data, "observation", dict, None),
        )  # fmt: skip
        if cell.status not in STATUSES or cell.evidence not in EVIDENCE or cell.kind not in (None, *CLASSES):
            raise MalformedError("words for status, evidence and class that this suite knows")
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
