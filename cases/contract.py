"""What targets promise: contracts/*.toml, and an answer held against them.

A contract file speaks of one framework (`norm.toml` of all). Its `promise` entries are tried in the
order of the file and the first that matches speaks; put the particular before the general.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

FOLDER = Path(__file__).parent / "contracts"
#: Strengths that pin an answer, and those that say that none is promised.
PINS = ("guaranteed", "recommended")
FREE = ("undocumented", "undefined")
CONFORMS, DEVIATES, KNOWN, UNPINNED = "conforms", "deviates", "known-deviation", "unpinned"
VERDICTS = (CONFORMS, DEVIATES, KNOWN, UNPINNED)


class ContractError(Exception):
    """A contract file is not in order; the message says which, where and why."""


@dataclass(frozen=True)
class Entry:
    """One promise, or one known deviation from one."""

    cases: tuple[str, ...]
    #: Globs on the device kind (`cuda`, `fake-*`).
    targets: tuple[str, ...]
    #: Accepted answers; of a deviation the one known answer, `crashed` or `hung`.
    answers: tuple[str, ...]
    strength: str
    #: A link: documentation, standard, or an issue.
    source: str
    #: What the source says, in our words.
    says: str
    versions: SpecifierSet
    #: Of a deviation that hangs on the hardware: the evidence with which it must be seen; "" for all.
    evidence: str = ""

    def applies(self, kind: str, version: str) -> bool:
        """Say whether the entry is about this device kind in this version."""
        return self._targets(kind) and _within(version, self.versions)

    def names(self, case: str) -> bool:
        """Say whether the entry is about this case."""
        return self._cases(case)

    @cached_property
    def _cases(self) -> Callable[[str], bool]:
        return _matcher(self.cases)

    @cached_property
    def _targets(self) -> Callable[[str], bool]:
        return _matcher(self.targets)


@dataclass(frozen=True)
class Contract:
    """Everything that is promised of one framework."""

    framework: str
    promises: tuple[Entry, ...]
    deviations: tuple[Entry, ...]

    def promise(self, case: str, kind: str, version: str) -> Entry | None:
        """Return the first promise about the case."""
        return self._first(self.promises, case, kind, version)

    def deviation(self, case: str, kind: str, version: str) -> Entry | None:
        """Return the first known deviation about the case."""
        return self._first(self.deviations, case, kind, version)

    def _first(self, entries: tuple[Entry, ...], case: str, kind: str, version: str) -> Entry | None:
        # A run asks about the same case for each target, twice for the norm: look through the entries once for each.
        key = (id(entries), case, kind, version)
        if key not in self._found:
            about = id(entries), case
            if about not in self._about:
                self._about[about] = [e for e in entries if e.names(case)]
            self._found[key] = next((e for e in self._about[about] if e.applies(kind, version)), None)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[int, str, str, str], Entry | None]:
        return {}

    @cached_property
    def _about(self) -> dict[tuple[int, str], list[Entry]]:
        return {}

    def verdict(self, case: str, kind: str, version: str, answer: str) -> str:
        """Hold an answer (or `crashed`, `hung`) against the contract.

        A known deviation is strict: when its bug is gone, the answer `deviates` from what is known
        unless the promise accepts it, and the run says that the entry is stale.
        """
        known = self.deviation(case, kind, version)
        if known is not None and answer in known.answers:
            return KNOWN
        promise = self.promise(case, kind, version)
        if promise is None or promise.strength in FREE:
            return DEVIATES if answer in ("crashed", "hung") else UNPINNED
        return CONFORMS if answer in promise.answers else DEVIATES

    def stale(self, case: str, kind: str, version: str, answer: str) -> Entry | None:
        """Return the known deviation that this answer shows to be gone."""
        known = self.deviation(case, kind, version)
        return known if known is not None and answer not in known.answers else None


def _matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """Compile globs once: fnmatch keeps too few patterns to be asked about every entry for every cell."""
    pattern = re.compile("|".join(translate(glob) for glob in globs))
    return lambda text: pattern.match(text) is not None


@cache
def _within(version: str, wanted: SpecifierSet) -> bool:
    try:
        return wanted.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return not str(wanted)


@cache
def contracts() -> Mapping[str, Contract]:
    """Return every contract by framework; `norm` is the array API standard's device rules."""
    found: dict[str, Contract] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        contract = read(path)
        if contract.framework in found:
            raise ContractError(f"{path.name}: another file speaks of {contract.framework} already; put all of it into one")
        found[contract.framework] = contract
    return found


def contract_for(framework: str) -> Contract:
    """Return a framework's contract; an empty one where nobody wrote one."""
    return contracts().get(framework, Contract(framework, (), ()))


def read(path: Path) -> Contract:
    """Read one contract file. Raises ContractError with file, entry and reason."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContractError(f"{path.name}: {error}") from error
    unknown = set(data) - {"framework", "promise", "deviation"}
    if unknown or not isinstance(data.get("framework"), str):
        raise ContractError(f"{path.name}: wants framework, [[promise]] and [[deviation]], not {sorted(unknown)}")
    return Contract(data["framework"], _entries(path, data, "promise", "accepts"), _entries(path, data, "deviation", "answer"))


def _entries(path: Path, data: Mapping[str, Any], what: str, key: str) -> tuple[Entry, ...]:
    found = data.get(what, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ContractError(f"{path.name}: {what} is no list of tables; write [[{what}]] over each")
    return tuple(_entry(f"{path.name}: {what} {n}", item, key) for n, item in enumerate(found, 1))


def _entry(where: str, item: Mapping[str, Any], key: str) -> Entry:
    unknown = set(item) - {"cases", "targets", key, "strength", "source", "says", "versions", *(["evidence"] if key == "answer" else [])}
    if unknown:
        raise ContractError(f"{where}: unknown key {min(unknown)!r}")
    given = {"targets": ["*"], "strength": PINS[0], "versions": "", "evidence": "", "source": "", "says": "", "cases": [], key: [], **item}
    for name in ("cases", "targets", key):
        if name == key and isinstance(given[key], str):
            given[key] = [given[key]]
        if not isinstance(given[name], list) or not all(isinstance(text, str) for text in given[name]):
            raise ContractError(f"{where}: {name} is {item[name]!r:.80}, not a list of texts")
    for name in ("strength", "versions", "evidence", "source", "says"):
        if not isinstance(given[name], str):
            raise ContractError(f"{where}: {name} is {item[name]!r:.80}, not a text")
    if given["strength"] not in PINS + FREE:
        raise ContractError(f"{where}: strength {given['strength']!r} is none of {', '.join(PINS + FREE)}")
    if given["evidence"] not in ("", "measured", "simulated"):
        raise ContractError(f"{where}: evidence {given['evidence']!r} is neither measured nor simulated")
    strength = given["strength"] if key == "accepts" else PINS[0]
    if bool(given[key]) == (strength in FREE):
        raise ContractError(f"{where}: {key} goes with the strengths {' and '.join(PINS)}, and only with them")
    if not given["cases"] or not given["targets"] or not given["source"].startswith("https://") or not given["says"]:
        raise ContractError(f"{where}: wants cases, a source (https://…) and what it says")
    try:
        versions = SpecifierSet(given["versions"])
    except InvalidSpecifier as error:
        raise ContractError(f"{where}: {error}") from error
    texts = given["source"], given["says"]
    return Entry(tuple(given["cases"]), tuple(given["targets"]), tuple(given[key]), strength, *texts, versions, given["evidence"])


def check(names: Iterable[str], words: Mapping[str, Iterable[str]]) -> None:
    """Check that entries name existing cases and answers that those can have. Raises ContractError."""
    known = list(names)
    for contract in contracts().values():
        for entry in (*contract.promises, *contract.deviations):
            for glob in entry.cases:
                matching = [glob] if glob in words else list(filter(re.compile(translate(glob)).match, known))
                if not matching:
                    raise ContractError(f"contract {contract.framework}: no case matches {glob!r}")
                for name in matching:
                    strange = set(entry.answers) - set(words[name]) - {"crashed", "hung"}
                    if len(strange) == len(entry.answers) and entry.answers:
                        raise ContractError(f"contract {contract.framework}: case {name} can't answer {', '.join(sorted(strange))}")
