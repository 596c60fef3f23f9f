"""`pytest --baseline FILE`: a run held against a record that somebody keeps, as the gate holds two records against each other.

What was asked decides what is compared: a target or a case that somebody left out is not missing, and one that the baseline
has, that was asked for, and that isn't there any more is.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from adapters.targets import Selector, parse
from cases import catalogue
from reports.accept import read as read_accepted
from reports.asking import Asker, settled
from reports.cells import Target
from reports.compare import bare
from reports.formats import text
from reports.gate import Report, gate, settings
from reports.record import Record, read
from reports.style import Style
from reports.verbs import ProblemError


class Baseline:
    """A record that answers shall not differ from."""

    def __init__(self, option: Namespace) -> None:
        """Read the record and what may change, before anything is asked. Raises ProblemError, RecordError."""
        self.path = Path(option.baseline)
        self._option = option
        if option.record and Path(option.record).exists() and self.path.exists() and self.path.samefile(option.record):
            raise ProblemError(f"--baseline and --record are the same file, {self.path}: the record would take the baseline's place")
        read(self.path)
        self._settings = settings(Path(option.gate_config) if option.gate_config else None)
        self._entries = read_accepted(self._settings.accept) if self._settings.accept is not None else []
        self._report: Report | None = None

    def held(self, record: Path) -> int:
        """Compare, ask again what isn't settled, and return the gate's exit status. Raises ProblemError, RecordError."""
        new = read(record)
        options = [f"--adapter={text}" for text in self._option.adapter]
        asker = Asker("baseline", tuple(self._selectors(new)), record, options=(*options, f"--deadline={self._option.deadline}"))
        self._report = settled((self.path, record), (None, asker), self._gate)
        return self._report.status

    def lines(self, style: Style) -> Iterator[str]:
        """Yield what was found."""
        if self._report is not None:
            yield from text.render(self._report, style, full=False).splitlines()

    def _gate(self, old: Record, new: Record) -> Report:
        return gate(self._within(old, new), new, self._settings, self._entries)

    def _within(self, old: Record, new: Record) -> Record:
        """Return the part of the baseline that was asked for again."""
        chosen = [parse(text) for text in new.scope["targets"]] if self._option.target else None
        targets = {name: target for name, target in old.targets.items() if chosen is None or _wanted(chosen, target)}
        globs = new.scope["cases"]
        asked = sum(any(fnmatchcase(case, glob) for glob in globs) for case in catalogue())
        pairs = None
        if new.scope["selected"] < asked * sum(target.available for target in new.targets.values()):  # by -k, by ids
            pairs = {(bare(new.targets[target]), case) for target, case in new.cells}
            targets = {name: target for name, target in targets.items() if any(kind == bare(target) for kind, _ in pairs)}
        cells = {
            key: cell for key, cell in old.cells.items() if key[0] in targets and any(fnmatchcase(key[1], glob) for glob in globs)
            and (pairs is None or (bare(targets[key[0]]), key[1]) in pairs)
        }  # fmt: skip
        return replace(old, targets=targets, cells=cells)

    def _selectors(self, new: Record) -> Iterator[str]:
        """Yield what starts exactly the targets of a record, with the interpreters that they were asked in."""
        for typed in map(parse, new.scope["targets"]):
            for target in _available(new.targets).values():
                if typed.chose(target.name, target.framework, target.device):
                    yield str(Selector(target.framework, target.device, typed.label, typed.command))


def _available(targets: Mapping[str, Target]) -> dict[str, Target]:
    return {name: target for name, target in targets.items() if target.available}


def _wanted(chosen: list[Selector], target: Target) -> bool:
    framework, _, device = bare(target).partition(":")
    return any(fnmatchcase(framework, one.framework) and fnmatchcase(device, one.device) for one in chosen)
