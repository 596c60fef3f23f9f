"""A pytest run: on the controller the run itself, in xdist's workers a connection to it.

What pytest or xdist may change is here and in `conftest.py`: their options, processes and signals, their exit status, their report.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports.arguments import ROOT, join_record, named_by_ids
from reports.run import Failure, Run
from reports.visible import line, visible

if TYPE_CHECKING:
    from reports.baseline import Baseline
    from reports.recorded import Beside

#: No deviation · deviations, crashes, hangs · could not do what was asked.
OK, FAILED, COULD_NOT = 0, 1, 2
#: The property by which an item's report says what its cell holds.
ANSWER = "answer"


def is_deviation(report: pytest.TestReport) -> bool:
    """Say whether an item failed by its cell, and not by an error of the suite, of pytest or of xdist."""
    return report.when == "call" and isinstance(report.longrepr, str) and any(name == ANSWER for name, _ in report.user_properties)


def abandon_output() -> None:
    """Let what still is to be written vanish."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def replace_closed_output() -> None:
    """Let what is written to a stream that was closed from the start (`pytest >&-`) vanish: pytest would end with a traceback.

    Whoever starts a run so wants its exit status and its record, and gets both.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            if getattr(sys, f"__{name}__") is None:
                setattr(sys, f"__{name}__", open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  as long as the process
            setattr(sys, name, getattr(sys, f"__{name}__"))


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
        outcome, text = Session._outcome(cell)
        return outcome, line(text)

    @staticmethod
    def _outcome(cell: Mapping[str, Any]) -> tuple[str, str]:
        if cell["verdict"] is None:
            return "skip", f"{cell['status']}: {cell['why']}"
        said = cell["answer"] or f"{cell['status']}: {cell['why']}"
        if cell.get("stale"):
            return "fail", f"answered {said}; {cell['stale']}"
        if cell["verdict"] == "known-deviation":
            return "xfail", f"answered {said}: {cell.get('promise', '')}"
        if cell["verdict"] == "deviates":
            return "fail", f"answered {said}; {cell.get('promise') or 'and that is never right'}"
        return "pass", said


class Remote(Session):
    """An xdist worker's way to the run."""

    def __init__(self, config: Any) -> None:
        """Connect to the controller."""
        address, key, cases = config.workerinput["device_semantics"]
        self._cases: list[str] = cases
        self._run = Client(address if isinstance(address, str) else tuple(address), authkey=bytes.fromhex(key))

    def targets(self) -> list[str]:
        """Ask which targets said hello."""
        return list(self._ask("targets"))

    def cases(self) -> list[str]:
        """Return the ids that the controller chose."""
        return self._cases

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Wait for a cell."""
        return dict(self._ask("cell", target, case))

    def _ask(self, *question: str) -> Any:
        try:
            self._run.send(question)
            return self._run.recv()
        except (EOFError, OSError):
            pytest.exit("the run ended", returncode=COULD_NOT)

    def close(self) -> None:
        """Hang up."""
        self._run.close()


class Controller(Session):
    """The run's owner."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options and start the workers. Raises Failure."""
        self._config = config
        option = config.option
        self._apart = join_record(config)
        self.distributed = bool(getattr(option, "dist", "no") != "no" and getattr(option, "tx", None))
        self._say_lock = threading.Lock()
        self._reported: set[str] = set()
        self._ids: list[str] = []
        self._finished = False
        self.interrupted = False
        #: Why the exit status is 2, in a sentence, where pytest doesn't say it.
        self.why = ""
        self._baseline = _baseline(config)
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                if hasattr(signal, name):  # Windows has the first alone
                    signal.signal(getattr(signal, name), _terminated)
        #: What was said before pytest's own header; None once that was written.
        self._early: list[str] | None = []
        self._run = Run(option, named_by_ids(config.args), len(option.tx) if self.distributed else option.at_once or 1, self._say)
        key = secrets.token_bytes(16)
        self._listener = Listener(None, authkey=key)
        self.address = (self._listener.address, key.hex(), self._run.cases)
        threading.Thread(target=self._accept, daemon=True).start()
        self._recorded: Beside | None = None
        self._reading = threading.Thread(target=self._read_recorded, daemon=True)
        if not (option.no_recorded or option.record_alone or self._asks_nothing):
            self._reading.start()

    def _read_recorded(self) -> None:
        """Read what other machines answered while the frameworks are being imported: nothing else has work for all cores then."""
        from reports.recorded import Beside  # xdist's workers show nothing, and need not load the views

        self._recorded = beside = Beside(self._run.asked, frozenset(self._run.cases))
        beside.read(beside.absent(self._run.absent))
        with contextlib.suppress(Failure):  # which ends the run
            beside.read(beside.shown(self._run.evidence()))

    def _say(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._config.option.verbose >= 0 and not self._finished:
            # A reader that is gone ends the run where pytest itself writes, not one of the run's threads.
            with self._say_lock, contextlib.suppress(OSError):
                if self._early is not None:
                    self._early.append(text)
                    return
                reporter.ensure_newline()
                reporter.write_line(visible(text))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Say what the workers said before pytest's header was written (a hook: the controller is a plugin)."""
        with self._say_lock:
            early, self._early = self._early or [], None
        for text in early:
            self._say(text)

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
                answer = self.targets() if what == "targets" else self.cell(*names)
                if self._finished:
                    break  # to hang up ends the worker; it would go on to ask for every item that it has
                connection.send(answer)
        except (EOFError, OSError, Failure):
            pass
        connection.close()

    # --- targets and cells ----------------------------------------------------------------------

    def targets(self) -> list[str]:
        """Return the targets that said hello. Raises Failure when one that was named did not."""
        return self._run.targets()

    def cases(self) -> list[str]:
        """Return the ids of the cases that were asked for."""
        return self._run.cases

    def cell(self, target: str, case: str) -> dict[str, Any]:
        """Return a cell, waiting for it."""
        return self._run.cell(target, case)

    def selected(self, ids: list[str]) -> None:
        """Ask ahead for the selected items, unless they are only to be looked at. Raises Failure."""
        if not self._asks_nothing and not self._ids:
            self._ids = list(ids)
            parts = [i.split("::", 1)[1].rpartition("::") for i in ids if i.startswith("cases/__init__.py::")]
            self._run.ask((target, case) for target, _, case in parts)

    @property
    def _asks_nothing(self) -> bool:
        option = self._config.option
        # Who switches off a plugin of pytest's has not its options.
        return any(getattr(option, name, False) for name in ("collectonly", "setuponly", "setupplan"))

    # --- the end --------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which items had a report (a hook: the controller is a plugin)."""
        self._reported.add(report.nodeid)

    def header(self) -> list[str]:
        """Return the line with which pytest's own header goes on."""
        return [f"device semantics: {self._run.described()}"]

    def summary(self, reporter: Any) -> None:
        """End the run with the matrix and the page's path."""
        record = self._run.record
        if record is not None and not self._config.option.record_alone:
            from reports.closing import closing
            from reports.style import style_of

            if self._reading.ident is not None:
                self._reading.join()
            reporter.ensure_newline()
            closing(record, reporter, lost=self._run.lost(named=False), recorded=self._recorded)
            if self._baseline is not None:
                reporter.section(f"compared with {self._baseline.path}")
                for text in self._baseline.lines(style_of(reporter._tw._file, width=reporter._tw.fullwidth, colour=reporter._tw.hasmarkup)):
                    reporter.write_line(text)
            if self._apart and ROOT not in record.resolve().parents:
                reporter.write_line("        (now that it is there, --record=PATH needs the equals sign: pytest takes it for tests)")

    def stop(self) -> None:
        """Ask nothing more, and let xdist's workers go: an interrupted run doesn't sit out the seconds that xdist gives them."""
        self._finished = True
        self._run.close()

    def finish(self, status: int, failed: int, *, stopped: bool) -> int:
        """Close the record and the pool and return the exit status: 0, 1, or another where what was asked could not be done."""
        if failed and (stopped or failed >= (self._config.option.maxfail or sys.maxsize)):
            status = FAILED  # -x and --stepwise; xdist and pytest call it an interruption
        self._finished = True
        self.interrupted = status == pytest.ExitCode.INTERRUPTED
        self._run.finish("stopped at a failure" if status == FAILED else "interrupted")
        if self._run.record is None:
            return status if self._asks_nothing or status != OK else COULD_NOT
        lost = [name for name in self._ids if name not in self._reported]
        if self._run.failure:
            self.why = f"the run ended early: {self._run.failure}"
        elif lost_target := self._run.lost(named=True):
            self.why = lost_target
        elif status == OK and not self._run.answered:
            self.why = "nothing was answered"
        elif status == OK and lost:
            self.why = f"xdist lost the reports of {len(lost)} items, {lost[0]} among them; the record has their cells"
        elif self._baseline is not None and status in (OK, FAILED):
            status = max(status, self._held(self._run.record))
        return status if status in (OK, FAILED) and not self.why else COULD_NOT

    def _held(self, record: Path) -> int:
        """Hold the run against its baseline."""
        from reports.record import RecordError
        from reports.verbs import ProblemError

        assert self._baseline is not None
        try:
            return self._baseline.held(record)
        except (ProblemError, RecordError) as error:
            self.why = str(error)
            return COULD_NOT

    def close(self) -> None:
        """End what is still running."""
        self._finished = True
        self._run.close()
        self._listener.close()


def _baseline(config: pytest.Config) -> Baseline | None:
    """Read the baseline, where the controller has one to compare with. Raises Failure."""
    baseline, levels = config.option.baseline, config.option.gate_config
    for name, path in (("baseline", baseline), ("gate-config", levels)):
        if path == "":  # as of a variable that isn't set: nothing would be compared, and nobody told
            raise Failure(f"--{name}= names no file; give it a path, or leave it out")
    if baseline is None and levels is not None:
        raise Failure(f"--gate-config={levels} says what may differ from a baseline: name that with --baseline=FILE, or leave it out")
    if baseline is None:
        return None
    from reports.baseline import Baseline
    from reports.record import RecordError
    from reports.verbs import ProblemError

    try:
        return Baseline(config.option)
    except (ProblemError, RecordError) as error:
        raise Failure(f"--baseline={config.option.baseline}: {error}") from error


def _terminated(_number: int, _frame: Any) -> None:
    """Turn SIGTERM into the end that an interrupt has: the record gets its footer, workers end."""
    raise KeyboardInterrupt
