"""`python -m adapters check` as a command: what it lists, its exit status, and one sentence for what can't be done."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.__main__ import main
from tests.test_check import ROOT, RULES, SMALL, checkout

__all__ = ["checkout"]  # every test starts in the checkout here too

# --- the command ---------------------------------------------------------------------------------


def ask(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "adapters", "check", *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_worker_that_is_right_is_listed_as_such() -> None:
    done = ask("--framework", "lists", *SMALL)
    first, *listed, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first == f"lists 1.0 in {' '.join(SMALL)}: gpu"
    assert all(line.startswith("  right        ") for line in listed)
    assert last == f"{len(listed)} right, 0 wrong, 0 not checked"


def test_a_worker_that_dies_in_every_program_is_replaced_each_time_and_every_rule_is_listed() -> None:
    done = ask("--framework", "lists", *SMALL, "dies")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == len(RULES) + 2
    assert "  wrong        Read no value that the program doesn't ask for: ended by SIGABRT" in done.stdout
    assert "  right        Answer bye with nothing, and end with exit status 0\n" in done.stdout


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no-devices", "its hello doesn't fit protocol.schema.json: $: 'devices' is a required property"),
        ("number-in-build", "its hello doesn't fit protocol.schema.json: $.build.compiler: 3 is not of type 'string'"),
        ("later-protocol", "its hello doesn't fit protocol.schema.json: $.protocol: 1 was expected"),
        ("chatters", "it says welcome to lists, which is no JSON"),
        ("refuses-hello", 'hello is answered with {"type": "error", "id": 1, "error": "not today"}'),
    ],
)
def test_a_hello_that_cannot_be_used_is_the_last_that_is_checked(fault: str, words: str) -> None:
    done = ask("--framework", "lists", *SMALL, fault)
    assert done.returncode == 1
    assert f"wrong        Say hello with what is here, as the schema says: {words}" in done.stdout
    assert len(done.stdout.splitlines()) == 3


def test_a_worker_that_does_not_start_again_is_wrong(tmp_path: Path) -> None:
    done = ask("--framework", "lists", *SMALL, "starts-once", SMALL_WORKER_MARK=str(tmp_path / "mark"))
    assert done.returncode == 1
    assert "End with exit status 0, and nothing to say, when the input ends: it doesn't start again: " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("worker", [["numpy"], ["array-api-strict:*"], ["--adapter", "dummy=tests.dummy:Dummy", "dummy:accel"]])
def test_the_suites_own_workers_are_right(worker: list[str]) -> None:
    needs = {"numpy": "numpy", "array-api-strict:*": "array_api_strict"}.get(worker[0])
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} isn't installed")
    done = ask(*worker)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "  wrong " not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no worker is named; give a command, or a framework such as numpy"),
        (["./no-such-worker"], "./no-such-worker is no command that is here, and no framework or selector; frameworks are .*numpy"),
        (["trch:cpu"], "no framework 'trch'; there are .*torch"),
        (["numpy:cpu@"], "is no command that is here"),
        (["numpy:cpu@/no/such/python"], "no interpreter or command '/no/such/python' here"),
        (["--device", "cpu", "numpy"], "--framework and --device are for a command; write numpy:DEVICE instead"),
        (["--deadline", "0", "numpy"], "--deadline wants seconds above 0, up to 86400"),
        (["--deadline", "1e300", "numpy"], "--deadline wants seconds above 0, up to 86400"),
        (["--deadline", "soon", "numpy"], "invalid float value: 'soon'; see python -m adapters check --help"),
        (["--adapter", "mine", "numpy"], "adapter 'mine' is neither NAME=module:Class"),
        (["--framework", "lists", *SMALL, "unavailable"], "small_worker unavailable has no lists: lists are not here"),
        (["--framework", "tuples", *SMALL], "has no tuples: this worker is for lists, not for tuples"),
        (["--framework", "lists", "--device", "tpu", *SMALL], "no device kind 'tpu' is here: no TPU here"),
        (["--framework", "lists", "--device", "n*", *SMALL], r"no device kind 'n\*' is here: there are gpu, tpu"),
        ([sys.executable, "-c", "exit('no library here')"], "doesn't answer hello: .*no library here"),
        (["numpy:cpu@true"], "is no Python that can be a worker"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_one_sentence(arguments: list[str], words: str) -> None:
    done = ask(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(words, done.stderr)
    assert len(done.stderr.splitlines()) == 1


def test_without_the_schemas_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "jsonschema" else find(name, *more))
    assert main(["check", "numpy"]) == 2
    assert "jsonschema isn't installed, by which replies are held against the schema: pip install -e '.[tests]'" in capsys.readouterr().err


def test_help_says_what_a_worker_is_with_examples() -> None:
    done = ask("--help")
    assert done.returncode == 0
    for words in (
        "python -m adapters check ./my-worker",
        "torch:meta",
        "--framework NAME",
        "exit status: 0 nothing is wrong",
        "[option ...] COMMAND",
    ):
        assert words in done.stdout


def test_a_pipe_that_is_closed_ends_it_quietly() -> None:
    command = f"{sys.executable} -m adapters check --framework lists {' '.join(SMALL)} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("lists 1.0 in ")
    assert done.stderr == ""
