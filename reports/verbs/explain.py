"""`python -m reports explain`: one question, in every framework's own code, and what was promised."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports explain placement/matmul/host-accelerator
  python -m reports explain 'moving/to-same/*' --target torch:cpu
  python -m reports explain placement/add/host-accelerator --target torch:meta --script > ask.py

Without --target devices are called by their roles: host, accelerator, peer, alias. With it they are
written as the target does, which its last record knows (--record) or, without a record, its worker.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    verb = verbs.add_parser(
        "explain", help="a question, native code, contracts", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Tell a case: what it asks and why, what it can answer, the code of each framework, and what is promised.",
    )  # fmt: skip
    verb.add_argument("case", metavar="CASE", help="an id, or a glob")
    verb.add_argument("--target", metavar="SELECTOR", help="write devices as this target does")
    verb.add_argument("--record", type=Path, metavar="RECORD", help="the record that knows the target (default: the last one)")
    verb.add_argument("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS", help="add a framework from outside")
    verb.add_argument("--script", action="store_true", help="nothing but a script that can be run; wants --target and one case")
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Explain the cases that match."""
    from cases import catalogue
    from reports.style import style_of
    from reports.verbs import ProblemError, matching

    known = catalogue()
    found = [known[name] for name in matching(known, [chosen.case], "case")]
    targets = _targets(chosen) if chosen.target else None
    if chosen.script:
        if targets is None or len(targets) != 1 or len(found) != 1:
            raise ProblemError("--script wants one case and a --target that is one target, such as --target torch:cpu")
        print(_script(found[0], targets[0]), end="")
        return
    style = style_of()
    for n, one in enumerate(found):
        for line in (*([""] if n else ()), *_lines(one, targets, chosen, style)):
            print(line)


def _lines(one: Any, targets: list[Any] | None, chosen: argparse.Namespace, style: Any) -> Iterator[str]:
    from adapters.targets import adapters
    from reports import marks
    from reports.style import wrapped

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
    frameworks = {target.framework for target in targets} if targets else None
    for framework, adapter in adapters(chosen.adapter).items():
        if frameworks is None or framework in frameworks:
            yield ""
            yield style.paint(framework, "title")
            yield from _promises(framework, one, style)
            for target in targets or [None]:
                if target is None or target.framework == framework:
                    yield from _code(framework, adapter, one, target)
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


def _code(framework: str, adapter: str | None, one: Any, target: Any) -> Iterator[str]:
    from adapters.phrases import Phrases
    from adapters.source import UnclearError

    try:
        book = Phrases.of(framework, adapter) if target is None else Phrases(target.to_json() | {"adapter": adapter})
    except UnclearError as reason:
        yield f"  no code to show: {reason}"
        return
    if target is not None:
        yield f"  {target.name}, {framework} {target.version}"
    for line in book.lines(one.program.wire()):
        yield from (f"    {text}" for text in line.code.splitlines())


def _script(one: Any, target: Any) -> str:
    from adapters.phrases import Phrases
    from adapters.source import UnclearError
    from reports.verbs import ProblemError

    try:
        book = Phrases(target.to_json())
    except UnclearError as reason:
        raise ProblemError(f"no script for {target.name}: {reason}") from reason
    strange = [line.code.lstrip("# ") for line in book.lines(one.program.wire()) if not line.runs]
    if strange:
        raise ProblemError(f"no script for {target.name}: {strange[0]}")
    title = f"{one.id} on {target.name} ({target.framework} {target.version})\n{one.question}"
    return book.script(one.program.wire(), title=title, environment=one.environment)


def _targets(chosen: argparse.Namespace) -> list[Any]:
    """Return the targets that a selector means, from a record that has them, else by starting them."""
    from fnmatch import fnmatchcase

    from adapters.lane import Settings
    from adapters.pool import Pool
    from adapters.process import NotStarted
    from adapters.targets import adapters, parse, plan
    from reports.cells import Target
    from reports.record import LATEST, RecordError, read
    from reports.verbs import ProblemError

    selector = parse(chosen.target)
    path = chosen.record or LATEST
    if chosen.record or path.exists():
        try:
            known = [t for t in read(path).targets.values() if t.available and fnmatchcase(t.name, str(selector))]
        except RecordError:
            if chosen.record:
                raise
            known = []
        if known:
            return known
        if chosen.record:
            raise ProblemError(f"{path} has no target {selector}; leave --record out to start it")
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
