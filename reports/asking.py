"""Ask a target through the suite's own runner, in a process of its own, and write the record; ask some of it once more."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.gate import Report
from reports.record import Record, RecordError, read
from reports.verbs import ProblemError, say
from reports.writer import as_json

ROOT = Path(__file__).parent.parent
#: How often a question that was not settled is asked again.
_TIMES = 3
#: Seconds between two looks at how far a run has come.
_LOOK = 0.5
#: Begins a terminal's line anew, and wipes it.
_AGAIN = "\r\x1b[K"


@dataclass(frozen=True)
class Asker:
    """What is asked of whom, how, and where the answers go."""

    #: What it is called in sentences.
    what: str
    selectors: tuple[str, ...]
    record: Path
    cases: tuple[str, ...] = ()
    repeat: int = 1
    #: Other options of the suite, such as `--deadline=60`.
    options: tuple[str, ...] = ()

    def ask(self) -> None:
        """Ask everything that was chosen, and write the record. Raises ProblemError."""
        words = [word for glob in self.cases for word in ("--case", glob)]
        self._run(self.what, [*words, "--repeat", str(self.repeat)], self.record)

    def again(self, pairs: Iterable[tuple[str, str]], times: int = _TIMES) -> None:
        """Ask some (target, case) of the record again, and put the answers into it. Raises ProblemError."""
        ids = [f"cases/__init__.py::{target}::{case}" for target, case in pairs]
        with tempfile.TemporaryDirectory(prefix="device-semantics-") as folder:
            path = Path(folder) / "again.jsonl"
            self._run(f"{self.what}, again", [*ids, "--repeat", str(times)], path)
            splice(self.record, path)

    def _run(self, what: str, words: Sequence[str], record: Path) -> None:
        log = record.with_suffix(".log")
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "reports.options"]
        # xdist's own start costs more than it saves where one worker is asked.
        command += ["-p", "no:cacheprovider", "-q", "-n", "0", "--record-alone"]
        command += [*(f"--target={one}" for one in self.selectors), *self.options]
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.unlink(missing_ok=True)
            with log.open("w", encoding="utf-8") as file:
                environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
                run = subprocess.Popen(
                    [*command, *words, f"--record={record.resolve()}"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                    stderr=subprocess.STDOUT,
                )  # fmt: skip
                status = _watched(run, what, record)
        except OSError as error:
            raise _unwritable(record, error) from error
        if status not in (0, 1) and not _complete(record):  # where nothing is offered nothing is answered, and that is known then
            raise ProblemError(f"{what}: {_why(log)}")
        log.unlink(missing_ok=True)


def together(askers: Sequence[Asker]) -> bool:
    """Ask several in one run, at once but for what measures time, and write each one's record; say whether that came through.

    Where it didn't, as when one of them doesn't start, each is to be asked by itself: then it is known whose fault it is.
    """
    with tempfile.TemporaryDirectory(prefix="device-semantics-") as folder:
        path = Path(folder) / "together.jsonl"
        selectors = tuple(one for asker in askers for one in asker.selectors)
        options = (*askers[0].options, f"--at-once={len(askers)}")
        what = " and ".join(asker.what for asker in askers)
        try:
            replace(askers[0], what=what, selectors=selectors, options=options, record=path).ask()
            if not read(path).complete:
                return False
            for asker in askers:
                _part(path, asker)
        except (ProblemError, RecordError):
            return False
        return True


def _part(path: Path, asker: Asker) -> None:
    """Write the record of one of several that were asked together. Raises ProblemError."""
    first, *lines, last = path.read_bytes().splitlines()
    header, footer = json.loads(first), json.loads(last)
    labels = {selector.partition("=")[0] for selector in asker.selectors}
    header["targets"] = {name: target for name, target in header["targets"].items() if name.partition("=")[0] in labels}
    cells = [line for line in lines if json.loads(line)["target"] in header["targets"]]
    header["scope"] |= {"targets": list(asker.selectors), "selected": len(cells)}
    footer["cells"] = len(cells)
    try:
        asker.record.parent.mkdir(parents=True, exist_ok=True)
        asker.record.write_bytes(b"\n".join([as_json(header), *cells, as_json(footer), b""]))
    except OSError as error:
        raise _unwritable(asker.record, error) from error


def _unwritable(record: Path, error: OSError) -> ProblemError:
    return ProblemError(f"{error.filename or record} can't be written ({error.strerror or error}); --records names another folder")


def _watched(run: subprocess.Popen[bytes], what: str, record: Path) -> int:
    """Wait for a run, and say on a terminal how far it has come."""
    started = time.monotonic()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not terminal:
        say(f"{what}: asking …")
    try:
        while run.poll() is None:
            if terminal:
                print(f"{_AGAIN}{what}: {_far(record)}", end="", file=sys.stderr, flush=True)
            time.sleep(_LOOK)
    except BaseException:
        run.terminate()  # it closes its record and ends its workers
        run.wait()
        raise
    seconds = time.monotonic() - started
    say(f"{_AGAIN if terminal else ''}{what}: {_far(record)}, {seconds:.0f} s")
    return run.returncode


def _far(record: Path) -> str:
    try:
        with record.open("rb") as file:
            selected = json.loads(file.readline())["scope"]["selected"]
            cells = sum(line.startswith(b'{"type":"cell"') for line in file)
    except (OSError, ValueError, KeyError):
        return "starting"
    return f"{cells} of {selected} cells"


def _complete(record: Path) -> bool:
    try:
        return read(record).complete
    except RecordError:
        return False


def _why(log: Path) -> str:
    """Return what a run said that couldn't do what was asked."""
    text = log.read_text("utf-8", "replace")
    found = re.findall(r"^(?:ERROR: |E\s+)(.*)$", text, re.MULTILINE)
    return found[-1] if found else f"the run ended without a word that helps; {log} has all that it said"


def splice(record: Path, again: Path) -> None:
    """Put the cells of a second run into a record, before its footer, in one step. Raises ProblemError."""
    lines = record.read_bytes().splitlines(keepends=True)
    more = [line for line in again.read_bytes().splitlines(keepends=True) if line.startswith(b'{"type":"cell"')]
    new = record.with_name(f".{record.name}-{os.getpid()}")
    try:
        new.write_bytes(b"".join([*lines[:-1], *more, lines[-1]]))
        new.replace(record)
    except OSError as error:
        raise ProblemError(f"{record} can't be written ({error.strerror or error})") from error


def settled(records: tuple[Path, Path], askers: tuple[Asker | None, Asker], gate: Callable[[Record, Record], Report]) -> Report:
    """Return what the gate says of two records, after what isn't settled was asked again, where that can be asked. Raises ProblemError."""
    report = gate(*map(read, records))
    pairs = {pair.name: pair for pair in report.comparison.pairs}
    open_ = [(pairs[one.target], one.case) for one in report.comparison.changes if one.case and "unsettled" in (one.kind, *one.others)]
    if not open_:
        return report
    say(f"not settled, and asked again: {len(open_)} question{'s'[: len(open_) > 1]}")
    for side, asker in zip(("old", "new"), askers, strict=True):
        if asker is not None:
            asker.again((getattr(pair, side).name, case) for pair, case in open_)
    return gate(*map(read, records))
