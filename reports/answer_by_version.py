"""The history of answers as texts: for a terminal, as Markdown, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cases import catalogue
from reports.history import History, Line, Span
from reports.style import Style, wrapped
from reports.visible import line


def terminal(history: History, style: Style, *, full: bool) -> str:
    """Return each target's questions whose answers changed, or all, with their spans."""
    lines: list[str] = []
    for target, releases in history.releases.items():
        lines += wrapped([line(head(history, target))], style)
        lines += [line(f"asked: {', '.join(releases)}")] if len(releases) > 1 else []
        wide = max(map(len, releases))
        for one in _shown(history, target, full=full):
            lines += ["", style.paint(one.case, "title"), f"  {catalogue()[one.case].question}"]
            lines += [f"  {text}" for text in _rows(one, style, wide)]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def head(history: History, target: str) -> str:
    """Return what is known of a target, in a sentence."""
    releases = history.releases[target]
    lines = [one for one in history.lines if one.target == target]
    changed = sum(bool(one.steps) for one in lines)
    return f"{target}: {len(lines)} questions answered by some of {len(releases)} releases, {changed} of them not always alike"


def _shown(history: History, target: str, *, full: bool) -> list[Line]:
    return [one for one in history.lines if one.target == target and (full or one.steps)]


def _rows(one: Line, style: Style, wide: int) -> Iterator[str]:
    """Yield a row for each span, with the kinds of the change that began it, and one for each change within."""
    steps = {step.version: step for step in one.steps}
    for span in one.spans:
        mark = style.mark(span.kind) if span.kind else "·"
        told = f"{_range(span, wide)}  {style.paint(f'{mark} {span.outcome}', span.kind) if span.kind else f'{mark} {span.outcome}'}"
        begun = steps.pop(span.since, None)
        yield told + (f"  ({begun.kinds})" if begun else "")
        for version in [version for version, cell in one.cells if version in steps and _within(one, span, version)]:
            yield f"  {line(version)}: {steps.pop(version).told()}"


def _within(one: Line, span: Span, version: str) -> bool:
    names = [name for name, _ in one.cells]
    return names.index(span.since) <= names.index(version) <= names.index(span.until)


def _range(span: Span, wide: int) -> str:
    since, until = line(span.since), line(span.until)
    return f"{since:>{wide}} {'–' if since != until else ' '} {until if since != until else '':<{wide}}"


def markdown(history: History, *, full: bool) -> str:
    """Return a table for each target."""
    lines: list[str] = []
    for target in history.releases:
        lines += [f"### {_cell(head(history, target))}", "", "| question | answers | changes |", "|---|---|---|"]
        for one in _shown(history, target, full=full):
            spans = "<br>".join(f"{span.outcome} {_range(span, 0).strip()}" for span in one.spans)
            steps = "<br>".join(_cell(f"{step.version}: {step.kinds}") for step in one.steps)
            lines.append(f"| `{one.case}` {_cell(catalogue()[one.case].question)} | {spans} | {steps} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return line(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def json_text(history: History, *, full: bool) -> str:
    """Return it as an object."""
    data: dict[str, Any] = {
        "targets": {target: list(releases) for target, releases in history.releases.items()},
        "lines": [
            {
                "target": one.target, "case": one.case, "question": catalogue()[one.case].question,
                "spans": [vars(span) for span in one.spans],
                "changes": [
                    {
                        "before": step.before, "version": step.version, "kind": step.change.kind, "others": list(step.change.others),
                        "differences": [vars(difference) for difference in step.change.differences],
                    }
                    for step in one.steps
                ],
            }
            for target in history.releases for one in _shown(history, target, full=full)
        ],
    }  # fmt: skip
    return json.dumps(data, indent=1) + "\n"
