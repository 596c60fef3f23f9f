"""What the gate found, in the forms that people and machines read: a module each."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.compare import plain
from reports.gate import Finding, Report
from reports.visible import line

if TYPE_CHECKING:
    from reports.uses import Use

FORMATS = ("text", "markdown", "json", "github", "junit", "sarif")


@dataclass(frozen=True)
class Group:
    """Findings that are alike: of one target, with the same differences."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """Return the one that stands for all."""
        return self.findings[0]

    @property
    def uses(self) -> list[Use]:
        """Return where all of them are used, what is sure first."""
        found: dict[tuple[object, ...], Use] = {}
        for finding in self.findings:
            for use in finding.uses:
                key = use.path, use.line
                found[key] = use if use.sure else found.get(key, use)
        return sorted(found.values(), key=lambda use: (not use.sure, str(use.path), use.line))


def groups(findings: Iterable[Finding]) -> list[Group]:
    """Return findings with alike ones together, in the order of the first of each."""
    found: dict[object, list[Finding]] = {}
    for finding in findings:
        one = finding.change
        key = (one.target, one.differences, one.detail, finding.level, finding.used) if one.case else id(finding)
        found.setdefault(key, []).append(finding)
    return [Group(tuple(members)) for members in found.values()]


def answers(finding: Finding) -> str:
    """Return old → new as the naming kind sees it: the answers, or the facet that changed."""
    one = finding.change
    if not one.case:
        return ""
    first = one.differences[0]
    if first.what == "answer":
        return f"{one.old} → {one.new}"
    return f"{one.new}, {first.what}: {first.old} → {first.new}" if one.old == one.new else f"{one.old} → {one.new}"


def beside(finding: Finding) -> Iterator[str]:
    """Yield the other differences of a change, as `kind (what: old → new)`; not the facets that go with the answer."""
    first, *others = finding.change.differences
    for other in others:
        if first.what == "answer" and other.kind == first.kind:
            continue
        yield other.kind if other.what == "answer" else f"{other.kind} ({other.what}: {line(other.old)} → {line(other.new)})"


def sides(report: Report) -> Iterator[str]:
    """Yield what was compared: a line for each record."""
    for name, record, targets in (
        ("OLD", report.records[0], [pair.old for pair in report.comparison.pairs]),
        ("NEW", report.records[1], [pair.new for pair in report.comparison.pairs]),
    ):
        told = ", ".join(f"{plain(target)} {target.version}" for target in targets)
        yield line(f"{name}  {record.path} ({record.started}): {told}")


def places(uses: Sequence[Use]) -> Iterator[str]:
    """Yield where something is used, as `file:line: text`."""
    for use in uses:
        yield line(f"{use.path}:{use.line}: {use.text}{'' if use.sure else ' (perhaps)'}")


def render(form: str, report: Report) -> str:
    """Return the findings in one of FORMATS."""
    # A module called `json` would be mistaken for the standard library's by a reader.
    module = importlib.import_module(f"reports.formats.{'plain_json' if form == 'json' else form}")
    return str(module.render(report))
