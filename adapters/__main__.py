"""`python -m adapters check`: whether a worker, in any language, speaks the protocol."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from adapters.check import NOT_CHECKED, RIGHT, WRONG, check
from adapters.conversation import Talk
from adapters.lane import DEADLINE, HELLO
from adapters.process import NotStarted
from adapters.targets import Selector, SelectorError, Spec, adapters, interpreter, parse, plan

#: What was asked for can't be done, as the one sentence on standard error says.
COULD_NOT = 2
#: Seconds that an answer may be waited for: a day.
_LONGEST = 86400
_EPILOG = """a worker is
  COMMAND ...   a program of its own, in any language, that is asked at once
  NAME          a framework that the suite has a worker for: numpy, torch, jax in this interpreter, candle once it is built
  SELECTOR      one of its device kinds, or one in another interpreter: torch:meta, 'jax:cpu@old/bin/python'
a word that could be a framework and a program is the framework; write ./torch for the program.

examples:
  python -m adapters check numpy
  python -m adapters check 'torch:*'
  python -m adapters check ./my-worker --its-own-option
  python -m adapters check --framework mine --device gpu ssh there ./worker
  python -m adapters check --adapter mine=my_package.adapter:Mine mine

exit status: 0 nothing is wrong; 1 something is; 2 the worker could not be started, or what it was to be asked is unclear.
what the rules are: adapters/PROTOCOL.md. The worker is run, as you, with your environment.
"""


class Problem(Exception):
    """What was asked for can't be done; the message says what and what to do, in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End with one sentence instead of the whole usage."""
        self.exit(COULD_NOT, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a worker and return the exit status."""
    parser = _Parser(prog="python -m adapters", description="The workers that answer for frameworks.")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    verb = verbs.add_parser(
        "check", help="speak every message of the protocol to a worker, and say what it gets wrong", epilog=_EPILOG,
        description="Speak every message of the protocol to a worker, good and bad, and say in a list what it gets right and what wrong.",
        usage="%(prog)s [option ...] COMMAND ... | NAME | SELECTOR", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.add_argument("--framework", metavar="NAME", help="what a COMMAND is asked for (default: its name, without -worker)")
    verb.add_argument("--device", default="*", metavar="GLOB", help="ask about these device kinds of a COMMAND (default: all)")
    verb.add_argument("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS|PROGRAM", help="know a framework by this")
    verb.add_argument("--deadline", type=float, default=DEADLINE, metavar="SECONDS",
        help=f"how long an answer may take (default {DEADLINE:g}; hello {HELLO / DEADLINE:g} times that)")  # fmt: skip
    verb.add_argument("worker", nargs=argparse.REMAINDER, metavar="COMMAND ... | NAME | SELECTOR", help="what is checked")
    chosen = parser.parse_args(arguments)
    try:
        return _checked(chosen)
    except (Problem, SelectorError, NotStarted) as problem:
        sys.stdout.flush()
        print(f"python -m adapters check: {problem}", file=sys.stderr)
    except BrokenPipeError:
        # Whoever read has enough; the interpreter must not complain about it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        pass
    return COULD_NOT


def _checked(chosen: argparse.Namespace) -> int:
    if not chosen.worker:
        raise Problem("no worker is named; give a command, or a framework such as numpy; see --help")
    if not 0 < chosen.deadline <= _LONGEST:
        raise Problem(f"--deadline wants seconds above 0, up to {_LONGEST}")
    if importlib.util.find_spec("jsonschema") is None:
        # The schema is held against replies by what knows schemas; a second reading of our own could be wrong with the worker.
        raise Problem("jsonschema isn't installed, by which replies are held against the schema: pip install -e '.[tests]'")
    found: list[str] = []
    for spec, devices in _workers(chosen):
        talk = Talk(spec, chosen.deadline, chosen.deadline * HELLO / DEADLINE)
        try:
            for number, finding in enumerate(check(talk, devices)):
                if not number:
                    said = " ".join(filter(None, [spec.framework, str(talk.hello.get("version", ""))]))
                    print(f"{said} in {interpreter(spec)}: {', '.join(talk.kinds) or 'no device'}")
                found.append(finding.outcome)
                print(f"  {finding.outcome:<11}  {finding}", flush=True)
        finally:
            talk.end()
    print(", ".join(f"{found.count(outcome)} {outcome}" for outcome in (RIGHT, WRONG, NOT_CHECKED)))
    return 1 if WRONG in found else 0


def _workers(chosen: argparse.Namespace) -> Iterator[tuple[Spec, str]]:
    """Return whom to ask, and a glob of device kinds for each. Raises Problem and SelectorError."""
    known = adapters(chosen.adapter)
    first, *rest = chosen.worker
    selector = None if rest else Selector(first, "*") if first in known else _selector(first)
    if selector is None:
        program = os.path.expanduser(first)
        if shutil.which(program) is None:
            raise Problem(f"{first} is no command that is here, and no framework or selector; frameworks are {', '.join(sorted(known))}")
        name = chosen.framework or Path(program).name.removesuffix("-worker")
        yield Spec(name, None, (program, *rest), program=True), chosen.device
        return
    if chosen.framework or chosen.device != "*":
        raise Problem(f"--framework and --device are for a command; write {selector.framework}:DEVICE instead")
    wanted, absent = plan([selector], known)
    if not wanted:
        raise Problem("; ".join(f"{one.name}: {one.why}" for one in absent))
    for one in wanted:
        yield one.spec, selector.device


def _selector(text: str) -> Selector | None:
    """Return a word as a selector, None for what is none: the path of a program may hold a colon too."""
    try:
        return parse(text)
    except SelectorError:
        return None


if __name__ == "__main__":
    sys.exit(main())
