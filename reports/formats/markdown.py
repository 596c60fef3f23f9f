"""Findings as Markdown, for a pull request or a job's summary: a table, and what is behind each row."""

from __future__ import annotations

from collections.abc import Iterator

from tabulate import tabulate

from reports.formats import Group, answers, beside, groups, places, sides
from reports.gate import Report
from reports.kinds import DENY, KINDS
from reports.markdown import plain
from reports.visible import line


def render(report: Report) -> str:
    """Return the whole document."""
    return "\n".join(_document(report)) + "\n"


def _document(report: Report) -> Iterator[str]:
    yield "# Upgrade gate\n"
    yield f"**{plain(report.headline)}**\n"
    yield from (f"- {plain(text)}" for text in (*sides(report), *(f"note: {line(note)}" for note in report.comparison.notes)))
    found = groups(report.findings)
    if found:
        yield ""
        heads = ["", "kind", "target", "case", "change", *(["your code"] if report.searched else [])]
        yield str(tabulate([_row(group, report.searched) for group in found], heads, tablefmt="pipe", disable_numparse=True))
        for group in found:
            yield from _details(group)
    if report.accepted:
        yield "\n## Accepted\n"
        yield from (f"- {plain(f'{one.target} {one.case}, {one.kind}: {entry.reason}')}" for one, entry in report.accepted)


def _row(group: Group, searched: bool) -> list[str]:
    finding, one = group.first, group.first.change
    more = f" and {len(group.findings) - 1} more" if len(group.findings) > 1 else ""
    changed = plain(line(answers(finding) or one.detail))
    mark = "❌" if finding.level == DENY else "⚠️"
    case = f"`{one.case}`{more}" if one.case else ""
    uses = [", ".join(f"`{line(str(use.path))}:{use.line}`" for use in group.uses if use.sure)] if searched else []
    return [mark, one.kind, plain(one.target), case, changed, *uses]


def _details(group: Group) -> Iterator[str]:
    finding, one = group.first, group.first.change
    if not one.case:
        return
    yield f"\n<details><summary>{one.kind}: <code>{one.case}</code> on {plain(line(one.target))}</summary>\n"
    yield f"{plain(finding.question)}\n"
    yield f"- {one.kind}: {KINDS[one.kind].says}. Look at: {plain(KINDS[one.kind].advice)}"
    yield f"- {plain(line(answers(finding)))}{plain(f'; {one.detail}') if one.detail else ''}"
    yield from (f"- also {plain(text)}" for text in beside(finding))
    yield from (f"- {word}: {plain(line(text))}" for word, text in (("was", one.was), ("now", one.now)) if text)
    if finding.look_for:
        near = f", together with {' and '.join(f'`{text}`' for text in finding.beside)}" if finding.beside else ""
        yield f"- look for {' or '.join(f'`{text}`' for text in finding.look_for)}{near}"
    yield from (f"- your code: {plain(text)}" for text in places(group.uses))
    if finding.source:
        yield f"- {plain(line(finding.promise))} ([source]({finding.source}))"
    if len(group.findings) > 1:
        yield f"- likewise {', '.join(f'`{other.change.case}`' for other in group.findings[1:])}"
    if finding.script:
        yield f"\n```python\n{finding.script.rstrip()}\n```"
    yield "\n</details>"
