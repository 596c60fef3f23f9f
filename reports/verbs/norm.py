"""`python -m reports norm`: where targets answer otherwise than the array API standard recommends."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports norm torch:cuda jax:gpu
  python -m reports norm torch:cpu numpy:cpu --record reports/out/latest.jsonl --brief

The standard recommends, and a framework that promises something else is not at fault: where its own documentation does, the answer
is (promised).
Targets are taken from the last record, and where it lacks one from what is recorded with the suite; or from those that --record names.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "norm", help="what differs from the array API standard", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="List what targets answer otherwise than the device rules of the array API standard recommend, in their own code.",
    )  # fmt: skip
    verb.add_argument("targets", nargs="+", metavar="TARGET", help="a target, as the record calls it")
    verb.add_argument(
        "--record", action="append", default=[], type=Path, metavar="RECORD", help="take answers from there (default: the last)"
    )
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--brief", action="store_true", help="without native code")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """List each target's answers by the rule that they differ from."""
    from reports.columns import column_of, known
    from reports.derive import Side
    from reports.matrix import build
    from reports.record import read
    from reports.style import style_of
    from reports.verbs import catalogue, matching, say
    from reports.visible import visible

    catalogue()
    matrix = build([read(path) for path in chosen.record]) if chosen.record else known(*chosen.targets)
    for warning in matrix.warnings:
        say(visible(warning))
    cases = matching(matrix.rows(), chosen.case, "case")
    style = style_of()
    for n, name in enumerate(chosen.targets):
        column = column_of(matrix.columns, name)
        side = Side(column.target, column.cells)
        cells = [side.cell(case) for case in cases if case in column.cells]
        for text in _lines(column, cells, style, full=not chosen.brief):
            print(style.fit(text))
        if n + 1 < len(chosen.targets):
            print()


def _lines(column: Any, cells: list[Any], style: Any, *, full: bool) -> Iterator[str]:
    from cases.contract import contract_for
    from reports.style import wrapped
    from reports.visible import line

    norm = contract_for("norm")
    spoken = [(cell, norm.promise(cell.case, column.target.device, "0")) for cell in cells if cell.behaves]
    spoken = [(cell, entry) for cell, entry in spoken if entry is not None and entry.answers]
    rules: dict[Any, list[Any]] = {}
    for cell, entry in spoken:
        if cell.norm == "deviates":
            rules.setdefault(entry, []).append(cell)
    count = sum(map(len, rules.values()))
    told = f"{column.key}, {column.target.framework} {column.target.version}, {column.target.evidence}"
    yield from wrapped([line(f"{told}: {count} of {len(spoken)} answers differ from what the array API standard recommends")], style)
    for entry, found in rules.items():
        yield ""
        yield from wrapped([f"recommended is {' or '.join(entry.answers)}: {entry.says} ({entry.source})"], style)
        for answer in dict.fromkeys(cell.outcome for cell in found):
            alike = [cell for cell in found if cell.outcome == answer]
            yield from wrapped([f"  {answer}: {', '.join(f'{cell.case}{_own(cell)}' for cell in alike)}"], style, 4)
            if full:
                yield from _code(column.target, alike[0])


def _own(cell: Any) -> str:
    """Return what the framework itself promises, in a word."""
    words = {"conforms": " (promised)", "deviates": " (not as promised)", "known-deviation": " (known, not as promised)"}
    return words.get(cell.verdict, "")


def _code(target: Any, cell: Any) -> Iterator[str]:
    from cases import catalogue
    from reports.native import Native

    if cell.case in catalogue():
        yield from (f"        {text}" for text in Native(target).script(catalogue()[cell.case], cell.observation)[0])
