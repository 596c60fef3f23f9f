"""`python -m reports history`: since which release each question is answered so."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FORMATS = ("terminal", "markdown", "json", "html")
#: So many releases are asked in one run: each alone would leave a core idle, and more need memory, and disk for their environments.
#: Twelve cached releases of JAX took 184 s by twos and 165 s by threes, on two cores.
_TOGETHER = 3
_EXAMPLES = """examples:
  python -m reports history jax                               # what is recorded
  python -m reports history jax 0.4.26..0.10.2                # the last release of each minor version, asked now
  python -m reports history numpy 1.26.4,2.0.2,2.4.6 --case 'moving/*'
  python -m reports history torch 2.0.. --target torch:cpu --discard
  python -m reports history jax --format html --output page.html
  python -m reports history jax --releases

Every release gets an environment of its own, made by uv in the user's cache folder, and a record in reports/out/history/.
What has a complete record of today's cases isn't asked again, unless --again says so. In a range every 0.4.x of JAX counts
as a minor version; --every patch takes all releases.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    from reports.installable import EVERY, FRAMEWORKS
    from reports.verbs.upgrade import environments

    verb = verbs.add_parser(
        "history", help="answer by version", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Ask release after release of a framework, and tell since when each question is answered so.",
    )  # fmt: skip
    verb.add_argument("framework", metavar="FRAMEWORK", choices=tuple(FRAMEWORKS), help=", ".join(FRAMEWORKS))
    verb.add_argument("versions", nargs="*", metavar="VERSIONS", help="releases and ranges to ask, such as 0.4.26..0.10.2")
    verb.add_argument("--every", choices=EVERY, default="minor", help="what a range takes (default: minor)")
    verb.add_argument("--releases", action="store_true", help="only list the releases that the package index has")
    verb.add_argument("--again", action="store_true", help="ask what has a record, too")
    environments(verb)
    verb.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="also write each record there, compressed and without paths of this machine"
    )
    verb.add_argument("--full", action="store_true", help="all questions, instead of those whose answers changed")
    verb.add_argument("--format", choices=FORMATS, default="terminal", help="default: terminal")
    verb.add_argument("--output", type=Path, metavar="PATH", help="write there instead of to standard output")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Ask what has no record, and show the history."""
    from reports import history
    from reports.compare import bare
    from reports.environments import interpreters
    from reports.releases import chosen as releases
    from reports.releases import known
    from reports.verbs import ProblemError, catalogue, matching, say, written
    from reports.verbs.upgrade import selectors
    from reports.visible import visible

    cases = matching(catalogue(), chosen.case, "case")
    targets = selectors(chosen.framework, chosen.target)
    if chosen.releases:
        written("".join(f"{one}\n" for one in known(chosen.framework, interpreters(chosen.python))), chosen.output)
        return 0
    failed: list[str] = []
    paths = [paths[-1] for paths in history.files(chosen.framework, _folders(chosen)).values()]
    if chosen.versions:
        pythons = interpreters(chosen.python)
        wanted = releases(chosen.framework, chosen.versions, chosen.every, lambda: known(chosen.framework, pythons))
        paths, failed = _asked(chosen, wanted, pythons, targets)
    if not paths:
        raise ProblemError(
            f"no release of {chosen.framework} is recorded; name some, such as 1.0..2.0" if not failed else "; ".join(failed)
        )
    alike: dict[bytes, Any] = {}
    records = [history.recorded(path, chosen.framework, seen=alike) for path in paths]
    names = {bare(target): None for record in records for target in record.targets.values()}
    found = history.build(records, matching(names, chosen.target, "target"), cases)
    for warning in found.warnings:
        say(visible(warning))
    written(_text(chosen, found, records), chosen.output)
    for one in failed:
        say(visible(one))
    return 2 if failed else 0


def _folders(chosen: argparse.Namespace) -> tuple[Path, ...]:
    from reports.history import MADE, RECORDED

    return (RECORDED, chosen.records or MADE)


def _asked(chosen: argparse.Namespace, wanted: Sequence[str], pythons: Any, targets: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Ask each release that has no record; return the records, and a sentence for each release that couldn't be asked."""
    from dataclasses import replace

    from reports.asking import together
    from reports.environments import Release, discard, environment
    from reports.history import doubtful, files, keep
    from reports.record import read
    from reports.verbs import say
    from reports.verbs.upgrade import asker

    folders = _folders(chosen)
    there = files(chosen.framework, folders)
    found: dict[str, Path] = {}
    if not chosen.again:
        good = {
            version: next((path for path in reversed(there.get(version, [])) if _whole(chosen, path, targets)), None) for version in wanted
        }
        found = {version: path for version, path in good.items() if path is not None}
    failed: list[str] = []
    missing = [version for version in wanted if version not in found]
    for few in (missing[n : n + _TOGETHER] for n in range(0, len(missing), _TOGETHER)):
        say(", ".join(f"{chosen.framework} {version}, {wanted.index(version) + 1} of {len(wanted)}" for version in few))
        ready: list[tuple[str, Any, Any]] = []
        try:
            for version in few:
                with _noted(failed):
                    place = environment(Release(chosen.framework, version, "", tuple(chosen.beside)), pythons)
                    record = folders[-1] / chosen.framework / f"{version}.jsonl"
                    one = asker(chosen, version, Release(chosen.framework, version), targets, place, record)
                    ready.append((version, place, replace(one, cases=())))
            asked = len(ready) > 1 and together([one for _, _, one in ready])
            for version, place, one in ready:
                with _noted(failed):
                    if not asked:
                        one.ask()
                    before = [found[earlier] for earlier in wanted[: wanted.index(version)] if earlier in found]
                    if before and (open_ := list(doubtful(read(before[-1]), read(one.record)))):
                        one.again(open_, times=1)  # what comes out twice is no accident of the machine
                    if chosen.keep:
                        keep(one.record, place.folder, chosen.keep / chosen.framework)
                    found[version] = one.record
        finally:
            for _, place, _ in ready if chosen.discard else ():
                discard(place)
    return [found[version] for version in wanted if version in found], failed


@contextmanager
def _noted(failed: list[str]) -> Iterator[None]:
    """Say why a release couldn't be asked, and go on with the next."""
    from reports.verbs import ProblemError, say

    try:
        yield
    except ProblemError as problem:
        failed.append(str(problem))
        say(str(problem))


def _whole(chosen: argparse.Namespace, path: Path, targets: Sequence[str]) -> bool:
    """Say whether a record has today's questions, and all that is asked of now."""
    from cases import catalogue
    from reports.cells import RecordError
    from reports.history import recorded
    from reports.writer import case_set

    try:
        record = recorded(path, chosen.framework)
    except RecordError:
        return False
    asked = {text.partition("@")[0].rpartition("=")[2] for text in record.scope["targets"]}
    same = record.case_set == case_set(catalogue().values())
    return (
        same and record.complete and record.scope["cases"] == ["*"] and (set(targets) <= asked or any(one.endswith(":*") for one in asked))
    )


def _text(chosen: argparse.Namespace, found: Any, records: Any) -> str:
    if chosen.format == "html":
        return _page(found, records, full=chosen.full)
    from reports import answer_by_version as view

    if chosen.format == "json":
        return view.json_text(found, full=chosen.full)
    if chosen.format == "markdown":
        return view.markdown(found, full=chosen.full)
    from dataclasses import replace

    from reports.style import style_of

    style = style_of()
    if chosen.output is not None:
        style = replace(style, colour=False, unicode=True, width=120)
    return style.fit(view.terminal(found, style, full=chosen.full))


def _page(found: Any, records: Any, *, full: bool) -> str:
    """Return the page whose columns are the releases of each target, oldest first, judged by the code of today."""
    from dataclasses import replace

    from reports import html, matrix
    from reports.compare import bare
    from reports.derive import Side
    from reports.history import release

    cases = {one.case for one in (found.lines if full else found.changed) or found.lines}
    merged = matrix.build(records)
    columns = {}
    for column in merged.columns:
        name, version = bare(column.target), release(column.target)
        if version in found.releases.get(name, ()):
            side = Side(column.target, column.cells)
            cells = {case: side.cell(case) for case in cases if case in column.cells}
            columns[name, version] = replace(column, key=f"{name} {version}", target=replace(column.target, name=name), cells=cells)
    ordered = [columns[name, version] for name, versions in found.releases.items() for version in versions if (name, version) in columns]
    return html.render(merged.chosen(ordered, cases), found)
