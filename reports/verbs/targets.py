"""`python -m reports targets`: what is here and what is not, why, and what to install."""

from __future__ import annotations

import argparse
from typing import Any

_EXAMPLES = """examples:
  python -m reports targets
  python -m reports targets 'torch:*' 'old=jax:cpu@.venvs/old/bin/python'

What stands behind @ in a selector is run. The exit status is 2 when nothing that a selector names is here.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "targets", help="what is here, what is not, and why", description="Start each framework once and list its targets.",
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.add_argument("selectors", nargs="*", metavar="SELECTOR", help="[label=]framework:device[@interpreter-or-command]; default: all")
    verb.add_argument("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS|PROGRAM", help="add a framework from outside")
    verb.add_argument("--json", action="store_true", help="as a list of objects, as a record's header has them")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Start the workers, wait for their hello, and list what they said."""
    import json

    from adapters.lane import Settings
    from adapters.pool import Pool
    from adapters.process import NotStarted
    from adapters.targets import Selector, adapters, parse, plan
    from reports.cells import Target
    from reports.verbs import ProblemError

    known = adapters(chosen.adapter)
    typed = [parse(text) for text in chosen.selectors]
    wanted, absent = plan(typed or [Selector(name, "*") for name in known], known)
    pool = Pool(wanted, absent, Settings())
    try:
        found = [Target.from_json(target["target"], target) for target in pool.targets()]
    except NotStarted as error:
        raise ProblemError(str(error)) from error
    finally:
        pool.close()
    if chosen.json:
        print(json.dumps([_public(target) for target in found], indent=1))
    else:
        _list(found)
    for selector in typed:
        if not any(target.available and selector.chose(target.name, target.framework, target.device) for target in found):
            raise ProblemError(f"nothing that {selector} names is here; what is not here stands in the list with its reason")


def _list(found: list[Any]) -> None:
    from tabulate import tabulate

    from reports.visible import line

    here = [[line(t.name), line(t.version), t.evidence, line(", ".join(t.roles))] for t in found if t.available]
    heads = ["target", "version", "evidence", "roles"]
    print(tabulate(here, heads, tablefmt="simple", disable_numparse=True) if here else "No target is here.")
    missing = [target for target in found if not target.available]
    if missing:
        print("\nnot here")
        print(tabulate([[line(t.name), line(t.why)] for t in missing], tablefmt="plain", disable_numparse=True))


def _public(target: Any) -> dict[str, Any]:
    data: dict[str, Any] = target.to_json()
    return {key: value for key, value in data.items() if key not in ("spec", "explicit", "environment_of")}
