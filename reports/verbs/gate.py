"""`python -m reports gate`: what an upgrade changed, and whether that may be."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FORMATS = ("text", "markdown", "json", "github", "junit", "sarif")
_EXAMPLES = """examples:
  python -m reports gate old.jsonl new.jsonl
  python -m reports gate old.jsonl new.jsonl --uses src --target 'jax:*'
  python -m reports gate old.jsonl new.jsonl --deny loosened --allow error-text --format github
  python -m reports gate old.jsonl new.jsonl --accept accepted.toml --update

Levels, accept and uses can also stand in pyproject.toml, as [tool.device-semantics.gate]:
  deny = ["loosened"]    warn = ["error-class"]    accept = "accepted.toml"    uses = ["src"]

exit status: 0 nothing is denied, 1 something is, 2 the gate could not do what was asked.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    from reports.kinds import KINDS

    wide = max(map(len, KINDS))
    kinds = "\n".join(f"  {name:<{wide}}  {kind.level:<5}  {kind.says}" for name, kind in KINDS.items())
    verb = verbs.add_parser(
        "gate", help="two records: what changed, by kind", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"kinds of change, the most dangerous first, and what each does by itself:\n{kinds}\n\n{_EXAMPLES}",
        description="Compare two records by behaviour: each changed answer, by its kind, with the question, native code and what to look "
        "for; and everything that couldn't be compared.",
    )  # fmt: skip
    verb.add_argument("old", type=Path, metavar="OLD", help="the record of what is in use")
    verb.add_argument("new", type=Path, metavar="NEW", help="the record of what shall be")
    choices(verb)
    verb.add_argument("--target", action="append", default=[], metavar="GLOB", help="only targets whose name matches")
    verb.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    verb.add_argument("--output", type=Path, metavar="PATH", help="write there instead of to standard output")
    verb.set_defaults(run=run)


def choices(verb: Any) -> None:
    """Add the arguments that say what may change, and how it is told."""
    from reports.kinds import LEVELS

    said = {"deny": "fail", "warn": "list", "allow": "only count"}
    for level in LEVELS:
        verb.add_argument(
            f"--{level}", dest="levels", action="append", default=[], metavar="KIND", type=lambda kind, level=level: (kind, level),
            help=f"{said[level]} this kind of change, or all; may be given again, and the last word on a kind counts",
        )  # fmt: skip
    verb.add_argument("--config", type=Path, metavar="FILE", help="take levels, accept and uses from there (default: pyproject.toml)")
    verb.add_argument("--accept", type=Path, metavar="FILE", help="changes that are accepted, with reasons (TOML)")
    verb.add_argument("--update", action="store_true", help="add what is found to the accept file, for you to give reasons")
    verb.add_argument("--uses", action="append", default=[], type=Path, metavar="PATH", help="Python sources to look through; never run")
    verb.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    verb.add_argument("--brief", action="store_true", help="text: without native code")


def run(chosen: argparse.Namespace) -> int:
    """Compare, write what is found, and return the exit status."""
    import os

    from reports.gate import gate
    from reports.record import read
    from reports.verbs import ProblemError

    with _uncollected():
        found, entries = wanted(chosen)
        seen: dict[bytes, Any] = {}
        records = read(chosen.old, seen=seen), read(chosen.new, seen=seen)
        if os.path.samefile(chosen.old, chosen.new):
            raise ProblemError(
                f"OLD and NEW are the same file, {chosen.old}: name the record from before the upgrade, and the one from after"
            )
        _check_globs(chosen, records)
        return told(chosen, gate(*records, found, entries, targets=chosen.target, cases=chosen.case), found.accept)


def wanted(chosen: argparse.Namespace) -> tuple[Any, Any]:
    """Return the settings, and the changes that are accepted. Raises ProblemError."""
    from reports.accept import read
    from reports.gate import settings
    from reports.verbs import ProblemError

    found = settings(chosen.config, chosen.levels, chosen.accept, chosen.uses)
    if chosen.update and found.accept is None:
        raise ProblemError("--update wants --accept FILE, the file to add to")
    new_file = found.accept is not None and chosen.update and not found.accept.exists()
    return found, read(found.accept) if found.accept is not None and not new_file else []


def told(chosen: argparse.Namespace, report: Any, accept: Path | None) -> int:
    """Write what was found where it shall be, and return the exit status. Raises ProblemError."""
    import os

    from reports.formats import render, text
    from reports.verbs import written

    if chosen.format == "text":
        written(text.render(report, _style(chosen), full=not chosen.brief), chosen.output)
    else:
        written(render(chosen.format, report), chosen.output)
    if chosen.format == "github":
        _summarise(report, os.environ.get("GITHUB_STEP_SUMMARY"))
    if chosen.update:
        _update(report, accept)
    return int(report.status)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles from going through the records again and again: there are none in them, and the process ends soon."""
    import gc

    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()  # else it would go through all of it once, at the first object that is made now
            gc.enable()


def _check_globs(chosen: argparse.Namespace, records: Any) -> None:
    """Refuse a glob that matches nothing. Raises ProblemError."""
    from reports.compare import bare, plain
    from reports.verbs import matching

    known = [target for record in records for target in record.targets.values()]
    targets = {name: None for target in known for name in (target.name, plain(target), bare(target))}
    matching(targets, chosen.target, "target")
    matching({case: None for record in records for _, case in record.cells}, chosen.case, "case")


def _style(chosen: argparse.Namespace) -> Any:
    from dataclasses import replace

    from reports.style import style_of

    style = style_of()
    return style if chosen.output is None else replace(style, colour=False, unicode=True, width=120)


def _summarise(report: Any, path: str | None) -> None:
    """Add the findings to the summary of the step, where the runner says which file that is."""
    from reports.formats import render
    from reports.verbs import ProblemError

    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(render("markdown", report))
    except OSError as error:
        raise ProblemError(f"GITHUB_STEP_SUMMARY names {path}, which can't be written ({error.strerror or error})") from error


def _update(report: Any, path: Any) -> None:
    from datetime import date

    from reports.accept import append, skeleton
    from reports.verbs import say
    from reports.visible import visible

    changes = [finding.change for finding in report.findings if finding.change.case]
    if changes:
        append(path, skeleton(changes, date.today()))
    say(visible(f"{path}: {len(changes)} changes added" + ("; give each a reason" if changes else "")))
