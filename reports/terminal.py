"""The matrix in a terminal: blocks of targets that fit the width, short marks, a legend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tabulate import SEPARATING_LINE, tabulate

from reports import marks
from reports.cells import Cell
from reports.headline import headline, named, promised, reasons
from reports.matrix import Column, Matrix
from reports.style import Style, folded, wrapped
from reports.summary import FORMAT, short
from reports.visible import shown

#: Word lengths that are tried, from the most readable on.
_LIMITS = (20, 16, 13, 10, 9)
#: Deviations of one kind that are listed one by one; more are counted.
_LISTED = 20


def render(matrix: Matrix, style: Style | None = None, *, deviations_first: bool = False, compact: bool = False) -> str:
    """Return the whole text. `compact` puts rows together that are alike on every target."""
    style, matrix = style or Style(), shown(matrix)
    parts = ["\n".join(style.paint(line, "warn") for line in wrapped(matrix.warnings, style))]
    if not matrix.columns:
        parts.append("No target started, so there is no matrix.")
    if deviations_first and matrix.columns:
        parts.append("\n".join(_deviations(matrix, style)))
    words: dict[str, str] = {}
    if compact and matrix.columns:
        text, words = short(matrix, style)
        parts.append(text)
    elif matrix.columns and matrix.areas:
        rows = list(_rows(matrix))
        blocks, words = _blocks(matrix, rows, style)
        parts += [_table(block, rows, words, style) for block in blocks]
    below = _legend(matrix, words, style, compact=compact), _absent(matrix, style), _sources(matrix, style)
    parts += ["\n".join(lines) for lines in below]
    return style.fit("\n\n".join(part for part in parts if part) + "\n")


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    area: str
    label: str
    case: str


def _rows(matrix: Matrix) -> Iterator[_Row]:
    for area, cases in matrix.areas.items():
        yield from (_Row(area, case.partition("/")[2], case) for case in cases)


# --- tables --------------------------------------------------------------------------------------


def _blocks(matrix: Matrix, rows: list[_Row], style: Style) -> tuple[list[tuple[Column, ...]], dict[str, str]]:
    """Return the columns of each table and the words to use: as few tables as can be, then long words."""
    outcomes = [cell.outcome for _, cell in matrix.cells()]
    label = _label_width(rows, style)
    choices = []
    for limit in _LIMITS:
        words = marks.shorten(outcomes, limit)
        choices.append((_split(matrix, rows, words, style.width - label), words))
    fewest = min(len(blocks) for blocks, _ in choices)
    return next(choice for choice in choices if len(choice[0]) == fewest)


def _label_width(rows: list[_Row], style: Style) -> int:
    """Return the width of ids: a few long ones are broken, so that more targets stand side by side."""
    return min(max(len(row.label) for row in rows), max(30, style.width * 2 // 5))


def _split(matrix: Matrix, rows: list[_Row], words: Mapping[str, str], room: int) -> list[tuple[Column, ...]]:
    blocks: list[list[Column]] = [[]]
    left = room
    for column in matrix.columns:
        width = 2 + max(len(_text(column, column.cell(row.case), words, None)) for row in rows)
        width = max(width, 2 + max(map(len, _head(column, width - 2))))
        if width > left and blocks[-1]:
            blocks.append([])
            left = room
        blocks[-1].append(column)
        left -= width
    return [tuple(block) for block in blocks]


def _table(block: tuple[Column, ...], rows: list[_Row], words: Mapping[str, str], style: Style) -> str:
    body: list[Sequence[str] | str] = []
    for number, row in enumerate(rows):
        if number == 0 or rows[number - 1].area != row.area:
            body += [SEPARATING_LINE, [style.paint(row.area, "title")]]
        name, *rest = folded(row.label, _label_width(rows, style))
        body.append([name, *(_text(column, column.cell(row.case), words, style) for column in block)])
        body += [[line] for line in rest]
    widths = [max(len(_text(column, column.cell(row.case), words, None)) for row in rows) for column in block]
    heads = [_head(column, width) for column, width in zip(block, widths, strict=True)]
    lines = max(map(len, heads))  # all evidence stands in the last line
    over = [
        ["", *(style.paint(([""] * (lines - len(head)) + head)[n], "dim" if n == lines - 1 else "title") for head in heads)]
        for n in range(lines)
    ]
    return str(tabulate([*over, *body], tablefmt=FORMAT, disable_numparse=True))


def _text(column: Column, cell: Cell, words: Mapping[str, str], style: Style | None) -> str:
    kind = marks.kind(cell)
    letter = marks.evidence_mark(column, cell)
    text = f"{(style or Style()).mark(kind)} {words[cell.outcome]}{marks.flags(cell)}{f' ({letter})' if letter else ''}"
    return style.paint(text, marks.tone(cell)) if style else text


def _head(column: Column, width: int) -> list[str]:
    """Return the lines over a column: target, version and what sets it apart, evidence."""
    target = column.target
    width = max(width, 12)
    facts = [fact for fact in column.apart if fact != target.version]
    texts = [target.name, target.version, *facts]
    return [line for text in texts for line in _folded(text, width)] + [target.evidence]


def _folded(text: str, width: int) -> Iterator[str]:
    """Yield a name in lines of at most `width`, broken behind : - = @ + and spaces where that can be."""
    line = ""
    for piece in re.findall(r"[^:\-=@+ ]*[:\-=@+ ]?", text):
        while len(piece) > width:
            yield from [line] if line else []
            line, piece = "", piece
            yield piece[:width]
            piece = piece[width:]
        if len(line) + len(piece) > width and line:
            yield line.rstrip()
            line = ""
        line += piece
    if line.strip():
        yield line.rstrip()


# --- around the table ----------------------------------------------------------------------------


def _deviations(matrix: Matrix, style: Style) -> Iterator[str]:
    yield from (style.paint(line, "title") for line in wrapped(headline(matrix), style, 4))
    if not any(cell.behaves for _, cell in matrix.cells()):
        yield from wrapped([f"  {reason}" for reason in reasons(matrix)], style, 4)
    who: dict[tuple[str, str, str, str], list[str]] = {}
    for column, cell in matrix.cells():
        for said in ([promised(column, cell)] if marks.deviates(cell) else []) + ([cell.stale] if cell.stale else []):
            who.setdefault((said, style.mark(marks.kind(cell)), cell.outcome, cell.case), []).append(named(column, cell))
    groups: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for (said, mark, outcome, case), names in who.items():
        groups.setdefault((", ".join(names), said), {}).setdefault((mark, outcome), []).append(case)
    for (listed, said), outcomes in groups.items():
        yield from wrapped([f"{listed}, {said}"], style, 4)
        for (mark, outcome), cases in outcomes.items():
            more = f" and {len(cases) - _LISTED} more" if len(cases) > _LISTED else ""
            yield from wrapped([f"    {mark} {outcome}: {', '.join(cases[:_LISTED])}{more}"], style, 6)


def _legend(matrix: Matrix, words: Mapping[str, str], style: Style, *, compact: bool) -> Iterator[str]:
    lines: list[str] = []
    if matrix.columns:
        if compact and any(column.target.evidence == "simulated" for column in matrix.columns):
            lines.append("What runs on the host alone is measured on simulated targets too.")
        lines += _outcomes(matrix, words, style, brief=compact)
        used = {flag for _, cell in matrix.cells() for flag in marks.flags(cell)}
        lines += [f"{flag}  {says}" for flag, says in marks.FLAGS.items() if flag in used]
        letters = [] if compact else sorted({letter for column, cell in matrix.cells() if (letter := marks.evidence_mark(column, cell))})
        names = {"m": "measured", "s": "simulated", "d": "documented"}
        lines += [f"({letter})  {names[letter]}, other than the column's head says" for letter in letters]
    yield from wrapped(lines, style, 4)


def _absent(matrix: Matrix, style: Style) -> Iterator[str]:
    if matrix.absent:
        yield style.paint("Not here", "title")
        yield from wrapped([f"{name}: {why}" for name, why in matrix.absent.items()], style, 4)


def _sources(matrix: Matrix, style: Style) -> Iterator[str]:
    yield from wrapped([f"Note: {note}." for note in matrix.notes], style, 4)
    yield from wrapped(["Records: " + ", ".join(f"{name} ({start})" for name, start, _ in matrix.records)], style, 4)


def _outcomes(matrix: Matrix, words: Mapping[str, str], style: Style, *, brief: bool) -> Iterator[str]:
    """Yield each outcome that the tables show, under its short form, by class; not brief: with its meaning."""
    by_kind: dict[str, list[str]] = {}
    for outcome, (kind, says) in marks.meanings(matrix).items():
        texts = by_kind.setdefault(kind, [])
        if outcome in words:
            name = outcome if words[outcome] == outcome else f"{words[outcome]} = {outcome}"
            texts.append(f"{name} ({says})" if says and not brief else name)
    for kind, texts in by_kind.items():
        says = {"works": "works", "refuses": "raises"}.get(kind, marks.SAYS[kind]) if brief else marks.SAYS[kind]
        yield f"{style.mark(kind)}  {says}{': ' if texts else ''}{(', ' if brief else '; ').join(texts)}"
