"""One run's questions and what becomes of the answers: cases and targets are chosen, asked, judged and written down.

This is the one place that knows what is asked (cases), who is asked (adapters) and what becomes of the
answers (reports). Of pytest it knows no more than how a sentence ends a run.
"""

from __future__ import annotations

import random
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from adapters.lane import Request, Settings, listed
from adapters.pool import Pool, Target
from adapters.process import NotStarted
from adapters.targets import Selector, SelectorError, adapters, parse, plan
from cases.case import Case, CatalogueError, catalogue
from cases.contract import DEVIATES, KNOWN, ContractError, check, contract_for, contracts
from cases.controls import held
from cases.judge import applicable, judge
from reports.cells import UNDECIDED, decided, readable
from reports.cells import Target as Described
from reports.record import RecordError, Writer, default_path

#: The most that `--deadline` may be: a day.
_LONGEST = 86400.0
#: What was asked can't be done; the message says why and what to do, and ends the run with exit status 2.
Failure = pytest.UsageError


class Run:
    """The cases and targets of one run, its pool and its record."""

    def __init__(self, option: Namespace, named: list[str], jobs: int, say: Callable[[str], None]) -> None:
        """Read the options and start the workers; `named` are targets to ask where no option says. Raises Failure."""
        self._option = option
        deadline = _number("deadline", option.deadline, float, "seconds above 0, up to a day", 0.0, _LONGEST)
        self._times = int(_number("repeat", option.repeat, int, "a whole number from 1 on", 0, 10**6))
        shuffle = option.shuffle
        self._seed = None if shuffle is None else int(_number("shuffle", shuffle, int, "a whole number", -(10**18), 10**18))
        _check_path(option.record)
        try:
            self._catalogue = catalogue()
            #: The chosen cases' ids in the order in which they are asked: those that are asked alone come last.
            self.cases = [one.id for one in sorted(self._choose(option.case), key=lambda one: one.alone)]
            self._known = known = adapters(option.adapter)
            self._typed = [parse(text) for text in option.target or named]
            self._selectors = self._typed or [Selector(name, "*") for name in known]
            wanted, absent = plan(self._selectors, known)
        except (CatalogueError, SelectorError) as error:
            raise Failure(str(error)) from error
        #: Globs of the targets that are known not to be here without starting anything.
        self.absent = [one.name for one in absent]
        self._selected: set[tuple[str, str]] | None = None
        #: Answers, or statuses, as they came, before controls were held against them.
        self._outcomes: dict[tuple[str, str], str] = {}
        #: Target -> how many of its cells nobody was there for, and of a target that was lost part-way -> why.
        self._unasked: Counter[str] = Counter()
        self._lost: dict[str, str] = {}
        self._writer: Writer | None = None
        self._pool = Pool(wanted, absent, Settings(jobs=jobs, deadline=deadline, fresh=option.fresh), say)
        try:
            self._check()
        except BaseException:  # an interrupt among them
            self._pool.close()
            raise

    def _check(self) -> None:
        """Find what is wrong with cases and contracts, before anything is asked and while the workers start. Raises Failure."""
        try:
            check(self._catalogue, {name: one.answers.words for name, one in self._catalogue.items()})
            for one in self._catalogue.values():
                one.program  # noqa: B018  traced here
        except (CatalogueError, ContractError) as error:
            raise Failure(str(error)) from error

    def _choose(self, globs: list[str]) -> list[Case]:
        chosen = list(self._catalogue.values())
        for glob in globs:
            if not any(fnmatchcase(one.id, glob) for one in chosen):
                raise Failure(f"no case matches {glob!r}; python -m reports cases lists them")
        return [one for one in chosen if not globs or any(fnmatchcase(one.id, g) for g in globs)]

    @property
    def asked(self) -> list[str]:
        """The targets that are asked for, as selectors."""
        return [str(one) for one in self._selectors]

    def described(self) -> str:
        """Return what is asked of whom, in a line."""
        targets = ", ".join(self.asked)
        orphans = listed(sorted(set(contracts()) - {"norm"} - set(self._known)))
        unused = f"; contracts for what has no adapter here: {orphans}" if orphans else ""
        return f"{len(self.cases)} cases; targets asked for: {targets}; starting {self._pool.starting}{unused}"

    # --- targets and cells ----------------------------------------------------------------------

    def targets(self) -> list[str]:
        """Return the targets that said hello. Raises Failure when one that was named did not."""
        return [t["target"] for t in self._found() if t["available"]]

    def evidence(self) -> dict[str, str]:
        """Return the targets that said hello, with the evidence of answers about their own device. Raises Failure."""
        found = (Described.from_json(t["target"], t) for t in self._found() if t["available"])
        return {target.name: target.evidence for target in found}

    def _found(self) -> list[Target]:
        try:
            found = self._pool.targets()
        except NotStarted as error:
            raise Failure(str(error)) from error
        missing = [f"{t['target']}: {t['why']}" for t in found if not t["available"] and t["explicit"]]
        if missing:
            raise Failure("a target that was named didn't start: " + "; ".join(missing))
        for selector in self._typed:
            if not any(t["available"] and selector.chose(t["target"], t["framework"], t["device"]) for t in found):
                whys = "; ".join(dict.fromkeys(t["why"] for t in found if not t["available"])) or "nothing matches"
                raise Failure(f"target {selector}: nothing that it matches is here: {whys[:600]}")
        if not any(t["available"] for t in found):
            raise Failure("no target is here: " + "; ".join(f"{t['target']}: {t['why']}" for t in found[:4]))
        return found

    def ask(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Open the record and ask the selected (target, case) ahead. Called again, or with nothing, it does nothing. Raises Failure."""
        pairs = list(dict.fromkeys(pairs))
        if self._selected is not None or not pairs:
            return
        self._selected = set(pairs)
        found = {t["target"]: t for t in self._found()}
        try:
            self._writer = Writer(Path(self._option.record) if self._option.record else default_path(), self._header(found))
        except RecordError as error:
            raise Failure(str(error)) from error
        requests, known = [], []
        for target, name in [*sorted(self._controls()), *pairs]:
            one = self._catalogue[name]
            request = Request(
                target, name, one.program.wire(), fresh=one.fresh, environment=one.environment, alone=one.alone, times=self._times,
                after=(target, one.control) if one.control and (target, name) in self._selected else None,
            )  # fmt: skip
            if why := applicable(one, found[target]):
                known.append((request, dict(zip(("status", "why"), why, strict=True))))
            else:
                requests.append(request)
        if self._seed is not None:
            random.Random(self._seed).shuffle(requests)  # noqa: S311  an order, not a secret
        self._pool.ask(requests, known, self._write)

    def _controls(self) -> set[tuple[str, str]]:
        """Return the controls of what was selected that weren't: an answer must not depend on what else was selected."""
        selected = self._selected or set()
        return {(target, control) for target, name in selected if (control := self._catalogue[name].control)} - selected

    def _header(self, found: Mapping[str, Target]) -> dict[str, Any]:
        private = ("spec", "explicit", "environment_of")
        globs = list(self._option.case) or ["*"]
        return {
            "scope": {"targets": self.asked, "cases": globs, "selected": len(self._selected or ())},
            "targets": {name: {k: v for k, v in t.items() if k not in private} for name, t in found.items()},
        }

    def _write(self, request: Request, replies: list[dict[str, Any]]) -> dict[str, Any]:
        target = next(t for t in self._pool.targets() if t["target"] == request.target)
        one = self._catalogue[request.case]
        cells = [_judged(one, target, reply) for reply in replies]
        self._outcomes[request.key] = cells[-1]["answer"] or cells[-1]["status"]
        if request.key not in (self._selected or ()):
            return {}  # asked for the sake of another, whose control it is
        self._unasked[request.target] += bool(replies[-1].get("lost")) or cells[-1]["status"] == "unavailable"
        if replies[-1].get("lost"):
            self._lost[request.target] = cells[-1]["why"]
        control = self._outcomes.get((request.target, one.control)) if one.control else None
        cells = [held(one, cell, control) for cell in cells]
        cell = next((one for one in reversed(cells) if one["status"] != UNDECIDED), cells[-1])
        answers = decided(one["answer"] or one["status"] for one in cells)
        if len(answers) > 1:
            cell["answers"] = list(answers)
        assert self._writer is not None
        self._writer.write(cell)
        # What an item needs of it; all else stays in the record.
        found = {key: cell[key] for key in ("status", "answer", "verdict", "why")} | {"stale": cell.get("stale", "")}
        return found if cell["verdict"] not in (KNOWN, DEVIATES) else found | {"promise": promised(cell, target)}

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Return a cell, waiting for it."""
        found = self._pool.cell(target, case)
        if found is None:
            return {"target": target, "case": case, "status": "not-run", "why": "the run ended before", "verdict": None, "answer": None}
        return found

    # --- the end --------------------------------------------------------------------------------

    @property
    def record(self) -> Path | None:
        """The record's path, None where nothing was asked."""
        return None if self._writer is None else self._writer.path

    @property
    def answered(self) -> bool:
        """Whether there was behaviour of any target."""
        return self._writer is not None and self._writer.answered > 0

    @property
    def failure(self) -> str:
        """Why the run could not go on, in a sentence; "" while it could."""
        error = self._pool.failure
        return "" if error is None else str(error) if isinstance(error, RecordError) else f"{type(error).__name__}: {error}"

    def lost(self, *, named: bool) -> str:
        """Return which of the targets that were named, or of the others, ended before their last answer; "" for none."""
        explicit = {t["target"] for t in self._pool.targets() if t["explicit"]} if self._lost else set()
        found: dict[str, list[str]] = {}  # targets of one worker are lost for one reason
        for target, why in self._lost.items():
            if (target in explicit) == named:
                found.setdefault(why, []).append(target)
        return "; ".join(
            f"{listed(targets)} {'was' if len(targets) == 1 else 'were'} lost part-way, so that "
            f"{_counted(sum(self._unasked[target] for target in targets))} ({why})"
            for why, targets in found.items()
        )  # fmt: skip

    def finish(self, why: str) -> None:
        """End the workers and close the record; `why` says what ended the run where cells are missing."""
        self._pool.close()
        if self._writer is None:
            return
        missing = len(self._selected or ()) - self._writer.cells
        try:
            self._writer.close(complete=not missing, missing=missing, why=self.failure or (why if missing else ""))
        except RecordError as error:
            self._pool.failure = self._pool.failure or error

    def close(self) -> None:
        """End what is still running."""
        self._pool.close()


def _number(name: str, text: str | float, kind: Callable[[str | float], float], wanted: str, above: float, most: float) -> float:
    """Read an option's number. Raises Failure: pytest's own refusal has another exit status."""
    try:
        value = kind(text)
    except ValueError:
        value = above
    if not above < value <= most:  # nor is what is not a number
        raise Failure(f"--{name}={text}: --{name} wants {wanted}")
    return value


def _counted(cells: int) -> str:
    return "1 cell has no answer" if cells == 1 else f"{cells} cells have no answer"


def _check_path(path: str | None) -> None:
    """Refuse to write a record over something else. Raises Failure."""
    if path is None:
        return
    if not path:
        raise Failure("--record= names no file; give it a path, or leave it out for a new file under reports/out/")
    if path.endswith(".html"):
        raise Failure(f"--record={path}: the page beside the record gets that name; give the record another, such as .jsonl")
    try:
        if not Path(path).is_file():  # a pipe would be waited for; of a folder the writer says that it is one
            begin = b"not a file" if Path(path).exists() and not Path(path).is_dir() else b""
        else:
            with Path(path).open("rb") as file:
                begin = file.read(16)
    except OSError:
        return  # the writer says why it can't be written
    if begin and not begin.startswith(b'{"type":"header"'):
        raise Failure(f"--record={path}: there is a file that is no record; give another path, or remove it")


def _judged(case: Case, target: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Judge a reply; one that isn't made as the protocol says costs its cell and nothing else."""
    try:
        cell = judge(case, target, reply)
        readable(cell)
        return cell
    except Exception as error:
        why = f"the worker's observation isn't made as the protocol says: {type(error).__name__}: {error}"
        return judge(case, target, {"status": "inconclusive", "why": why})


def promised(cell: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Return what the target's contract says of a cell, as a sentence; "" when it says nothing."""
    where = cell["case"], target["device"], target["version"]
    contract = contract_for(target["framework"])
    known = contract.deviation(*where) if cell["verdict"] == "known-deviation" else None
    entry = known or contract.promise(*where)
    if entry is None or not entry.answers:
        return ""
    words = " or ".join(entry.answers)
    return f"{'known is' if known else entry.strength + ' is'} {words}: {entry.says} ({entry.source})"
