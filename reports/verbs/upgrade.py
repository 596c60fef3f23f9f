"""`python -m reports upgrade`: two releases of a framework, installed, asked and compared."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports upgrade jax==0.4.30 jax==0.10.2
  python -m reports upgrade torch==2.13.0 torch==2.15.0 --target torch:cpu --uses src
  python -m reports upgrade numpy==1.26.4 numpy==2.4.6 --python 3.11
  python -m reports upgrade jax==0.5.0 jax==0.6.0 --with 'numpy==1.26.4' --deny loosened

Environments are made by uv in the user's cache folder, each with dependencies of the days of its release, and used again.
An interpreter that fits is looked for among those that are installed. PyTorch brings CUDA libraries of several gigabytes;
--discard removes its environments at the end. Levels and the rest are those of `python -m reports gate`.

exit status: 0 nothing is denied, 1 something is, 2 it could not be found out.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    from reports.verbs.gate import choices

    verb = verbs.add_parser(
        "upgrade", help="two releases: installed, asked, compared", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Install two releases of a framework side by side, ask both all the questions, and say what changed as `gate` does.",
    )  # fmt: skip
    verb.add_argument("old", metavar="OLD", help="the release that is in use, such as torch==2.13.0")
    verb.add_argument("new", metavar="NEW", help="the release that shall be")
    environments(verb)
    choices(verb)
    verb.set_defaults(run=run, output=None)


def environments(verb: Any, *, cases: bool = True) -> None:
    """Add the arguments that say what is installed and asked."""
    verb.add_argument("--with", dest="beside", action="append", default=[], metavar="REQUIREMENT", help="install this beside it too")
    verb.add_argument("--python", metavar="VERSION", help="use this Python, such as 3.12 or a path (default: one that fits)")
    verb.add_argument("--target", action="append", default=[], metavar="SELECTOR", help="ask this, such as jax:cpu (default: all it has)")
    verb.add_argument("--deadline", metavar="SECONDS", help="how long a worker may take for one question (default 30)")
    verb.add_argument("--repeat", default=1, type=_times, metavar="N", help="ask every question N times")
    verb.add_argument("--discard", action="store_true", help="remove the environments once they were asked")
    if cases:
        verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
        verb.add_argument("--records", type=Path, metavar="FOLDER", help="leave records there (default: a folder under reports/out/)")
    else:
        verb.set_defaults(case=[])


def _times(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of times; give a whole number from 1 to 1000")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Install, ask, compare, and return the exit status."""
    import os

    from reports.asking import settled
    from reports.environments import discard, interpreters, pair, release
    from reports.gate import gate
    from reports.verbs import ProblemError, catalogue, matching
    from reports.verbs.gate import told, wanted
    from reports.writer import OUT, stamp

    known = catalogue()
    found, entries = wanted(chosen)
    matching(known, chosen.case, "case")
    old, new = (release(text, chosen.beside) for text in (chosen.old, chosen.new))
    if old.framework != new.framework:
        raise ProblemError(f"{old} and {new} are two frameworks; `python -m reports port` compares targets")
    if old == new:
        raise ProblemError(f"OLD and NEW are the same release, {old}: name the one in use, and the one that shall be")
    chosen_targets = selectors(old.framework, chosen.target)
    folder = chosen.records or Path(os.path.relpath(OUT)) / "upgrade" / f"{stamp()}-{old.framework}-{old.version}-{new.version}"
    places = pair(old, new, interpreters(chosen.python))
    paths = folder / "old.jsonl", folder / "new.jsonl"
    try:
        askers = (
            asker(chosen, "old", old, chosen_targets, places[0], paths[0]), asker(chosen, "new", new, chosen_targets, places[1], paths[1])
        )  # fmt: skip
        for one in askers:
            one.ask()
        report = settled(paths, askers, lambda before, after: gate(before, after, found, entries))
    finally:
        for place in places if chosen.discard else ():
            discard(place)
    status = told(chosen, report, found.accept)
    _page(folder, report.records)
    return status


def selectors(framework: str, wanted: Sequence[str]) -> list[str]:
    """Return what is asked of a framework, as it is typed without label and interpreter. Raises ProblemError."""
    from fnmatch import fnmatchcase

    from adapters.targets import parse
    from reports.verbs import ProblemError

    found = []
    for text in wanted or [f"{framework}:*"]:
        one = parse(text)
        if one.label or one.command or not fnmatchcase(framework, one.framework):
            raise ProblemError(f"--target {text}: name a target of {framework} without label and interpreter, such as {framework}:cpu")
        found.append(f"{framework}:{one.device}")
    return found


def asker(chosen: argparse.Namespace, label: str, one: Any, targets: Sequence[str], place: Any, record: Path) -> Any:
    """Return what asks a release in its environment."""
    from shlex import quote

    from reports.asking import Asker

    return Asker(
        f"{label} ({one.framework} {one.version}, Python {place.python.version})" if label != one.version else f"{one.framework} {label}",
        tuple(f"{label}={target}@{quote(str(place.interpreter))}" for target in targets), record, tuple(chosen.case), chosen.repeat,
        (f"--deadline={chosen.deadline}",) if chosen.deadline else (),
    )  # fmt: skip


def _page(folder: Path, records: Any) -> None:
    """Write the page that shows both, and say where everything is."""
    import sys

    from reports import html, matrix
    from reports.verbs import ProblemError, say
    from reports.visible import line

    page = folder / "page.html"
    try:
        html.write(matrix.build(records), page)
    except OSError as error:
        raise ProblemError(f"{page} can't be written ({error.strerror or error})") from error
    sys.stdout.flush()  # the findings come first, into a file too
    say(f"records: {line(str(records[0].path))} {line(str(records[1].path))}")
    say(f"page:    {line(str(page))}")
