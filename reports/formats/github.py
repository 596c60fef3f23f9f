"""Findings as workflow commands of GitHub Actions: an annotation each, at the place in somebody's code where there is one.

The step's summary is Markdown, and goes to the file that `GITHUB_STEP_SUMMARY` names.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.formats import Group, answers, groups
from reports.gate import Finding, Report
from reports.kinds import DENY, KINDS
from reports.uses import Use
from reports.visible import line


def render(report: Report) -> str:
    """Return the commands, a line each."""
    found = [text for group in groups(report.findings) for text in _annotations(group)]
    return "\n".join([*found, line(report.headline)]) + "\n"


def _annotations(group: Group) -> Iterator[str]:
    finding = group.first
    level = "error" if finding.level == DENY else "warning"
    title = f"{finding.change.kind} on {finding.change.target}" if finding.change.target else finding.change.kind
    places: list[Use | None] = [use for use in group.uses if use.sure]
    for use in places or [None]:
        where = _place(use, finding)
        properties = ",".join(f"{key}={_property(value)}" for key, value in (*where, ("title", title)))
        yield f"::{level} {properties}::{_data(_message(group))}"


def _place(use: Use | None, finding: Finding) -> list[tuple[str, str]]:
    if use is not None:
        return [("file", use.path.as_posix()), ("line", str(use.line))]
    return [("file", finding.entry.path.as_posix()), ("line", str(finding.entry.line))] if finding.entry is not None else []


def _message(group: Group) -> str:
    finding, one = group.first, group.first.change
    if not one.case:
        return line(one.detail)
    more = f" (and {len(group.findings) - 1} more cases)" if len(group.findings) > 1 else ""
    parts = [f"{one.case}{more}: {answers(finding)}", *(f"{word}: {text}" for word, text in (("was", one.was), ("now", one.now)) if text)]
    parts += [f"look for {' or '.join(finding.look_for)}"] if finding.look_for else []
    return "\n".join(map(line, [*parts, KINDS[one.kind].advice]))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(line(text)).replace(":", "%3A").replace(",", "%2C")
