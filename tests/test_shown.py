"""What a user types and sees: `--record` in every way it is typed, and the end of a run, where everything is said once."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import pytest

from reports.record import read
from tests.running import DUMMY, FEW, NUMBER, ROOT, ask, cells, surroundings

pytestmark = pytest.mark.slow
ACCEL = (*DUMMY, "--target", "dummy:accel", *FEW)


def named() -> list[str]:
    """Return what tox's conformance environment says, so that pytest knows the options before it looks for settings."""
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    return tox["testenv:conformance"]["commands"].removeprefix("python -m pytest ").partition(" -n ")[0].split()


# --- where the record goes -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=" ".join)
def test_a_record_behind_a_space_goes_where_there_is_none_yet(tmp_path: Path, options: tuple[str, ...]) -> None:
    record = tmp_path / "record.jsonl"
    said = ask(*ACCEL, "--record", str(record), *options)
    assert len(cells(record)) == NUMBER
    assert f"record: {record}" in said
    assert "--record=PATH needs the equals sign" in said


def test_a_record_behind_a_space_is_written_again_outside_the_checkout(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    for options in ((), ("-n", "1")):
        ask(*ACCEL, "--record", str(record), *named(), *options)
        assert len(cells(record)) == NUMBER


def test_a_record_behind_a_space_is_written_again_inside_the_checkout(tmp_path: Path) -> None:
    folder = ROOT / "reports" / "out"
    folder.mkdir(exist_ok=True)
    record = folder / f"{tmp_path.parent.name}-{tmp_path.name}.test.jsonl"
    try:
        for _ in range(2):
            said = ask(*ACCEL, "--record", str(record.relative_to(ROOT)))
            assert len(cells(record)) == NUMBER
            assert "equals sign" not in said
    finally:
        for path in (record, record.with_suffix(".html")):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize(("typed", "processes"), [("--record {}", "1"), ("--record={}", "0")])
def test_a_record_that_a_variable_names(tmp_path: Path, typed: str, processes: str) -> None:
    record = tmp_path / "a folder" / "record.jsonl"
    ask(*ACCEL, "-n", processes, env=surroundings(PYTEST_ADDOPTS=typed.format(f"'{record}'")))
    assert len(cells(record)) == NUMBER


# --- the end of a run ----------------------------------------------------------------------------

DEVIATING = (*DUMMY, "--target", "dummy:dies", "--target", "dummy:accel", *FEW)
DEVIATION = "placement/matmul/accelerator-peer"


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_deviation_is_said_once_with_its_reason_then_the_matrix_then_the_page(tmp_path: Path, processes: str) -> None:
    record = tmp_path / "record.jsonl"
    said = ask(*DEVIATING, "-n", processes, f"--record={record}", expect=1)
    assert "FAILURES" not in said
    assert "short test summary" not in said
    assert said.count(DEVIATION) == 1
    assert said.count("ended by SIGSEGV") == 1
    ends = [
        said.index(text) for text in (f"{NUMBER} answers deviate", "SIGSEGV", DEVIATION, "matmul/device-device  ", "page: ", "record: ")
    ]
    assert ends == sorted(ends)
    assert said.rstrip().splitlines()[-2] == f"more:   python -m reports explain placement/matmul/device-device --record {record}"
    assert f"{NUMBER} failed, {NUMBER} passed" in said.rstrip().splitlines()[-1]


@pytest.mark.parametrize(("option", "lists"), [("-v", True), ("-rA", True), ("-q", False)])
def test_who_asks_pytest_for_its_own_lists_gets_them(tmp_path: Path, option: str, lists: bool) -> None:
    said = ask(*DEVIATING, option, f"--record={tmp_path / 'record.jsonl'}", expect=1)
    assert ("= FAILURES =" in said) == lists
    assert (f"FAILED cases/__init__.py::dummy:dies::{DEVIATION} - " in said) == lists
    assert ("answered crashed: ended by SIGSEGV; and that is never right" in said) == lists
    assert f"{NUMBER} answers deviate" in said
    assert said.rstrip().splitlines()[-2].startswith("more: ")


def test_a_run_without_a_deviation_has_nothing_to_explain(tmp_path: Path) -> None:
    said = ask(*ACCEL, f"--record={tmp_path / 'record.jsonl'}")
    assert "Nothing deviates" in said
    assert "more: " not in said


def test_an_error_of_the_suite_itself_is_shown_as_pytest_does(tmp_path: Path) -> None:
    (tmp_path / "broken_items.py").write_text(
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
        "def pytest_runtest_call(item):\n"
        "    yield\n"
        "    raise LookupError('an error of the suite')\n"
    )
    how = {"env": surroundings(PYTHONPATH=str(tmp_path)), "expect": 1}
    said = ask(*ACCEL, "-p", "broken_items", f"--record={tmp_path / 'record.jsonl'}", **how)  # type: ignore[arg-type]
    assert "= FAILURES =" in said
    assert "an error of the suite" in said
    assert "FAILED cases/__init__.py::dummy:accel::" in said
    assert read(tmp_path / "record.jsonl").complete
