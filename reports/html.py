"""The matrix as one page: a table, and behind each cell what was asked, in whose code, and what came of it.

The page is a single file that loads nothing. Texts that many cells share are kept once, since
most cells of a row differ in little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from cases.answers import CLASSES
from cases.case import AREAS, Case
from cases.contract import Entry, contract_for
from reports import marks
from reports.answer_by_version import head
from reports.cells import Cell
from reports.compare import bare
from reports.headline import headline
from reports.history import History, Line, Step, files, release
from reports.matrix import Column, Matrix
from reports.scripts import Scripts
from reports.writer import now

_HERE = Path(__file__).parent
TITLE = "Device semantics"
_LEAD = (
    "Where values live, what happens when two live apart, what moving costs: the same small questions, "
    "asked of each framework in its own API."
)


def write(matrix: Matrix, path: Path) -> Path:
    """Write the page and return its path. Raises OSError."""
    path.write_text(render(matrix), encoding="utf-8")
    return path


def render(matrix: Matrix, history: History | None = None) -> str:
    """Return the page; with the history of its columns each cell tells since when it is answered so, and where that changed is marked."""
    told = _Told(history)
    data = _Data(matrix, told).to_json()
    style = (_HERE / "page.css").read_text("utf-8")
    script = (_HERE / "page.js").read_text("utf-8")
    page = "".join([
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">",
        '<meta name=viewport content="width=device-width, initial-scale=1"><meta name=color-scheme content="light dark">',
        f"<title>{TITLE}: {'answer by version' if history else f'{len(matrix.columns)} targets'}</title><style>{style}</style></head>",
        f"<body{' class=releases' if history else ''}>",
        *_head(matrix, told),
        '<main><div class=scroll tabindex=-1><table id=matrix><thead><tr><th scope=col class=corner>question</th>',
        *(_column(n, column) for n, column in enumerate(matrix.columns)),
        "</tr></thead>",
        *_body(matrix, told),
        "</table><p id=nothing hidden>No question fits.</p></div>",
        "<aside id=panel hidden tabindex=-1 aria-label=\"what is behind the cell\"></aside></main>",
        # A "<" never ends the element or begins a comment inside it.
        f"<script type=application/json id=data>{data.replace('<', chr(92) + 'u003c')}</script><script>{script}</script></body></html>\n",
    ])  # fmt: skip
    # A lone surrogate is no character of a file; written out it is an escape in the page's data too.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


class _Told:
    """Since when targets answer as they do, as far as the page was given their history."""

    def __init__(self, history: History | None) -> None:
        self.history = history
        self.lines: dict[str, list[Line]] = {}
        for one in history.lines if history else ():
            self.lines.setdefault(one.case, []).append(one)

    def step(self, column: Column, case: str) -> Step | None:
        """Return what changed with a column's release."""
        if not self.lines:
            return None
        name, version = bare(column.target), release(column.target)
        return next((step for one in self.lines.get(case, ()) if one.target == name for step in one.steps if step.version == version), None)

    def sentences(self) -> Iterator[str]:
        """Yield what is known of each target."""
        if self.history:
            for target in self.history.releases:
                yield f"{head(self.history, target)}."


# --- what is seen at once --------------------------------------------------------------------------


def _head(matrix: Matrix, told: _Told) -> Iterator[str]:
    records = ", ".join(f"{escape(name)} ({escape(started[:16].replace('T', ' '))} UTC)" for name, started, _ in matrix.records)
    yield f"<header><h1>{TITLE}</h1><p class=lead>{escape(_LEAD)}</p>"
    for warning in matrix.warnings:
        yield f"<p class=warning role=alert><b>{escape(warning)}</b></p>"
    rows, wide = sum(map(len, matrix.areas.values())), len(matrix.columns)
    shown = f"{rows} question{'s'[: rows != 1]}{'' if told.history else f', {wide} target' + 's'[: wide != 1]}."
    said = escape(" ".join([shown, *told.sentences(), _sentences(matrix)]))
    yield f"<p class=facts>{said} Records: {records}.</p>"
    yield "<div class=tools><label>Find <input id=find type=search placeholder='case, answer or error' autocomplete=off></label>"
    yield "<label>Rows <select id=rows><option value=all>all<option value=differ>that differ between targets"
    yield "<option value=deviate>that deviate from a contract<option value=simulated>with simulated evidence"
    yield "".join(f"<option value={kind}>with: {escape(marks.SAYS[kind])}" for kind in marks.KINDS)
    yield "</select></label><details class=targets><summary>Targets</summary><div>"
    for n, column in enumerate(matrix.columns):
        yield f"<label><input type=checkbox data-column={n} checked> {escape(column.key)}</label>"
    yield "</div></details><nav aria-label=areas>"
    yield "".join(f"<a href=#area-{escape(area)}>{escape(area)}</a>" for area in matrix.areas)
    yield "</nav><span id=count role=status></span></div>"
    yield "<p class=hint>Each cell opens its evidence: what was asked, in the framework's own code, and what came of it.</p>"
    yield "<p class=legend>"
    yield "".join(f"<span class='key {kind}'><i>{marks.MARKS[kind]}</i> {escape(marks.SAYS[kind])}</span>" for kind in marks.KINDS)
    yield "<span class='key simulated'>dashed: simulated</span>"
    yield "<span class='key began'>changed with this release</span>" if told.history else ""
    yield "".join(f"<span class=key><b class=flag>{flag}</b> {escape(says)}</span>" for flag, says in marks.FLAGS.items())
    yield "</p>"
    if matrix.absent or matrix.notes:
        yield "<details class=notes><summary>Not here, and notes</summary><ul>"
        yield "".join(f"<li><b>{escape(name)}</b>: {escape(why)}" for name, why in matrix.absent.items())
        yield "".join(f"<li>{escape(note)}" for note in matrix.notes)
        yield "</ul></details>"
    yield "</header>"


def _sentences(matrix: Matrix) -> str:
    return " ".join(f"{line.rstrip('.')}." for line in headline(matrix))


def _column(n: int, column: Column) -> str:
    target = column.target
    framework, colon, device = target.name.partition(":")
    apart = "".join(f"<small>{escape(fact)}</small>" for fact in column.apart if fact != target.version)
    recorded = f"<small class=recorded>recorded {escape(column.recorded)}</small>" if column.recorded else ""
    return (
        f"<th scope=col><button data-column={n}><span>{escape(framework + colon)}</span><wbr><b>{escape(device)}</b>"
        f"<small>{escape(target.version)}</small>{apart}<em class={target.evidence}>{target.evidence}</em>{recorded}</button></th>"
    )


def _body(matrix: Matrix, told: _Told) -> Iterator[str]:
    row = 0
    for area, cases in matrix.areas.items():
        yield f"<tbody id=area-{escape(area)}><tr class=area><th colspan={len(matrix.columns) + 1}>"
        yield f"<span>{escape(area)} <i>{escape(AREAS.get(area, ''))}</i></span></th></tr>"
        for case in cases:
            name = "<wbr>".join(f"<span>{escape(part)}</span>" for part in re.findall("[^/]+/?", case.partition("/")[2]))
            cells = "".join(_cell(column.cell(case), began=told.step(column, case) is not None) for column in matrix.columns)
            yield f"<tr data-row={row}><th scope=row><button tabindex=-1>{name}</button></th>{cells}</tr>"
            row += 1
        yield "</tbody>"


def _cell(cell: Cell, *, began: bool) -> str:
    kind, tone, flags = marks.kind(cell), marks.tone(cell), marks.flags(cell)
    flag = f"<b class=flag>{flags}</b>" if flags else ""
    names = [kind, *([tone] if tone != kind else []), *(["s"] if cell.behaves and cell.evidence == "simulated" else [])]
    names += ["began"] if began else []
    classes = names[0] if len(names) == 1 else f"'{' '.join(names)}'"
    # A badge stays with the last part of its word, a mark with the first: only between parts a word may break.
    parts = [escape(part) for part in re.findall("[^-]+-?", cell.outcome)]
    if flag:
        parts[-1] = f"<span class=whole>{parts[-1]}{flag}</span>"
    return f"<td class={classes}><button tabindex=-1><i>{marks.MARKS[kind]}</i>&nbsp;{''.join(parts)}</button>"


# --- what is behind a cell -------------------------------------------------------------------------


class _Data:
    """Everything that the page's panel shows, with each text kept once."""

    def __init__(self, matrix: Matrix, told: _Told) -> None:
        self.matrix = matrix
        self.told = told
        self.texts: dict[str, int] = {}
        self.entries: dict[tuple[object, ...], int] = {}
        self.shown: list[dict[str, Any]] = []
        self.digests = {name: matrix.cases[name].program.digest for name in matrix.rows() if name in matrix.cases}
        self.promises: dict[tuple[str, str, str, str], int | None] = {}
        self.scripts = [Scripts(column.target) for column in matrix.columns]

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def to_json(self) -> str:
        """Return the page's data."""
        cases = [self.case(name, self.matrix.cases.get(name)) for name in self.matrix.rows()]
        cells = [[self.cell(n, column, column.cell(name)) for n, column in enumerate(self.matrix.columns)] for name in self.matrix.rows()]
        for scripts in self.scripts:
            scripts.keep()
        data = {
            "made": now(), "classes": list(CLASSES), "says": dict(marks.SAYS), "statuses": dict(marks.STATUS_SAYS),
            "columns": [_column_facts(column, self.releases(column)) for column in self.matrix.columns], "cases": cases, "cells": cells,
            "entries": self.shown, "texts": list(self.texts),
        }  # fmt: skip
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    def releases(self, column: Column) -> int:
        """Return how many releases are recorded whose answers this page doesn't tell: reading them takes longer than making the page."""
        return 0 if self.told.history else len(files(column.target.framework))

    def case(self, name: str, case: Case | None) -> dict[str, Any]:
        """Return what is said of a question."""
        if case is None:
            return {"id": name, "question": self.text("This catalogue does not have the question."), "why": self.text(""), "answers": []}
        answers = [[self.text(word), self.text(kind), self.text(says)] for word, (kind, says) in case.answers.words.items()]
        return {
            "id": name, "question": self.text(case.question), "why": self.text(case.why), "answers": answers,
            "control": case.control, "claims": list(case.claims),
            "h": [[one.target, self.text(one.told())] for one in self.told.lines.get(name, ())],
        }  # fmt: skip

    def cell(self, n: int, column: Column, cell: Cell) -> dict[str, Any]:
        """Return what is behind a cell; what is empty is left out."""
        case = self.matrix.cases.get(cell.case)
        target = column.target
        facts: dict[str, Any] = {
            "o": self.text(cell.outcome), "k": marks.KINDS.index(marks.kind(cell)), "e": self.text(cell.evidence),
            "y": self.text(cell.why) if cell.why else None, "v": cell.verdict and self.text(cell.verdict),
            "n": cell.norm and self.text(cell.norm), "l": self.text(cell.stale) if cell.stale else None,
            "a": [self.text(word) for word in cell.answers], "t": None if cell.seconds is None else round(cell.seconds, 3),
            "f": [self.text(part) for key, value in cell.facets.items() for part in (key, _shown(value))],
        }  # fmt: skip
        step = self.told.step(column, cell.case)
        facts["b"] = None if step is None else self.text(step.told())
        if cell.behaves:
            facts["p"] = self.promise(target.framework, cell.case, target.device, target.version)
            facts["d"] = self.entry(contract_for(target.framework).deviation(cell.case, target.device, target.version))
            facts["r"] = self.promise("norm", cell.case, target.device, "0")
        if case is not None and (cell.observation or cell.behaves):
            facts.update(self.code(n, cell, case))
        return {key: value for key, value in facts.items() if value not in (None, [], "")}

    def promise(self, framework: str, case: str, device: str, version: str) -> int | None:
        """Return the number of the promise about a case."""
        key = framework, case, device, version
        if key not in self.promises:
            self.promises[key] = self.entry(contract_for(framework).promise(case, device, version))
        return self.promises[key]

    def entry(self, entry: Entry | None) -> int | None:
        """Return the number of a contract's entry."""
        if entry is None:
            return None
        key = (entry.cases, entry.targets, entry.answers, entry.strength, entry.source, entry.says)
        if key not in self.entries:
            self.entries[key] = len(self.shown)
            self.shown.append({"strength": entry.strength, "answers": list(entry.answers), "source": entry.source, "says": entry.says})
        return self.entries[key]

    def code(self, n: int, cell: Cell, case: Case) -> dict[str, Any]:
        """Return the question in the framework's code, and errors and warnings beside the lines they came from."""
        steps: Mapping[str, Any] = (cell.observation or {}).get("steps", {})
        script = self.scripts[n].of(case, cell.observation)
        found = script.at
        errors, warnings = [], []
        for step in case.program.asked:
            fact = steps.get(step["id"], {})
            if "error" in fact:
                error = fact["error"]
                errors.append([found.get(step["id"], -1), self.text(error["type"]), self.text(error["text"])])
            said = fact.get("warnings", ())
            warnings += [[found.get(step["id"], -1), self.text(warning["category"]), self.text(warning["text"])] for warning in said]
        drain = (cell.observation or {}).get("drain")
        if drain and "error" in drain:
            errors.append([len(script.lines) - 1, self.text(drain["error"]["type"]), self.text(drain["error"]["text"])])
        changed = cell.program and cell.program != self.digests[case.id]
        return {"c": [self.text(line) for line in script.lines], "x": errors, "w": warnings, "old": 1 if changed else None}


def _column_facts(column: Column, releases: int) -> dict[str, Any]:
    target = column.target
    return {
        "key": column.key, "name": target.name, "framework": target.framework, "version": target.version, "evidence": target.evidence,
        "label": target.label, "build": dict(target.build), "machine": dict(target.machine), "environment": dict(target.environment),
        "roles": {role: dict(facts) for role, facts in target.roles.items()}, "records": list(column.records),
        "recorded": column.recorded, "series": bare(target), "releases": releases,
    }  # fmt: skip


def _shown(value: Any) -> str:
    """Return a facet's value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "; ".join(", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in item.items()) for item in value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
