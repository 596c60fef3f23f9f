"""`python -m reports bisect`: the first release that answers a question otherwise."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  python -m reports bisect moving/no-device/zeros-like jax 0.4.20..0.10.2
  python -m reports bisect placement/add/host-accelerator torch 2.0.0..2.15.0 --target torch:fake-cuda

Both ends are asked, then the release in the middle, and so on: of a hundred releases nine are. Their environments are kept.

exit status: 0 it was found, 1 both ends answer alike, 2 it could not be found out.
"""


def register(verbs: Any) -> None:
    """Add the verb's arguments."""
    from reports.installable import EVERY, FRAMEWORKS
    from reports.verbs.upgrade import environments

    verb = verbs.add_parser(
        "bisect", help="the first release with another answer", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Find the first release of a framework that answers a question otherwise than the oldest of a range does.",
    )  # fmt: skip
    verb.add_argument("question", metavar="CASE", help="the id of a case")
    verb.add_argument("framework", metavar="FRAMEWORK", choices=tuple(FRAMEWORKS), help=", ".join(FRAMEWORKS))
    verb.add_argument("versions", metavar="OLD..NEW", help="the range, such as 0.4.20..0.10.2")
    verb.add_argument("--every", choices=EVERY, default="patch", help="the releases of the range to choose from (default: patch, all)")
    environments(verb, cases=False)
    verb.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Halve the range until two neighbours are left."""
    from reports.environments import interpreters
    from reports.releases import chosen as releases
    from reports.releases import known
    from reports.verbs import ProblemError, catalogue, matching
    from reports.verbs.upgrade import selectors
    from reports.visible import line

    names = matching(catalogue(), [chosen.question], "case")
    if len(names) > 1:
        raise ProblemError(f"{chosen.question} matches {len(names)} cases, such as {names[0]}; one question is looked for at a time")
    if ".." not in chosen.versions:
        raise ProblemError(f"{chosen.versions!r} is no range, such as 0.4.20..0.10.2")
    pythons = interpreters(chosen.python)
    there = releases(chosen.framework, [chosen.versions], chosen.every, lambda: known(chosen.framework, pythons))
    if len(there) < 2:
        raise ProblemError(f"{chosen.versions} holds one release; a range with two ends is halved")
    search = Search(chosen, names[0], pythons, selectors(chosen.framework, chosen.target))
    first = search.differing(there[0], there[-1])
    if first is None:
        print(line(f"{names[0]}: {chosen.framework} {there[0]} and {there[-1]} answer alike: {search.answers(there[0])}"))
        return 1
    left, right, skipped = search.halved(there, first)
    change = search.change(left, right, first)
    told = "; ".join(f"{d.what}: {d.old} → {d.new}" for d in change.differences if d.what != "answer")
    answers = (
        f"{change.old} until {left}, {change.new} since {right}" if change.old != change.new else f"{change.old}; since {right} {told}"
    )
    print(line(f"{first} {names[0]}: {answers} ({change.kind}; {search.asked} of {len(there)} releases asked)"))
    if skipped:
        print(line(f"between them couldn't be asked, or didn't decide: {', '.join(skipped)}"))
    return 0


class Search:
    """Releases that are asked one question, each once."""

    def __init__(self, chosen: argparse.Namespace, case: str, pythons: Any, targets: Sequence[str]) -> None:
        """Take what is asked, and of whom."""
        self._chosen = chosen
        self._case = case
        self._pythons = pythons
        self._targets = targets
        #: Release -> target -> what it answered.
        self._sides: dict[str, dict[str, Any]] = {}

    @property
    def asked(self) -> int:
        """Return how many releases were asked."""
        return len(self._sides)

    def answers(self, version: str) -> str:
        """Return what a release answers, for a sentence."""
        return ", ".join(f"{name} {side.cell(self._case).outcome}" for name, side in self._of(version).items())

    def differing(self, old: str, new: str) -> str | None:
        """Return the first target that answers otherwise in another release. Raises ProblemError."""
        from reports.verbs import ProblemError

        both = [name for name in self._of(old) if name in self._of(new)]
        behaving = [name for name in both if any(self._decides(version, name) for version in (old, new))]
        if not behaving:
            raise ProblemError(f"{self._case} has no answer in {old} nor in {new}: {self.answers(old)}")
        return next((name for name in behaving if self.change(old, new, name) is not None), None)

    def halved(self, there: Sequence[str], target: str) -> tuple[str, str, list[str]]:
        """Return the neighbours between which the answer changes, and releases between them that say nothing."""
        from reports.verbs import ProblemError, say

        left, right = 0, len(there) - 1
        mute: set[int] = set()
        while inner := [n for n in range(left + 1, right) if n not in mute]:
            middle = min(inner, key=lambda n: abs(n - (left + right) / 2))
            try:
                decides = self._decides(there[middle], target)
            except ProblemError as problem:
                say(str(problem))
                decides = False
            if not decides:
                mute.add(middle)
            elif self.change(there[left], there[middle], target) is None:
                left = middle
            else:
                right = middle
        return there[left], there[right], [there[n] for n in range(left + 1, right)]

    def change(self, old: str, new: str, target: str) -> Any:
        """Return what differs between two releases, as the gate sees it; None where nothing does, or nothing that is settled."""
        from reports.changes import change

        found = change(target, *(self._of(version)[target].cell(self._case) for version in (old, new)))
        return None if found is None or found.kind == "unsettled" else found

    def _decides(self, version: str, target: str) -> bool:
        cell = self._of(version)[target].cell(self._case) if target in self._of(version) else None
        return cell is not None and (cell.behaves or cell.status == "not-offered")

    def _of(self, version: str) -> dict[str, Any]:
        if version not in self._sides:
            self._sides[version] = self._ask(version)
        return self._sides[version]

    def _ask(self, version: str) -> dict[str, Any]:
        from dataclasses import replace
        from tempfile import TemporaryDirectory

        from cases import catalogue
        from reports.compare import bare
        from reports.derive import Side
        from reports.environments import Release, discard, environment
        from reports.record import read
        from reports.verbs.upgrade import asker

        one = Release(self._chosen.framework, version, "", tuple(self._chosen.beside))
        place = environment(one, self._pythons)
        cases = tuple(filter(None, (self._case, catalogue()[self._case].control)))
        try:
            with TemporaryDirectory(prefix="device-semantics-") as folder:
                path = Path(folder) / "record.jsonl"
                replace(asker(self._chosen, version, one, self._targets, place, path), cases=cases).ask()
                record = read(path)
        finally:
            if self._chosen.discard:
                discard(place)
        return {
            bare(target): Side(target, {case: cell for (of, case), cell in record.cells.items() if of == target.name})
            for target in record.targets.values() if target.available
        }  # fmt: skip
