"""pytest: options, one item for each (target, case), the pool's life, the terminal's end.

The controller owns the pool and writes the record; pytest's own processes never import a framework.
xdist workers collect the same items, since they ask the pool which targets said hello, and an item
only waits for its cell, so that nothing depends on how items are scheduled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reports.session import Controller, Failure, Remote, Session, concerns_cases

pytest_plugins = ("pytester",)
_SESSION = pytest.StashKey[Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's own options."""
    group = parser.getgroup("device semantics")
    add = group.addoption
    add("--target", action="append", default=[], metavar="SELECTOR",
        help="ask this target: [label=]framework:device[@interpreter-or-command], globs allowed, may be given again; "
        "what stands behind @ is run. Default: everything that is installed")  # fmt: skip
    add("--case", action="append", default=[], metavar="GLOB",
        help="ask only cases whose id matches, such as 'moving/*'; may be given again")  # fmt: skip
    add("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS", help="add a framework with an adapter from outside")
    add("--record", metavar="PATH", help="write the record here (default: a new file under reports/out/)")
    add("--deadline", type=float, default=30.0, metavar="SECONDS", help="how long a worker may take for one question (default 30)")
    add("--repeat", type=int, default=1, metavar="N", help="ask every question N times; the record keeps the set of answers")
    add("--fresh", action="store_true", help="ask every question in a process of its own (slow)")
    add("--shuffle", type=int, metavar="SEED", help="ask in another order")


@contextmanager
def _failures_end_the_run() -> Iterator[None]:
    try:
        yield
    except Failure as failure:
        pytest.exit(str(failure), returncode=2)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start the workers, while pytest is still collecting."""
    if not concerns_cases(config) or config.option.help or getattr(config.option, "version", False):
        return
    with _failures_end_the_run():
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
    """Ask ahead, as soon as the selected items are known."""
    session = node.config.stash.get(_SESSION, None)
    if isinstance(session, Controller):
        with _failures_end_the_run():
            session.selected(ids)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Wait for the workers while xdist's own start; one that was named and didn't start ends the run."""
    own = session.config.stash.get(_SESSION, None)
    if isinstance(own, Controller):
        with _failures_end_the_run():
            own.targets()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Ask ahead where there are no xdist workers."""
    own = session.config.stash.get(_SESSION, None)
    if isinstance(own, Controller) and not own.distributed and not session.config.option.collectonly:
        with _failures_end_the_run():
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
        self.user_properties.append(("answer", cell.get("answer") or cell["status"]))
        if outcome == "skip":
            pytest.skip(text)
        if outcome == "xfail":
            self.add_marker(pytest.mark.xfail(strict=True, reason=text))
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


class Deviation(Exception):
    """An answer that a target's contract doesn't accept."""


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is asked, and which variables were looked at."""
    session = config.stash.get(_SESSION, None)
    return session.header() if isinstance(session, Controller) else []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the workers and close the record; the exit status tells 0, 1 or 2."""
    own = session.config.stash.get(_SESSION, None)
    if isinstance(own, Controller):
        session.exitstatus = own.finish(int(session.exitstatus), session.testsfailed)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """End with the matrix and the path of the page."""
    own = config.stash.get(_SESSION, None)
    if isinstance(own, Controller):
        own.summary(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no process behind, whatever happened."""
    own = config.stash.get(_SESSION, None)
    if own is not None:
        own.close()
