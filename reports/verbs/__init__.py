"""The verbs of `python -m reports`, a module each; what a verb needs is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NoReturn

from reports import SUITE

VERBS = ("targets", "cases", "explain", "show", "matrix")
#: What was asked for can't be done, as the one sentence on standard error says.
COULD_NOT = 2
_EXAMPLES = """examples:
  python -m reports targets
  python -m reports cases 'placement/*'
  python -m reports explain placement/matmul/host-accelerator
  python -m reports show reports/out/latest.jsonl --json --target 'torch:*'
  python -m reports matrix old.jsonl new.jsonl --format html --output page.html
"""


class ProblemError(Exception):
    """What was asked for can't be done; the message says what and what to do, in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End with one sentence instead of the whole usage."""
        self.exit(COULD_NOT, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status."""
    parser = _Parser(
        prog="python -m reports", description="What was asked of tensor frameworks, and what they answered.", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"device-semantics {SUITE}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for name in VERBS:
        importlib.import_module(f"reports.verbs.{name}").register(verbs)
    chosen = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that can't print a character still shows the rest
    try:
        status = run(chosen)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has enough; the interpreter must not complain about it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return COULD_NOT
    return status


def run(chosen: argparse.Namespace) -> int:
    """Run a verb; what the user can mend becomes one sentence on standard error."""
    from adapters.targets import SelectorError
    from cases.case import CatalogueError
    from cases.contract import ContractError
    from reports.cells import RecordError

    try:
        chosen.run(chosen)
    except (ProblemError, RecordError, CatalogueError, ContractError, SelectorError) as problem:
        sys.stdout.flush()
        print(f"python -m reports {chosen.verb}: {problem}", file=sys.stderr)
        return COULD_NOT
    return 0


def matching(names: Iterable[str], globs: Sequence[str], what: str) -> list[str]:
    """Return the names that match any of the globs, all without globs. Raises ProblemError for a glob that matches none."""
    known = list(names)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            near = get_close_matches(glob, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "a glob such as 'placement/*' is understood" if what == "case" else (
                f"there are {', '.join(known)}" if known else "there are none"
            )  # fmt: skip
            raise ProblemError(f"no {what} matches {glob!r}; {hint}")
    return [name for name in known if not globs or any(fnmatchcase(name, glob) for glob in globs)]
