"""`python -m reports cases`: what is asked, one line each."""

from __future__ import annotations

import argparse
from typing import Any

_EXAMPLES = """examples:
  python -m reports cases
  python -m reports cases 'placement/*/host-accelerator' 'scalars/*'
  python -m reports cases --area moving --json
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "cases", help="what is asked: ids and questions", description="List cases: id and question, by area.", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.add_argument("globs", nargs="*", metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--area", action="append", default=[], metavar="AREA", help="only this area; may be given again")
    verb.add_argument("--json", action="store_true", help="as a list of objects")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """List the cases."""
    import json

    from cases.case import AREAS
    from reports.verbs import catalogue, matching

    known = catalogue()
    areas = matching(AREAS, chosen.area, "area")
    found = [known[name] for name in matching(known, chosen.globs, "case") if known[name].area in areas]
    if chosen.json:
        facts = [
            {
                "id": one.id, "area": one.area, "question": one.question, "why": one.why, "answers": list(one.answers.words),
                "control": one.control, "claims": list(one.claims), "program": one.program.digest,
            }
            for one in found
        ]  # fmt: skip
        print(json.dumps(facts, indent=1))
        return
    wide = max((len(one.id) for one in found), default=0)
    for area in areas:
        members = [one for one in found if one.area == area]
        if members:
            print(f"{area} ({len(members)}): {AREAS[area]}")
        for one in members:
            print(f"  {one.id:<{wide}}  {one.question}")
