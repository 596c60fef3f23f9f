"""`python -m reports explain`: one question, in every framework's own code, and what was promised."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports explain placement/matmul/host-accelerator
  python -m reports explain 'moving/to-same/*' --target torch:cpu
  python -m reports explain placement/add/host-accelerator --target torch:meta --script > ask.py

Each framework's code is a script for a fresh interpreter, and prints what the question looks at. It is written for the
target that --target names, as a record knows it (--record, else the last one) or its worker; without --target, for one of
the record's that can be asked, and where there is no record, for one that is on every machine. What a record says of
devices and variables goes into the script: read one that is made of somebody else's record before you run it.
"""
#: How lines begin that say why there is no script.
_INCOMPLETE, _NO_CODE, _NOT_ASKED = "# incomplete: ", "# no code to show: ", "# this can't be asked: "


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "explain", help="a question, native code, contracts", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Tell a case: what it asks and why, what it can answer, the code of each framework, and what is promised.",
    )  # fmt: skip
    verb.add_argument("case", metavar="CASE", help="an id, or a glob")
    verb.add_argument(
        "--target", action="append", default=[], metavar="SELECTOR", help="write devices as this target does; may be given again"
    )
    verb.add_argument("--record", type=Path, metavar="RECORD", help="the record that knows the target (default: the last one)")
    verb.add_argument("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS|PROGRAM", help="add a framework from outside")
    verb.add_argument("--script", action="store_true", help="nothing but a script that can be run; wants --target and one case")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Explain the cases that match."""
    from reports.style import style_of
    from reports.verbs import ProblemError, catalogue, matching

    known = catalogue()
    found = [known[name] for name in matching(known, [chosen.case], "case")]
    record = _record(chosen)
    targets = list({t.name: t for text in chosen.target for t in _targets(text, chosen, record)}.values())
    if chosen.script:
        if len(targets) != 1 or len(found) != 1:
            raise ProblemError("--script wants one case and a --target that is one target, such as --target torch:cpu")
        print("\n".join(_whole(found[0], targets[0], record)))
        return
    style = style_of()
    for n, one in enumerate(found):
        for line in (*([""] if n else ()), *_lines(one, targets, record, chosen, style)):
            print(line)


def _lines(one: Any, targets: list[Any], record: Any, chosen: argparse.Namespace, style: Any) -> Iterator[str]:
    from adapters.targets import adapters
    from reports import marks
    from reports.history import told
    from reports.style import wrapped
    from reports.visible import line

    yield style.paint(one.id, "title")
    yield from wrapped([one.question, one.why], style)
    yield ""
    wide = max(map(len, one.answers.words))
    yield style.paint("answers", "title")
    for word, (kind, says) in one.answers.words.items():
        yield from wrapped([f"  {style.paint(f'{style.mark(kind)} {word:<{wide}}', kind)}  {marks.SAYS[kind]}: {says}"], style, wide + 6)
    yield f"control: {one.control or 'none, it stands alone'}"
    if one.claims:
        yield f"claims: {', '.join(one.claims)}"
        known = _claims()
        yield from wrapped([f"  {claim}: {known[claim]}" for claim in one.claims if claim in known], style, 4)
    if one.environment:
        yield f"environment: {one.environment}"
    known_adapters = adapters(chosen.adapter)
    recorded = [target for target in record.targets.values() if target.available] if chosen.record else []
    for framework in dict.fromkeys([t.framework for t in targets] or [*known_adapters, *(t.framework for t in recorded)]):
        yield ""
        yield style.paint(line(framework), "title")
        yield from _promises(framework, one, style)
        yield from wrapped([line(f"  {target}: {text}") for target, text in told(framework, one.id)], style, 4)
        for target in [t for t in targets if t.framework == framework] or [_fitting(framework, one, record)]:
            yield ""
            yield from _script(framework, known_adapters.get(framework), one, target, record)
    yield ""
    yield style.paint("array API standard", "title")
    yield from _promises("norm", one, style)


def _promises(framework: str, one: Any, style: Any) -> Iterator[str]:
    from fnmatch import fnmatchcase

    from cases.contract import contract_for
    from reports.style import wrapped

    contract = contract_for(framework)
    found = [
        (what, entry) for what, entries in (("known deviation", contract.deviations), ("", contract.promises))
        for entry in _in_force([entry for entry in entries if any(fnmatchcase(one.id, glob) for glob in entry.cases)])
    ]  # fmt: skip
    possible = {*one.answers.words, "crashed", "hung"}
    for what, entry in found:
        scope = "" if entry.targets == ("*",) else f" on {', '.join(entry.targets)}"
        scope += f" in {entry.versions}" if str(entry.versions) else ""
        words = " or ".join(word for word in entry.answers if word in possible)
        yield from wrapped([f"  {what or entry.strength}{scope}{': ' if words else ''}{words}. {entry.says}"], style, 4)
        yield f"    {entry.source}"
    if not found:
        yield "  no contract speaks of it"


def _in_force(entries: list[Any]) -> Iterator[Any]:
    """Yield the entries that some target in some version comes to: the first one that fits speaks."""
    taken: list[str] = []
    for entry in entries:
        if not all(any(_covers(wide, glob) for wide in taken) for glob in entry.targets):
            yield entry
        if not str(entry.versions):
            taken += entry.targets


def _covers(wide: str, glob: str) -> bool:
    """Say whether a glob surely matches all that another does; with * alone no wildcard can pass for a letter."""
    from fnmatch import fnmatchcase

    return wide == glob or (not set("?[") & set(wide) and fnmatchcase(glob, wide))


def _claims() -> dict[str, str]:
    """Return the questions of the claims, where the checkout's tests are there."""
    import tomllib

    path = Path(__file__).parents[2] / "tests" / "claims.toml"
    try:
        return {name: str(says) for name, says in tomllib.loads(path.read_text("utf-8"))["claims"].items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, AttributeError):
        return {}


def _fitting(framework: str, one: Any, record: Any) -> Any:
    """Return the record's target that shows most: it can be asked, on a real device; None without any."""
    from cases.judge import applicable, evidence

    here = [target for target in record.targets.values() if target.available and target.framework == framework] if record else []

    def rank(target: Any) -> tuple[bool, bool]:
        facts = target.to_json()
        return applicable(one, facts) is not None, evidence(one, facts) != "measured"

    return min(here, key=rank, default=None)


def _script(framework: str, adapter: str | None, one: Any, target: Any, record: Any) -> Iterator[str]:
    """Yield the question as a script, its answer where it is known, and what keeps it from being complete."""
    from adapters.compiled import CRATES
    from adapters.phrases import Phrases
    from adapters.reproducer import Reproducer
    from adapters.source import UnclearError
    from adapters.templates import Templates, book_of
    from cases.judge import applicable
    from reports.visible import line, visible

    try:
        if target is not None:
            book = book_of(target.to_json() | ({"adapter": adapter} if adapter else {}))
        elif framework in CRATES and adapter is None:
            book = Templates.example(framework)
        else:
            book = Reproducer(Phrases.example(framework, adapter, one.program.roles - {"device"}))
    except UnclearError as reason:
        yield _NO_CODE + line(str(reason))
        return
    name = book.target.get("target", framework)
    missing = sorted(one.program.roles - {"device", *book.target["roles"]})
    why = applicable(one, target.to_json()) if target else ("not-applicable", f"{name} has no {missing[0]}") if missing else None
    if why:
        yield _NOT_ASKED + line(why[1])
        return
    cell = record.cells.get((name, one.id)) if record and target else None
    lines = book.lines(
        one.program.wire(), marks=one.program.marks, environment=one.environment, observation=cell.observation if cell else None
    )
    title = line(f"{one.id} on {name}" + (f" ({framework} {target.version})" if target else "") + (f": {cell.outcome}" if cell else ""))
    if book.neutral:
        title += "\nhost, accelerator, peer and alias are devices of yours: --target TARGET writes them out"
    script = book.script(one.program.wire(), title=f"{title}\n{one.question}", environment=one.environment, lines=lines)
    yield from map(visible, script.splitlines())


def _whole(one: Any, target: Any, record: Any) -> list[str]:
    """Return a script that is complete. Raises ProblemError where it can't be."""
    from reports.verbs import ProblemError

    lines = list(_script(target.framework, target.more.get("adapter"), one, target, record))
    for line in lines:
        said = re.sub("^// ", "# ", line)  # another language's comment
        for sign in (_INCOMPLETE, _NO_CODE, _NOT_ASKED):
            if said.startswith(sign):
                raise ProblemError(f"no script of {one.id} for {target.name}: {said.removeprefix(sign)}")
    return lines


def _record(chosen: argparse.Namespace) -> Any:
    """Return the record that was named, else the last one where it can be read, else None."""
    from reports.record import LATEST, RecordError, read
    from reports.verbs import say
    from reports.visible import visible

    try:
        return read(chosen.record or LATEST)
    except RecordError as problem:
        if chosen.record:
            raise
        if LATEST.exists():
            say(visible(f"the last record is not used: {problem}"))
        return None


def _targets(text: str, chosen: argparse.Namespace, record: Any) -> list[Any]:
    """Return the targets that a selector means, from a record that has them, else by starting them."""
    from fnmatch import fnmatchcase

    from adapters.lane import Settings
    from adapters.pool import Pool
    from adapters.process import NotStarted
    from adapters.targets import adapters, parse, plan
    from reports.cells import Target
    from reports.verbs import ProblemError

    selector = parse(text)
    known = [t for t in record.targets.values() if t.available and fnmatchcase(t.name, str(selector))] if record else []
    if known:
        return known
    if chosen.record:
        raise ProblemError(f"{chosen.record} has no target {selector}; leave --record out to start it")
    pool = Pool(*plan([selector], adapters(chosen.adapter)), Settings())
    try:
        found = [Target.from_json(target["target"], target) for target in pool.targets()]
    except NotStarted as error:
        raise ProblemError(str(error)) from error
    finally:
        pool.close()
    if not any(target.available for target in found):
        raise ProblemError("; ".join(f"{target.name}: {target.why}" for target in found))
    return [target for target in found if target.available]
