"""`python -m reports port`: what answers differently on another target."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports port torch:fake-cuda jax:cpu
  python -m reports port torch:fake-cuda torch:cuda
  python -m reports port torch:cuda torch:mps --record gpu.jsonl --record mac.jsonl
  python -m reports port torch:cpu jax:cpu --case 'moving/*' --brief

Targets are taken from the last record, and where it lacks one from what is recorded with the suite; or from those that --record names.
A target that is in them in several versions is called as `python -m reports matrix` calls its column.
"""
#: Between two frameworks these always differ, and tell nothing; and what one side can't see is no difference.
_BESIDE_THE_POINT = frozenset(("error-class", "error-text", "warning", "unsettled"))
#: What a kind of change is where two targets stand side by side.
_SAYS = {
    "silent": "silently wrong there", "crash": "dies or hangs there", "damage": "a refusal damages more or less there",
    "tightened": "works here, refused there", "vanished": "answered here, not offered there", "loosened": "refused here, works there",
    "mended": "wrong or dead here, not there", "appeared": "not offered here, answered there",
}  # fmt: skip


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "port", help="what another target answers differently", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="List the questions that two targets answer differently, what bites first first, in the code of both.",
    )  # fmt: skip
    verb.add_argument("here", metavar="FROM", help="the target that code was written for")
    verb.add_argument("there", metavar="TO", help="the target that it shall run on")
    verb.add_argument(
        "--record", action="append", default=[], type=Path, metavar="RECORD", help="take answers from there (default: the last)"
    )
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--brief", action="store_true", help="without native code")
    verb.add_argument("--json", action="store_true", help="as an object")
    verb.add_argument("--output", type=Path, metavar="PATH", help="write there instead of to standard output")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Compare two columns of the matrix."""
    from reports.columns import column_of, known
    from reports.compare import columns
    from reports.matrix import build
    from reports.record import read
    from reports.style import style_of
    from reports.verbs import ProblemError, catalogue, matching, say, written
    from reports.visible import visible

    catalogue()
    matrix = build([read(path) for path in chosen.record]) if chosen.record else known(chosen.here, chosen.there)
    for warning in matrix.warnings:
        say(visible(warning))
    here, there = (column_of(matrix.columns, name) for name in (chosen.here, chosen.there))
    if here is there:
        raise ProblemError(f"FROM and TO are the same target, {here.key}")
    cases = matching(matrix.rows(), chosen.case, "case")
    compared, changes = columns(here, there, cases, _BESIDE_THE_POINT)
    if not compared:
        raise ProblemError(f"{here.key} and {there.key} have no answered question in common")
    if chosen.json:
        written(_json(here, there, compared, changes), chosen.output)
        return
    style = style_of()
    lines = _lines(here, there, compared, changes, style, full=not chosen.brief)
    written(style.fit("\n".join(lines) + "\n"), chosen.output)


def _json(here: Any, there: Any, compared: int, changes: Sequence[Any]) -> str:
    import json

    from reports.formats.plain_json import change_json
    from reports.native import Native

    mine, yours = Native(here.target), Native(there.target)
    found = []
    for one in changes:
        scripts = {"from_script": mine.script(_case(one))[1], "to_script": yours.script(_case(one))[1]}
        found.append(change_json(one) | scripts)
    data = {"from": here.key, "to": there.key, "compared": compared, "differences": found}
    return json.dumps(data, indent=1) + "\n"


def _case(change: Any) -> Any:
    from cases import catalogue

    return catalogue()[change.case]


def _lines(here: Any, there: Any, compared: int, changes: Sequence[Any], style: Any, *, full: bool) -> Iterator[str]:
    from reports.kinds import KINDS
    from reports.native import Native
    from reports.style import wrapped
    from reports.visible import line

    told = [f"{side.key}, {side.target.framework} {side.target.version}, {side.target.evidence}" for side in (here, there)]
    yield from wrapped([line(f"{told[0]} → {told[1]}: {len(changes)} of {compared} questions are answered differently")], style)
    natives = Native(here.target), Native(there.target)
    kind = ""
    for one in changes:
        if one.kind != kind:
            kind = one.kind
            count = sum(other.kind == kind for other in changes)
            yield ""
            yield style.paint(f"{kind}, {_SAYS.get(kind, KINDS[kind].says)} ({count})", "wrong" if kind in ("silent", "crash") else "title")
        case = _case(one)
        others = f" (also {', '.join(one.others)})" if one.others else ""
        facets = "".join(f"; {d.what}: {d.old} → {d.new}" for d in one.differences if d.what != "answer") if one.old == one.new else ""
        yield from wrapped([f"  {one.case}: {one.old} → {one.new}{line(facets)}{others}", f"    {case.question}"], style, 4)
        scripts = [native.script(case)[0] for native in natives] if full else []
        for script, name, said in zip(scripts, (here.key, there.key), (one.was, one.now), strict=False):
            yield from wrapped([f"    {name}{f', which says {line(said)}' if said else ''}"], style, 6)
            # One framework's code is the same on both sides where no device is named otherwise.
            if script is scripts[-1] or script != scripts[-1]:
                yield from (f"        {text}" for text in script)
