"""Findings for a terminal: alike ones together, the first of each with its question, code and source."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from reports.formats import Group, answers, beside, groups, places, sides
from reports.gate import Report
from reports.kinds import DENY, KINDS
from reports.style import Style, style_of, wrapped
from reports.visible import line

#: Places in somebody's code that are listed for one group; more are counted.
_PLACES = 12


def render(report: Report, style: Style | None = None, *, full: bool = True) -> str:
    """Return the whole text; not full, without the native code."""
    style = style or style_of()
    return style.fit("\n".join(_lines(report, style, full)) + "\n")


def _lines(report: Report, style: Style, full: bool) -> Iterator[str]:
    yield from wrapped(sides(report), style, 5)
    yield from wrapped([f"note: {line(note)}" for note in report.comparison.notes], style, 6)
    yield ""
    yield from (style.paint(text, "title") for text in wrapped([report.headline], style))
    heading = None
    for group in groups(report.findings):
        finding = group.first
        mine = finding.used, finding.level, finding.change.kind
        if mine != heading:
            heading = mine
            where = "in your code, " if finding.used else ""
            word = "denied" if finding.level == DENY else "to look at"
            text = f"{where}{word}: {finding.change.kind}, {KINDS[finding.change.kind].says}"
            yield ""
            yield from (style.paint(part, "wrong" if finding.level == DENY else "warn") for part in wrapped([text], style, 2))
        yield from _group(group, style, full)
    if full and any(group.first.code for group in groups(report.findings)):
        words = [str(record.path) for record in report.records]
        words += [word for target in report.targets for word in ("--target", target)]
        words += [word for glob in report.cases for word in ("--case", glob)]
        chosen = " ".join(map(quote, words))
        yield ""
        yield from wrapped([line(f"each as a complete script: python -m reports gate {chosen} --format markdown")], style, 2)
    if report.accepted:
        yield ""
        told = (f"accepted: {one.target} {one.case}, {one.kind}: {line(entry.reason)}" for one, entry in report.accepted)
        yield from wrapped(told, style, 2)


def _group(group: Group, style: Style, full: bool) -> Iterator[str]:
    finding, one = group.first, group.first.change
    if not one.case:
        yield from wrapped([f"  {line(f'{one.target}: {one.detail}' if one.target else one.detail)}"], style, 4)
        return
    name = "" if len(group.findings) == 1 else f" ({len(group.findings)} cases)"
    yield style.paint(f"  {line(one.target)} {one.case}{name}", "title")
    also = ", ".join(beside(finding))
    told = [f"{line(answers(finding))}{f'; also {also}' if also else ''}{f'; {one.detail}' if one.detail else ''}", finding.question]
    told += [f"{word}: {line(text)}" for word, text in (("was", one.was), ("now", one.now)) if text]
    if finding.look_for:
        near = f", together with {' and '.join(finding.beside)}" if finding.beside else ""
        told.append(f"look for: {' or '.join(finding.look_for)}{near}")
    told.append(f"look at: {KINDS[one.kind].advice}")
    if finding.source:
        told += [line(finding.promise), f"source: {finding.source}"]
    yield from wrapped([f"    {text}" for text in told if text], style, 6)
    found = list(places(group.uses))
    yield from (f"    {'your code:' if n == 0 else '          '} {text}" for n, text in enumerate(found[:_PLACES]))
    if len(found) > _PLACES:
        yield f"               and {len(found) - _PLACES} more places"
    if full and finding.code:
        yield "    ask it yourself:"
        yield from (f"        {text}" for text in finding.code)
    likewise = [other.change.case for other in group.findings[1:]]
    if likewise:
        yield from wrapped([f"    likewise: {', '.join(likewise)}"], style, 6)
