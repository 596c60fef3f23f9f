"""`python -m reports show`: a record's cells as a list."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports show reports/out/latest.jsonl
  python -m reports show reports/out/latest.jsonl --target 'torch:*' --case 'moving/*'
  python -m reports show reports/out/latest.jsonl --json
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "show", help="a record's cells", description="List the cells of a record.", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.add_argument("record", type=Path, metavar="RECORD", help="a file that pytest --record wrote")
    verb.add_argument("--target", action="append", default=[], metavar="GLOB", help="only targets whose name matches")
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--json", action="store_true", help="as a list of objects")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """List the cells, in the record's order of targets and the catalogue's of cases."""
    import json

    from reports.record import read
    from reports.verbs import catalogue, matching, say
    from reports.visible import line, visible

    record = read(chosen.record)
    if record.warning:
        say(visible(record.warning))
    targets = matching(record.targets, chosen.target, "target")
    asked = {case for _, case in record.cells}
    ordered = [case for case in catalogue() if case in asked] + sorted(asked - catalogue().keys())
    cases = matching(ordered, chosen.case, "case")
    cells = [record.cells[target, case] for target in targets for case in cases if (target, case) in record.cells]
    if chosen.json:
        facts = [{key: value for key, value in cell.to_json(observation=False).items() if key != "type"} | _error(cell) for cell in cells]
        print(json.dumps(facts, indent=1))
        return
    from tabulate import tabulate

    rows = [[line(cell.target), cell.case, _said(cell), cell.evidence, cell.verdict or "", line(_reason(cell))] for cell in cells]
    print(tabulate(rows, ["target", "case", "answer", "evidence", "verdict", "reason"], tablefmt="plain", disable_numparse=True))
    for target in targets:
        if not record.targets[target].available:
            print(line(f"{target} didn't start: {record.targets[target].why}"))


def _said(cell: Any) -> str:
    return f"{cell.outcome} (asked again: {' or '.join(cell.answers)})" if cell.answers else str(cell.outcome)


def _reason(cell: Any) -> str:
    """Return why there is no answer, or the first line of the error that refused."""
    error = cell.error if cell.kind == "refuses" else None
    lines = error["text"].strip().splitlines() if error else []
    return f"{error['type']}: {lines[0]}" if error and lines else error["type"] if error else str(cell.why)


def _error(cell: Any) -> dict[str, Any]:
    error = cell.error if cell.kind == "refuses" else None
    return {"error": {"type": error["type"], "text": error["text"]}} if error else {}
