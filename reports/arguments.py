"""What pytest was called with: which arguments concern the cases, what isn't there, which words are one."""

from __future__ import annotations

import importlib.util
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.targets import install
from reports.run import Failure

ROOT = Path(__file__).parent.parent
#: What the extra `tests` brings.
_TESTS_NEED = ("hypothesis", "jsonschema")
#: Options that name a file.
_FILES = ("--record", "--baseline", "--gate-config")
#: What asks nothing, so that no worker need start.
_ASKS_NOTHING = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")


def concerns_cases(config: pytest.Config) -> bool:
    """Say whether this run collects the cases (and not the suite's own tests alone)."""
    if any(getattr(config.option, name, None) not in (None, False, 0) for name in _ASKS_NOTHING):
        return False
    wanted = (ROOT, ROOT / "cases", ROOT / "cases" / "__init__.py")
    return any(_path(config, argument).resolve() in wanted for argument in config.args)


def check_arguments(config: pytest.Config) -> None:
    """Refuse what isn't there before anything is started. Raises Failure."""
    for argument in config.args:
        if not config.option.pyargs and not _path(config, argument).exists():
            raise Failure(f"there is no {argument.split('::')[0]}; --target and --case choose what is asked, see pytest --help")
    own = ROOT / "tests"
    if any(own in (path := _path(config, argument).resolve(), *path.parents) for argument in config.args):
        missing = [name for name in _TESTS_NEED if importlib.util.find_spec(name) is None]
        if missing:
            raise Failure(f"the suite's own tests need {' and '.join(missing)}: " + install("-e '.[tests]'"))


def _path(config: pytest.Config, argument: str) -> Path:
    return config.invocation_params.dir / argument.split("::")[0]


def join_record(config: pytest.Config) -> bool:
    """Write `--record PATH` as one word from here on, and say whether it was two; likewise other options that name a file.

    Once the file is there, pytest takes a PATH behind a space for one to collect from, before it knows the option; outside the
    checkout it then finds neither this project's settings nor its options. xdist's workers read the same command line again.
    """
    args = _joined(config.invocation_params.args)
    by_variable = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    apart = "--record" in (*config.invocation_params.args, *by_variable)
    if any(option in (*config.invocation_params.args, *by_variable) for option in _FILES):
        config.invocation_params = replace(config.invocation_params, args=args)
        os.environ["PYTEST_ADDOPTS"] = shlex.join(_joined(by_variable))
    return apart


def _joined(words: Sequence[object]) -> tuple[str, ...]:
    joined: list[str] = []
    for word in map(str, words):
        if joined and joined[-1] in _FILES:
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return tuple(joined)


def named_by_ids(arguments: list[str]) -> list[str]:
    """Return the targets of node ids, so that nothing else is started; [] when some argument names none."""
    parts = [argument.split("::") for argument in arguments]
    return list(dict.fromkeys(p[1] for p in parts)) if all(len(p) > 1 for p in parts) else []
