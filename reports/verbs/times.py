"""`python -m reports times`: what timed loops took, round by round: returned against synchronised."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports times reports/out/latest.jsonl
  python -m reports times reports/recorded/h200-2026-11-30.jsonl.xz --target '*:cuda' --case time/loop/matmul

A loop of chained calls is timed when it was left (returned), where the question reads a value when that was there (read), and when all its
work was done (synchronised). The first round stands apart, since it may load kernels or make buffers. Operands are square, with so many
elements along an edge; sizes fit the device, so that times of different machines don't compare, but the part that was returned does.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "times", help="what timed loops took", description="Show what timed loops took, in milliseconds, round by round.", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.add_argument("records", nargs="+", type=Path, metavar="RECORD", help="a file that pytest --record wrote")
    verb.add_argument("--target", action="append", default=[], metavar="GLOB", help="only targets whose name matches")
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--json", action="store_true", help="as a list of objects, in seconds")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Show the rounds of every timed cell."""
    from reports.matrix import build
    from reports.record import read
    from reports.verbs import ProblemError, catalogue, matching, say
    from reports.visible import visible

    known = catalogue()
    matrix = build([read(path) for path in chosen.records])
    for warning in matrix.warnings:
        say(visible(warning))
    targets = matching(dict.fromkeys(column.target.name for column in matrix.columns), chosen.target, "target")
    cases = matching(matrix.rows(), chosen.case, "case")
    found = [
        (column.key, cell) for case in cases for column in matrix.columns if column.target.name in targets
        for cell in [column.cell(case)] if cell.answer and isinstance(cell.facets.get("rounds"), list)
    ]  # fmt: skip
    if not found:
        raise ProblemError("no loop was timed there; the cases of the area time are asked with --case 'time/*'")
    if chosen.json:
        import json

        keys = ("size", "chain", "rounds")
        facts = [{"target": key, "case": cell.case, "answer": cell.answer, **{k: cell.facets.get(k) for k in keys}} for key, cell in found]
        print(json.dumps(facts, indent=1))
        return
    from tabulate import tabulate

    heads = ["target", "answer", "calls", "edge", "round", "returned", "read", "synchronised", "returned/synchronised"]
    for n, case in enumerate(dict.fromkeys(cell.case for _, cell in found)):
        rows = [row for key, cell in found if cell.case == case for row in _rows(key, cell)]
        shown = [i for i in range(len(heads)) if any(row[i] for row in rows)]
        question = f": {known[case].question}" if case in known else ""
        print(f"{chr(10) if n else ''}{case}{question} (milliseconds)")
        print(tabulate([[row[i] for i in shown] for row in rows], [heads[i] for i in shown], tablefmt="plain", disable_numparse=True))


def _rows(key: str, cell: Any) -> Iterator[list[str]]:
    """Yield a line for each round."""
    from reports.visible import line

    size, chain = cell.facets.get("size"), cell.facets.get("chain")
    for n, times in enumerate(cell.facets["rounds"]):
        if not isinstance(times, dict) or not all(isinstance(value, int | float) for value in times.values()):
            continue
        milliseconds = {name: f"{1000 * value:.3f}" for name, value in times.items()}
        returned, synchronised = times.get("returned"), times.get("synchronised")
        part = f"{100 * returned / synchronised:.1f} %" if returned is not None and synchronised else ""
        words = [line(key), cell.answer, str(chain), str(size)] if n == 0 else [""] * 4
        names = ("returned", "read", "synchronised")
        yield [*words, "first" if n == 0 else str(n), *(milliseconds.get(name, "") for name in names), part]
