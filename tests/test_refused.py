"""What `python -m reports` can't do: one sentence on standard error that says why, and exit status 2."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.targets import parse
from tests import damage, sample
from tests.sample import ROOT
from tests.test_cli import ask


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.record(tmp_path_factory.mktemp("refused") / "r.jsonl")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "the following arguments are required: VERB; see python -m reports --help"),
        (("nonsense",), "invalid choice: 'nonsense'"),
        (("cases", "placemnt/create/device"), "no case matches 'placemnt/create/device'; did you mean placement/create/device"),
        (("cases", "zzz*"), "no case matches 'zzz*'; a glob such as 'placement/*' is understood"),
        (("cases", "--area", "place"), "no area matches 'place'; did you mean placement?"),
        (("explain",), "the following arguments are required: CASE"),
        (("explain", "nope"), "no case matches 'nope'"),
        (("explain", "placement/*", "--script", "--target", "torch:cpu", "--record", "RECORD"), "RECORD has no target torch:cpu"),
        (("explain", "placement/*", "--script", "--target", "dummy:accel", "--record", "RECORD"), "--script wants one case"),
        (("explain", "placement/*", "--record", "nope.jsonl"), "no record at nope.jsonl"),
        (("explain", "placement/create/device", "--target", "torch"), "is not [label=]framework:device"),
        (("show",), "the following arguments are required: RECORD"),
        (("show", "nope.jsonl"), "no record at nope.jsonl: `pytest -n auto --record=nope.jsonl` makes one"),
        (("show", "README.md"), "README.md is no record of this suite"),
        (("show", "RECORD", "--target", "dummy:acel"), "no target matches 'dummy:acel'; did you mean dummy:accel"),
        (("show", "RECORD", "--case", "time/*"), "no case matches 'time/*'"),
        (("matrix",), "the following arguments are required: RECORD"),
        (("matrix", "RECORD", "nope.jsonl"), "no record at nope.jsonl"),
        (("matrix", "RECORD", "--format", "pdf"), "invalid choice: 'pdf'"),
        (("matrix", "RECORD", "--width", "12"), "'12' is no width; give a number of columns from 40 on"),
        (("matrix", "RECORD", "--output", "README.md/x"), "README.md/x can't be written"),
        (("targets", "nonsense:*"), "no framework 'nonsense'; there are "),
        (("targets", "a=b=c"), "is not [label=]framework:device"),
        (("targets", "torch:cpu@/no/python"), "no interpreter or command '/no/python' here"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_status_2(record: Path, arguments: tuple[str, ...], says: str) -> None:
    done = ask(*(str(record) if a == "RECORD" else a for a in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert says.replace("RECORD ", f"{record} ") in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("python -m reports")


def test_a_closed_pipe_ends_it_quietly(record: Path) -> None:
    for arguments in (["cases"], ["matrix", str(record), "--format", "html"], ["explain", "*"], ["show", str(record), "--json"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "reports", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
        process.stderr.close()


# --- output that goes nowhere ----------------------------------------------------------------------


def shell(arguments: str, output: str) -> tuple[int, str]:
    """Return the exit status and standard error of a command whose output goes somewhere."""
    command = f"{sys.executable} -m reports {arguments} {output}"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", ["cases", "--help", "--version"])
def test_output_that_cannot_be_written_is_one_sentence(arguments: str) -> None:
    full = "python -m reports: the output can't be written (No space left on device); mend that and ask again\n"
    assert shell(arguments, ">/dev/full") == (2, full)
    closed = "python -m reports: the output can't be written (standard output is closed); mend that and ask again\n"
    assert shell(arguments, ">&-") == (2, closed)


@pytest.mark.parametrize("output", [">/dev/null 2>/dev/full", ">/dev/null 2>&-"])
def test_a_sentence_that_nobody_can_hear_changes_no_exit_status(output: str, record: Path) -> None:
    assert shell("cases", output) == (0, "")
    assert shell("cases no/such/case", output) == (2, "")
    cut = record.with_name("cut.jsonl")
    cut.write_text("".join(record.read_text("utf-8").splitlines(keepends=True)[:9]))
    assert shell(f"show {cut}", output) == (0, "")


# --- targets ---------------------------------------------------------------------------------------

DUMMY = ("--adapter", "dummy=tests.dummy:Dummy")


def test_two_targets_of_one_name_are_told_what_to_type() -> None:
    named = ("old=dummy:accel", f"old=dummy:accel@{sys.executable}")
    status, out, err = damage.ask("targets", *named, *DUMMY)
    assert (status, out) == (2, "")
    hint = re.search("two targets are called old=dummy:accel: give each its own label, as in (.*)\n", err)
    assert hint
    assert parse(hint[1]).label == "old2"
    status, out, _ = damage.ask("targets", named[0], hint[1], *DUMMY)
    assert status == 0
    assert "old=dummy:accel " in out
    assert "old2=dummy:accel " in out


@pytest.mark.parametrize("selector", ["dummy:nothing", "dummy:no*thing", "x=dummy:nothing"])
def test_a_target_that_is_asked_for_and_is_not_here_is_no_success(selector: str) -> None:
    status, out, err = damage.ask("targets", "dummy:accel", selector, *DUMMY)
    assert status == 2
    assert err == f"python -m reports targets: nothing that {selector} names is here; what is not here stands in the list with its reason\n"
    assert "dummy:accel " in out
    assert "no device " in out
