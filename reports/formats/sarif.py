"""Findings as SARIF 2.1.0: a rule for each kind, a result for each change, at the places in somebody's code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from reports import SUITE
from reports.formats import answers
from reports.gate import Finding, Report
from reports.kinds import DENY, KINDS
from reports.visible import line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ORDER = list(KINDS)


def render(report: Report) -> str:
    """Return the whole document."""
    record = report.records[1].path
    run = {
        "tool": {"driver": {"name": "device-semantics", "version": SUITE, "rules": [_rule(name) for name in KINDS]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, record) for finding in report.findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(name: str) -> dict[str, Any]:
    kind = KINDS[name]
    return {
        "id": name, "shortDescription": {"text": kind.says}, "help": {"text": kind.advice},
        "defaultConfiguration": {"level": "error" if kind.level == DENY else "warning"},
    }  # fmt: skip


def _result(finding: Finding, record: Path) -> dict[str, Any]:
    one = finding.change
    head = f"{one.target} {one.case}: {answers(finding)}" if one.case else f"{one.target}: {one.detail}".removeprefix(": ")
    parts = [head, finding.question]
    parts += [f"{word}: {text}" for word, text in (("was", one.was), ("now", one.now)) if text]
    parts += [f"Look for {' or '.join(finding.look_for)}."] if finding.look_for else []
    key = "\0".join((one.kind, one.target, one.case, one.old, one.new, *(d.what for d in one.differences), "" if one.case else one.detail))
    return {
        "ruleId": one.kind, "ruleIndex": _ORDER.index(one.kind), "level": "error" if finding.level == DENY else "warning",
        "message": {"text": "\n".join(line(part) for part in parts if part)},
        "locations": _locations(finding, record),
        "partialFingerprints": {"change/v1": hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:32]},
        "properties": {"target": one.target, "case": one.case, "others": list(one.others), "source": finding.source},
    }  # fmt: skip


def _locations(finding: Finding, record: Path) -> list[dict[str, Any]]:
    """Return where it is: in somebody's code, in an accept file, or in the record that has the new answer."""
    places: list[tuple[Path, int]] = [(use.path, use.line) for use in finding.uses if use.sure]
    if not places:
        places = [(finding.entry.path, finding.entry.line) if finding.entry is not None else (record, 1)]
    logical = [{"fullyQualifiedName": f"{finding.change.target}::{finding.change.case}", "kind": "member"}] if finding.change.case else []
    return [
        {
            "physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": number}},
            **({"logicalLocations": logical} if logical else {}),
        }
        for path, number in places
    ]


def _uri(path: Path) -> str:
    return path.as_uri() if path.is_absolute() else path.as_posix().replace("%", "%25").replace(" ", "%20")
