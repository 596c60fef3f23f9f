"""A pytest run: on the controller the pool and the record, elsewhere a connection to them.

This is the one place that knows what is asked (cases), who is asked (adapters) and what becomes of
the answers (reports). A `Failure` is a sentence for the user and means exit status 2.
"""

from __future__ import annotations

import math
import random
import secrets
import signal
import threading
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import pytest

from adapters.lane import Request, Settings
from adapters.pool import Pool, Target
from adapters.process import NotStarted
from adapters.targets import Selector, SelectorError, adapters, parse, plan
from cases.case import Case, CatalogueError, catalogue
from cases.contract import ContractError, check, contract_for
from cases.controls import held
from cases.judge import applicable, judge
from reports.record import RecordError, Writer, default_path

ROOT = Path(__file__).parent.parent
#: No deviation · deviations, crashes, hangs · could not do what was asked.
OK, FAILED, COULD_NOT = 0, 1, 2


class Failure(Exception):
    """What was asked can't be done; the message says why and what to do."""


def concerns_cases(config: pytest.Config) -> bool:
    """Say whether this run collects the cases (and not the suite's own tests alone)."""
    wanted = (ROOT, ROOT / "cases", ROOT / "cases" / "__init__.py")
    return any((Path(config.invocation_params.dir) / arg.split("::")[0]).resolve() in wanted for arg in config.args)


class Session:
    """What items need, wherever they run."""

    def targets(self) -> list[str]:
        """Return the targets that said hello."""
        raise NotImplementedError

    def cases(self) -> list[str]:
        """Return the ids of the cases that were asked for."""
        raise NotImplementedError

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Return a cell, waiting for it."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is held."""

    @staticmethod
    def outcome(cell: Mapping[str, Any]) -> tuple[str, str]:
        """Return pass, fail, skip or xfail, and the sentence that goes with it."""
        if cell["verdict"] is None:
            return "skip", f"{cell['status']}: {cell['why']}"
        name = f"{cell['target']} {cell['case']}"
        said = cell["answer"] or f"{cell['status']}: {cell['why']}"
        if cell.get("stale"):
            return "fail", f"{name}: answered {said}; {cell['stale']}"
        if cell["verdict"] == "known-deviation":
            return "xfail", f"answered {said}: {cell.get('promise', '')}"
        if cell["verdict"] == "deviates":
            return "fail", f"{name}: answered {said}; {cell.get('promise') or 'and that is never right'}"
        return "pass", said


class Remote(Session):
    """An xdist worker's way to the pool."""

    def __init__(self, config: Any) -> None:
        """Connect to the controller."""
        address, key, cases = config.workerinput["device_semantics"]
        self._cases: list[str] = cases
        self._pool = Client(address if isinstance(address, str) else tuple(address), authkey=bytes.fromhex(key))

    def targets(self) -> list[str]:
        """Ask the pool which targets said hello."""
        return list(self._ask("targets"))

    def cases(self) -> list[str]:
        """Return the ids that the controller chose."""
        return self._cases

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Wait for a cell of the pool."""
        return dict(self._ask("cell", target, case))

    def _ask(self, *question: str) -> Any:
        try:
            self._pool.send(question)
            return self._pool.recv()
        except (EOFError, OSError):
            pytest.exit("the run ended", returncode=COULD_NOT)

    def close(self) -> None:
        """Hang up."""
        self._pool.close()


class Controller(Session):
    """The pool's owner and the record's one writer."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options and start the workers. Raises Failure."""
        self._config = config
        option = config.option
        self.distributed = bool(getattr(option, "dist", "no") != "no" and getattr(option, "tx", None))
        self._jobs = len(option.tx) if self.distributed else 1
        if "--record" in config.invocation_params.args:
            # pytest takes the value for a path to collect from, once the file is there, and finds another root.
            raise Failure("write --record=PATH, with an equals sign: pytest mistakes a path behind a space for one of its own")
        if not (option.deadline > 0 and math.isfinite(option.deadline)) or option.repeat < 1:
            raise Failure("--deadline wants seconds above 0, --repeat a number from 1 on")
        try:
            self._catalogue = catalogue()
            check(self._catalogue, {name: one.answers.words for name, one in self._catalogue.items()})
            self._chosen = self._choose(option.case)
            known = adapters(option.adapter)
            named = option.target or _named_by_ids(config.args)
            self._typed = [parse(text) for text in named]
            self._selectors = [parse(text) for text in named] or [Selector(name, "*") for name in known]
            wanted, absent = plan(self._selectors, known)
        except (CatalogueError, ContractError, SelectorError) as error:
            raise Failure(str(error)) from error
        settings = Settings(jobs=self._jobs, deadline=option.deadline, fresh=option.fresh)
        self._say_lock = threading.Lock()
        self._selected: set[tuple[str, str]] | None = None
        self._reported: set[str] = set()
        self._ids: list[str] = []
        #: Answers, or statuses, as they came, before controls were held against them.
        self._outcomes: dict[tuple[str, str], str] = {}
        self._writer: Writer | None = None
        self._finished = False
        self._pool = Pool(wanted, absent, settings, self._say)
        key = secrets.token_bytes(16)
        self._listener = Listener(None, authkey=key)
        self.address = (self._listener.address, key.hex(), [one.id for one in self._chosen])
        threading.Thread(target=self._accept, daemon=True).start()
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                if hasattr(signal, name):  # Windows has the first alone
                    signal.signal(getattr(signal, name), _terminated)

    def _choose(self, globs: Iterable[str]) -> list[Case]:
        chosen = list(self._catalogue.values())
        for glob in (globs := list(globs)):
            if not any(fnmatchcase(one.id, glob) for one in chosen):
                raise Failure(f"no case matches {glob!r}; python -m reports cases lists them")
        return [one for one in chosen if not globs or any(fnmatchcase(one.id, g) for g in globs)]

    def _say(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._config.option.verbose >= 0 and not self._finished:
            with self._say_lock:
                reporter.ensure_newline()
                reporter.write_line(text)

    # --- what xdist workers ask -----------------------------------------------------------------

    def _accept(self) -> None:
        while not self._finished:
            try:
                connection = self._listener.accept()
            except Exception:
                # A stranger without the key, or the listener was closed.
                if self._finished:
                    return
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        try:
            while True:
                what, *names = connection.recv()
                connection.send(self.targets() if what == "targets" else self.cell(*names))
        except (EOFError, OSError, Failure):
            connection.close()

    # --- targets and cells ----------------------------------------------------------------------

    def targets(self) -> list[str]:
        """Return the targets that said hello. Raises Failure when one that was named did not."""
        return [t["target"] for t in self._found() if t["available"]]

    def _found(self) -> list[Target]:
        try:
            found = self._pool.targets()
        except NotStarted as error:
            raise Failure(str(error)) from error
        missing = [f"{t['target']}: {t['why']}" for t in found if not t["available"] and t["explicit"]]
        if missing:
            raise Failure("a target that was named didn't start: " + "; ".join(missing))
        for selector in self._typed:
            if not any(t["available"] and t["target"] == selector.name(t["framework"], t["device"]) for t in found):
                whys = "; ".join(dict.fromkeys(t["why"] for t in found if not t["available"])) or "nothing matches"
                raise Failure(f"target {selector}: nothing that it matches is here: {whys[:600]}")
        if not any(t["available"] for t in found):
            raise Failure("no target is here: " + "; ".join(f"{t['target']}: {t['why']}" for t in found[:4]))
        return found

    def cases(self) -> list[str]:
        """Return the ids of the cases that were asked for."""
        return [one.id for one in self._chosen]

    def selected(self, ids: list[str]) -> None:
        """Open the record and ask the selected items ahead. Raises Failure. Called again, it does nothing."""
        if self._selected is not None:
            return
        pairs = [(i.split("::", 1)[1].rpartition("::")) for i in ids if i.startswith("cases/__init__.py::")]
        self._selected = {(target, case) for target, _, case in pairs}
        self._ids = list(ids)
        found = {t["target"]: t for t in self._found()}
        option = self._config.option
        _check_path(option.record)
        try:
            self._writer = Writer(Path(option.record) if option.record else default_path(), self._header(found))
        except RecordError as error:
            raise Failure(str(error)) from error
        requests = []
        for target, name in [*sorted(self._controls()), *((target, name) for target, _, name in pairs)]:
            one = self._catalogue[name]
            known = applicable(one, found[target])
            request = Request(
                target, name, one.program.wire(), fresh=one.fresh, environment=one.environment, alone=one.alone, times=option.repeat,
                after=(target, one.control) if one.control and (target, name) in self._selected else None,
            )  # fmt: skip
            if known:
                self._pool.give(request.key, self._write(request, [{"status": known[0], "why": known[1]}]))
            else:
                requests.append(request)
        if option.shuffle is not None:
            random.Random(option.shuffle).shuffle(requests)  # noqa: S311  an order, not a secret
        self._pool.ask(_controls_first(requests), self._write)

    def _controls(self) -> set[tuple[str, str]]:
        """Return the controls of what was selected that weren't: an answer must not depend on what else was selected."""
        selected = self._selected or set()
        return {(target, control) for target, name in selected if (control := self._catalogue[name].control)} - selected

    def _header(self, found: Mapping[str, Target]) -> dict[str, Any]:
        private = ("spec", "explicit", "environment_of")
        globs = list(self._config.option.case) or ["*"]
        return {
            "scope": {"targets": [str(s) for s in self._selectors], "cases": globs, "selected": len(self._selected or ())},
            "targets": {name: {k: v for k, v in t.items() if k not in private} for name, t in found.items()},
        }

    def _write(self, request: Request, replies: list[dict[str, Any]]) -> dict[str, Any]:
        target = next(t for t in self._pool.targets() if t["target"] == request.target)
        one = self._catalogue[request.case]
        cells = [_judged(one, target, reply) for reply in replies]
        self._outcomes[request.key] = cells[-1]["answer"] or cells[-1]["status"]
        if request.key not in (self._selected or ()):
            return {}  # asked for the sake of another, whose control it is
        control = self._outcomes.get((request.target, one.control)) if one.control else None
        cells = [held(one, cell, control) for cell in cells]
        cell = cells[-1]
        answers = list(dict.fromkeys(c["answer"] or c["status"] for c in cells))
        if len(answers) > 1:
            cell["answers"] = answers
        assert self._writer is not None
        self._writer.write(cell)
        # What an item needs of it; the observation stays in the record.
        return {key: value for key, value in cell.items() if key != "observation"} | {"promise": promised(cell, target)}

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Return a cell, waiting for it."""
        found = self._pool.cell(target, case)
        if found is None:
            return {"target": target, "case": case, "status": "not-run", "why": "the run ended before", "verdict": None, "answer": None}
        return found

    # --- the end --------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which items had a report (a hook: the controller is a plugin)."""
        self._reported.add(report.nodeid)

    def header(self) -> list[str]:
        """Return the lines with which pytest's own header goes on."""
        targets = ", ".join(map(str, self._selectors))
        return [f"device semantics: {len(self._chosen)} cases; targets asked for: {targets}; starting {self._pool.starting}"]

    def summary(self, reporter: Any) -> None:
        """End the run with the matrix and the page's path."""
        if self._writer is None or self._selected is None:
            return
        from reports.closing import closing

        if self._pool.failure:
            reporter.write_line(f"the run ended early: {self._pool.failure}")
        closing(self._writer.path, reporter)

    def finish(self, status: int, failed: int) -> int:
        """Close the record and the pool and return the exit status: 0, 1, or 2 for everything else."""
        if self._config.option.maxfail and failed >= self._config.option.maxfail:
            status = FAILED  # xdist calls it an interruption
        self._finished = True
        self._pool.close()
        if self._writer is None:
            return OK if status == OK and self._config.option.collectonly else COULD_NOT
        missing = len(self._selected or ()) - self._writer.cells
        why = self._pool.failure or ("" if not missing else "stopped at a failure" if status == FAILED else "interrupted")
        try:
            self._writer.close(complete=not missing, missing=missing, why=why)
        except RecordError as error:
            self._pool.failure = self._pool.failure or str(error)
        if self._pool.failure:
            return COULD_NOT
        if status == OK and (not self._writer.answered or any(i not in self._reported for i in self._ids)):
            # Nothing was answered, or xdist lost reports without a word.
            return COULD_NOT
        return status if status in (OK, FAILED) else COULD_NOT

    def close(self) -> None:
        """End what is still running."""
        self._finished = True
        self._pool.close()
        self._listener.close()


def _named_by_ids(arguments: list[str]) -> list[str]:
    """Return the targets of node ids, so that nothing else is started; [] when some argument names none."""
    parts = [argument.split("::") for argument in arguments]
    return list(dict.fromkeys(p[1] for p in parts)) if all(len(p) > 1 for p in parts) else []


def _check_path(path: str | None) -> None:
    """Refuse to write a record over something else. Raises Failure."""
    if path is None:
        return
    if path.endswith(".html"):
        raise Failure(f"--record={path}: the page beside the record gets that name; give the record another, such as .jsonl")
    try:
        with Path(path).open("rb") as file:
            begin = file.read(16)
    except OSError:
        return  # nothing there yet, or the writer says why it can't be written
    if begin and not begin.startswith(b'{"type":"header"'):
        raise Failure(f"--record={path}: there is a file that is no record; give another path, or remove it")


def _controls_first(requests: list[Request]) -> list[Request]:
    """Return the questions in the same order, but each after its control: who waits for that must not keep it from being asked."""
    by_key = {request.key: request for request in requests}
    placed: dict[tuple[str, str], Request] = {}

    def place(request: Request) -> None:
        if request.after in by_key and request.after not in placed:
            place(by_key[request.after])
        placed[request.key] = request

    for request in requests:
        if request.key not in placed:
            place(request)
    return list(placed.values())


def _judged(case: Case, target: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Judge a reply; one that isn't made as the protocol says costs its cell and nothing else."""
    try:
        return judge(case, target, reply)
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


def _terminated(_number: int, _frame: Any) -> None:
    """Turn SIGTERM into the end that an interrupt has: the record gets its footer, workers end."""
    raise KeyboardInterrupt
