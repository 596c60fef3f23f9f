"""Findings as JSON, for programs: everything that is known of each."""

from __future__ import annotations

import json
from typing import Any

from reports import SUITE
from reports.changes import Change
from reports.compare import Pair
from reports.gate import Finding, Report
from reports.kinds import KINDS
from reports.uses import Use


def render(report: Report) -> str:
    """Return the whole document."""
    return json.dumps(to_json(report), indent=1) + "\n"


def to_json(report: Report) -> dict[str, Any]:
    """Return the findings as plain data."""
    comparison = report.comparison
    return {
        "suite": SUITE, "status": report.status, "headline": report.headline, "notes": list(comparison.notes),
        "old": str(report.records[0].path), "new": str(report.records[1].path),
        "targets": [_pair(pair) for pair in comparison.pairs],
        "compared": len(comparison.compared), "answered": comparison.answered,
        "findings": [_finding(finding) for finding in report.findings],
        "accepted": [{**change_json(one), "reason": entry.reason} for one, entry in report.accepted],
        "allowed": [change_json(one) for one in report.allowed],
    }  # fmt: skip


def _pair(pair: Pair) -> dict[str, str]:
    return {"target": pair.name, "old": pair.old.version, "new": pair.new.version, "evidence": pair.new.evidence}


def change_json(one: Change) -> dict[str, Any]:
    """Return a change as plain data."""
    return {
        "kind": one.kind, "others": list(one.others), "target": one.target, "case": one.case, "old": one.old, "new": one.new,
        "differences": [vars(difference) for difference in one.differences if difference.what],
        "was": one.was, "now": one.now, "detail": one.detail, "cases": list(one.cases),
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "level": finding.level, **change_json(finding.change), "advice": KINDS[finding.change.kind].advice, "question": finding.question,
        "look_for": list(finding.look_for), "beside": list(finding.beside), "script": finding.script,
        "promise": finding.promise, "source": finding.source, "uses": [_use(use) for use in finding.uses],
    }  # fmt: skip


def _use(use: Use) -> dict[str, Any]:
    return {"path": str(use.path), "line": use.line, "text": use.text, "sure": use.sure}
