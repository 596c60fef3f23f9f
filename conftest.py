"""pytest: one item for each (target, case), the pool's life, the terminal's end, the exit status.

The controller owns the pool and writes the record; pytest's own processes never import a framework.
xdist workers collect the same items, since they ask the pool which targets said hello, and an item
only waits for its cell, so that nothing depends on how items are scheduled.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from reports.arguments import check_arguments, concerns_cases
from reports.session import (
    ANSWER,
    COULD_NOT,
    FAILED,
    OK,
    Controller,
    Remote,
    Session,
    abandon_output,
    is_deviation,
    replace_closed_output,
)
from reports.visible import visible

pytest_plugins = ("reports.options",)
_SESSION = pytest.StashKey[Session]()
#: Whether cells are reported the short way.
_SHORT = pytest.StashKey[bool]()
#: So many new objects come before Python looks for those that can be freed; 700 by itself.
_ALLOCATED = 200_000
#: So many seconds may a thread keep others waiting; 0.005 by itself, in which a worker that has answered could have answered again.
_SWITCHED = 0.0005


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """End with 0, 1 or 2, and say why it is 2: pytest has more exit statuses, which scripts would have to know."""
    if hasattr(config, "workerinput"):
        return (yield)
    replace_closed_output()
    said: tuple[object, ...] = ()
    try:
        status = yield
        replace_closed_output()  # pytest's capture has put back what it found
        sys.stdout.flush()  # into a pipe or a file it may all come at the end
        if status in (OK, FAILED):
            return status
        own = config.stash.get(_SESSION, None)
        if isinstance(own, Controller) and own.why:
            said = (own.why,)
        elif status == pytest.ExitCode.NO_TESTS_COLLECTED:
            said = ("nothing was selected: `pytest --collect-only -q` lists what there is, --target, --case and -k choose from it",)
    except pytest.UsageError as error:
        said = error.args
    except (pytest.PytestUnraisableExceptionWarning, ExceptionGroup):  # a group, where there are several
        # An interrupt may leave one of pytest's hooks half-way; what that one says when it is cleared away is an error by our settings.
        own = config.stash.get(_SESSION, None)
        if not isinstance(own, Controller) or not own.interrupted:
            raise
    except OSError as error:
        # Nobody reads the output any more (`pytest | head -1`), or there is no room for it; Python would try once more at its end.
        abandon_output()
        said = () if isinstance(error, BrokenPipeError) else (f"what the run says can't be written: {error}",)
    replace_closed_output()
    for sentence in said:
        print("ERROR: " + "\n".join(map(visible, str(sentence).splitlines())), file=sys.stderr)
    return COULD_NOT


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start the workers, while pytest is still collecting. Raises Failure."""
    if not hasattr(config, "workerinput"):
        check_arguments(config)
    if concerns_cases(config):
        # Items, reports and cells are many and stay to the end: to look through them for what could be freed took a tenth of a run.
        gc.set_threshold(_ALLOCATED)
        sys.setswitchinterval(_SWITCHED)
        config.stash[_SESSION] = Remote(config) if hasattr(config, "workerinput") else Controller(config)
        config.pluginmanager.register(config.stash[_SESSION], "device-semantics")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the pool is."""
    session = node.config.stash.get(_SESSION, None)
    if isinstance(session, Controller):
        node.workerinput["device_semantics"] = session.address


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Ask ahead, as soon as the selected items are known. Raises Failure."""
    session = node.config.stash.get(_SESSION, None)
    if isinstance(session, Controller):
        session.selected(ids)


@contextmanager
def _refusals_reach_the_controller(session: pytest.Session, items: list[pytest.Item]) -> Iterator[None]:
    """Hand on what an xdist worker can't follow, such as an unknown id: xdist would take it for a crash and lose the sentence."""
    try:
        yield
    except pytest.UsageError as error:
        items.clear()  # pytest would go on to call them the selected ones
        if not hasattr(session.config, "workerinput"):
            raise
        session.shouldstop = "\n".join(map(str, error.args))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Wait for the workers while xdist's own start; one that was named and didn't start ends the run. Raises Failure."""
    own = session.config.stash.get(_SESSION, None)
    if isinstance(own, Controller):
        own.targets()
    with _refusals_reach_the_controller(session, []):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> Generator[None, Any, Any]:
    """Order the items as they are answered; select none where the selection can't be understood."""
    own = session.config.stash.get(_SESSION, None)
    if own is not None and not session.config.option.collectonly:
        # Every worker gets the cases in this order, and an item waits for its cell: by targets all would wait for the slowest worker.
        turn = {case: n for n, case in enumerate(own.cases())}
        items.sort(key=lambda item: turn[item.name] if isinstance(item, CaseItem) else -1)
    with _refusals_reach_the_controller(session, items):
        return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Ask ahead where there are no xdist workers; by now every plugin is known. Raises Failure."""
    session.config.stash[_SHORT] = _nobody_looks(session.config)
    own = session.config.stash.get(_SESSION, None)
    if isinstance(own, Controller) and not own.distributed:
        own.selected([item.nodeid for item in session.items])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the cases from their package."""
    if file_path == Path(__file__).parent / "cases" / "__init__.py" and _SESSION in parent.config.stash:
        return Cases.from_parent(parent, path=file_path)
    return None


class Cases(pytest.File):
    """All targets that are here."""

    def collect(self) -> list[pytest.Collector]:
        """Collect a target each."""
        return [TargetCases.from_parent(self, name=target) for target in self.config.stash[_SESSION].targets()]


class TargetCases(pytest.Collector):
    """All cases for one target."""

    def collect(self) -> list[pytest.Item]:
        """Collect a case each."""
        return [CaseItem.from_parent(self, name=case) for case in self.config.stash[_SESSION].cases()]


class CaseItem(pytest.Item):
    """One question for one target."""

    @property
    def target(self) -> str:
        """Return the name of the target."""
        assert self.parent is not None
        return self.parent.name

    def runtest(self) -> None:
        """Wait for the cell and let its verdict decide."""
        cell = self.config.stash[_SESSION].cell(self.target, self.name)
        outcome, text = Session.outcome(cell)
        self.user_properties.append((ANSWER, cell.get("answer") or cell["status"]))
        if outcome == "skip":
            pytest.skip(text)
        if outcome == "xfail" or (outcome == "fail" and self.config.option.baseline):
            pytest.xfail(text)  # what a contract says of it is not what a run with a baseline is about
        if outcome != "pass":
            raise Deviation(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Say what was promised and what was answered; no traceback of the suite."""
        if isinstance(excinfo.value, Deviation):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the item."""
        return self.path, None, f"{self.target}::{self.name}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report what came of a cell, and nothing of its setup, in which nothing happens.

    An xdist worker doesn't tell that it begins either, unless somebody wants to see it: that would be a quarter of what it sends.
    """
    if not isinstance(item, CaseItem):
        return None
    if getattr(item.config.option, "verbose", 0) > 0 or not hasattr(item.config, "workerinput"):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    short = nextitem is not None and item.config.stash[_SHORT]
    for report in _short(item) if short else runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when != "setup" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _short(item: CaseItem) -> Iterator[pytest.TestReport]:
    """Yield an item's reports without what pytest does around its phases: it captures and sets up what runs there, and nothing does."""
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    yield report
    if report.failed:
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    yield pytest.TestReport.from_item_and_call(item, pytest.CallInfo.from_call(lambda: None, "teardown"))


def _nobody_looks(config: pytest.Config) -> bool:
    """Say whether nobody but pytest itself looks at the phases of an item."""
    # Who switches off a plugin of pytest's has not its options.
    if any(getattr(config.option, name, False) for name in ("usepdb", "trace", "setuponly", "setupplan", "setupshow")):
        return False
    impls = [impl for phase in ("setup", "call", "teardown") for impl in getattr(config.hook, f"pytest_runtest_{phase}").get_hookimpls()]
    return {impl.function.__module__.partition(".")[0] for impl in impls} <= {"_pytest", "_hypothesis_pytestplugin"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
    """Report a cell without an answer; pytest would look for where in the suite it was skipped: a twentieth of a run."""
    skipped = call.excinfo.value if call.excinfo else None
    if not isinstance(item, CaseItem) or call.when != "call" or not isinstance(skipped, pytest.skip.Exception):
        return None
    return pytest.TestReport(
        item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "skipped", (str(item.path), 1, f"Skipped: {skipped}"), "call",
        duration=call.duration, start=call.start, stop=call.stop, user_properties=item.user_properties,
    )  # fmt: skip


class Deviation(Exception):
    """An answer that a target's contract doesn't accept."""


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is asked, and which variables were looked at."""
    session = config.stash.get(_SESSION, None)
    return session.header() if isinstance(session, Controller) else []


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    """End the workers and close the record; the exit status tells 0, 1 or 2. What others can't write at the end is a sentence."""
    own = session.config.stash.get(_SESSION, None)
    if not isinstance(own, Controller):
        return (yield)
    own.stop()
    try:
        return (yield)
    except OSError as error:  # a full disk: pytest keeps its cache now, and writes the reports that were asked for
        own.why = f"pytest can't write what it keeps of a run: {error}"
    finally:
        session.exitstatus = own.finish(int(session.exitstatus), session.testsfailed, stopped=bool(session.shouldstop))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    """End with the deviations, the matrix and the path of the page.

    The list of deviations says what pytest would say twice more; who asks pytest for it (-v, -r, --tb) gets that too.
    """
    own = config.stash.get(_SESSION, None)
    if not isinstance(own, Controller):
        return (yield)
    failed = terminalreporter.stats.get("failed", [])
    every = list(failed)
    option = config.option
    if option.verbose <= 0 and option.reportchars == "fE" and option.tbstyle == "auto":  # as pytest has them by itself
        failed[:] = [report for report in every if not is_deviation(report)]
    try:
        return (yield)
    finally:
        failed[:] = every
        own.summary(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no process behind, whatever happened."""
    own = config.stash.get(_SESSION, None)
    if own is not None:
        own.close()
        gc.freeze()  # pytest looks five times for what could be freed
