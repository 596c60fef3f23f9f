"""Findings as JUnit XML: a test case for each cell that was compared, a failure for what is denied."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as Tree

from reports.formats import answers, beside, places
from reports.gate import Finding, Report
from reports.kinds import DENY, KINDS
from reports.visible import line

#: The suite of what is about whole records and targets.
_RECORDS = "records"


def render(report: Report) -> str:
    """Return the whole document."""
    suites: dict[str, dict[str, list[Finding]]] = {pair.name: {} for pair in report.comparison.pairs}
    for target, case in report.comparison.compared:
        suites[target][case] = []
    for finding in report.findings:
        one = finding.change
        name = one.case or f"{one.kind}: {one.detail}"
        suites.setdefault(one.target if one.case else _RECORDS, {}).setdefault(name, []).append(finding)
    root = Tree.Element("testsuites", _counts("upgrade gate", suites.values()))
    for target, cases in suites.items():
        suite = Tree.SubElement(root, "testsuite", _counts(target, [cases]))
        for name, findings in cases.items():
            test = Tree.SubElement(suite, "testcase", {"classname": line(target), "name": line(name), "time": "0"})
            for finding in findings:
                _add(test, finding)
    Tree.indent(root)
    # Two characters are no control characters and yet nothing that XML can hold.
    text = Tree.tostring(root, encoding="unicode").translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _counts(name: str, suites: Iterable[dict[str, list[Finding]]]) -> dict[str, str]:
    tests = [findings for cases in suites for findings in cases.values()]
    failures = sum(any(finding.level == DENY for finding in findings) for findings in tests)
    return {"name": line(name), "tests": str(len(tests)), "failures": str(failures), "errors": "0", "skipped": "0"}


def _add(test: Tree.Element, finding: Finding) -> None:
    one = finding.change
    head = f"{one.kind}: {line(answers(finding) or one.detail)}"
    told = [finding.question, *(f"also {text}" for text in beside(finding)), one.detail if one.case else "", one.was, one.now]
    told += [f"look for {text}" for text in finding.look_for] + [KINDS[one.kind].advice, finding.source, *places(finding.uses)]
    body = "\n".join(line(text) for text in told if text)
    if finding.level == DENY:
        failure = Tree.SubElement(test, "failure", {"type": one.kind, "message": head})
        failure.text = body
    else:
        out = Tree.SubElement(test, "system-out")
        out.text = f"{head}\n{body}"
