"""The verbs of `python -m reports`, a module each; what a verb needs is imported when it runs."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from reports import SUITE

if TYPE_CHECKING:
    from cases import Case

VERBS = ("targets", "cases", "explain", "show", "matrix", "gate", "upgrade", "history", "bisect", "port", "norm", "times")
#: What was asked for can't be done, as the one sentence on standard error says.
COULD_NOT = 2
_EXAMPLES = """examples:
  python -m reports targets
  python -m reports cases 'placement/*'
  python -m reports explain placement/matmul/host-accelerator
  python -m reports show reports/out/latest.jsonl --json --target 'torch:*'
  python -m reports matrix old.jsonl new.jsonl --format html --output page.html
  python -m reports gate old.jsonl new.jsonl --uses src
  python -m reports upgrade jax==0.4.30 jax==0.10.2
  python -m reports history jax 0.4.26..0.10.2
  python -m reports bisect moving/no-device/zeros-like jax 0.4.20..0.10.2
  python -m reports port torch:fake-cuda jax:cpu
  python -m reports norm torch:cuda jax:gpu
  python -m reports times reports/out/latest.jsonl
"""


class ProblemError(Exception):
    """What was asked for can't be done; the message says what and what to do, in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End with one sentence instead of the whole usage."""
        self.exit(COULD_NOT, f"{self.prog}: {message}; see {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse is silent about what it can't write, and that would be help which nobody sees.
        if file is sys.stdout:
            file.write(message)
        else:
            say(message.rstrip("\n"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that can't print a character still shows the rest
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        status = _status(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has enough.
        _abandon(sys.stdout)
        return 0
    except OSError as error:
        what = f"{error.filename} can't be used" if error.filename else "the output can't be written"
        say(f"python -m reports: {what} ({error.strerror or error}); mend that and ask again")
        _abandon(sys.stdout)
        return COULD_NOT
    except KeyboardInterrupt:
        return COULD_NOT
    return status


def _status(arguments: Sequence[str] | None) -> int:
    parser = _Parser(
        prog="python -m reports", description="What was asked of tensor frameworks, and what they answered.", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"device-semantics {SUITE}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for name in VERBS:
        importlib.import_module(f"reports.verbs.{name}").register(verbs)
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as ended:  # help was asked for, or something can't be understood
        return COULD_NOT if ended.code else 0
    return run(chosen)


def _abandon(stream: TextIO | None) -> None:
    """Let what could not be written go nowhere: the interpreter must not complain about it when it ends."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str) -> None:
    """Write a sentence to standard error, where there is one."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _abandon(sys.stderr)


def run(chosen: argparse.Namespace) -> int:
    """Run a verb; what the user can mend becomes one sentence on standard error."""
    try:
        status: int | None = chosen.run(chosen)
    except Exception as problem:
        from reports.visible import visible

        if not isinstance(problem, _mendable()):
            raise
        sys.stdout.flush()
        say(visible(f"python -m reports {chosen.verb}: {problem}"))
        return COULD_NOT
    return status or 0


def _mendable() -> tuple[type[Exception], ...]:
    """Return what says in a sentence what the user can mend; looked for where something failed, since it takes its time."""
    from adapters.targets import SelectorError
    from cases.case import CatalogueError
    from cases.contract import ContractError
    from reports.cells import RecordError

    return ProblemError, RecordError, CatalogueError, ContractError, SelectorError


def written(text: str, path: Path | None) -> None:
    """Write a text to a file and say which, or to standard output. Raises ProblemError."""
    from reports.writer import make_folder

    if path is None:
        print(text, end="")
        return
    try:
        make_folder(path)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"{path} can't be written ({error.strerror or error}); give --output a path in a folder that can") from error
    print(path)


def catalogue() -> Mapping[str, Case]:
    """Return every case, once the contracts are found to be in order. Raises CatalogueError, ContractError."""
    from cases.case import catalogue
    from cases.contract import check

    known = catalogue()
    check(known, {name: one.answers.words for name, one in known.items()})
    return known


def matching(names: Iterable[str], globs: Sequence[str], what: str) -> list[str]:
    """Return the names that match any of the globs, all without globs. Raises ProblemError for a glob that matches none."""
    known = list(names)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            near = get_close_matches(glob, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "a glob such as 'placement/*' is understood" if what == "case" else (
                f"there are {', '.join(known)}" if known else "there are none"
            )  # fmt: skip
            raise ProblemError(f"no {what} matches {glob!r}; {hint}")
    return [name for name in known if not globs or any(fnmatchcase(name, glob) for glob in globs)]
