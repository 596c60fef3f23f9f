"""`python -m reports matrix`: records side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

FORMATS = ("terminal", "markdown", "html", "json")
_EXAMPLES = """examples:
  python -m reports matrix reports/out/latest.jsonl
  python -m reports matrix reports/out/latest.jsonl --full
  python -m reports matrix mine.jsonl from-a-gpu-machine.jsonl --format html --output page.html
  python -m reports matrix reports/out/latest.jsonl --deviations-first --target 'jax:*' --case 'scalars/*'
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "matrix", help="records side by side", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Merge records into one matrix, cases by targets. Targets that differ in label, version, build, machine or "
        "environment stay columns of their own; of the same, the newer record wins.",
    )  # fmt: skip
    verb.add_argument("records", nargs="+", type=Path, metavar="RECORD", help="a file that pytest --record wrote")
    verb.add_argument("--format", choices=FORMATS, default="terminal", help="default: terminal")
    verb.add_argument("--output", type=Path, metavar="PATH", help="write there instead of to standard output")
    verb.add_argument("--width", type=_width, metavar="N", help="columns of the terminal format (default: the terminal's)")
    verb.add_argument("--deviations-first", action="store_true", help="begin with the answers that deviate from a contract")
    verb.add_argument("--full", action="store_true", help="terminal: all rows, with whole words, instead of those that differ")
    verb.add_argument("--differing", action="store_true", help="only rows that differ between targets, or deviate from a contract")
    verb.add_argument("--target", action="append", default=[], metavar="GLOB", help="only targets whose name matches")
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.set_defaults(run=run)


def _width(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no width; give a number of columns from 40 on")
    return int(text)


def run(chosen: argparse.Namespace) -> None:
    """Merge the records and write the matrix."""
    from reports.marks import differing
    from reports.matrix import build
    from reports.record import read
    from reports.verbs import catalogue, matching, say, written
    from reports.visible import visible

    catalogue()
    once = {path.resolve(): path for path in reversed(chosen.records)}
    for path in [path for path in chosen.records if not any(path is first for first in once.values())]:
        say(visible(f"{path} is named more than once, and read once"))
    matrix = build([read(path) for path in reversed(once.values())])
    if chosen.differing:
        matrix = differing(matrix)
    targets = matching(dict.fromkeys(column.target.name for column in matrix.columns), chosen.target, "target")
    cases = matching(matrix.rows(), chosen.case, "case")
    matrix = matrix.chosen([column for column in matrix.columns if column.target.name in targets], cases)
    seen = chosen.format == "terminal" and chosen.output is None and sys.stdout.isatty()  # it stands over the matrix
    for warning in () if seen else matrix.warnings:
        say(visible(warning))
    written(_text(chosen, matrix), chosen.output)


def _text(chosen: argparse.Namespace, matrix: Any) -> str:
    if chosen.format == "json":
        import json

        return json.dumps(matrix.to_json(), indent=1) + "\n"
    if chosen.format == "html":
        from reports import html

        return html.render(matrix)
    if chosen.format == "markdown":
        from reports import markdown

        return markdown.render(matrix, deviations_first=chosen.deviations_first)
    from dataclasses import replace

    from reports import terminal
    from reports.style import style_of

    style = style_of(width=chosen.width)
    if chosen.output is not None:
        style = replace(style, colour=False, unicode=True)
    return terminal.render(matrix, style, deviations_first=chosen.deviations_first, compact=not chosen.full)
