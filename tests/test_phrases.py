"""Phrases: native code that is read from an adapter's source says what the adapter does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.phrases import Phrases
from adapters.reproducer import Line
from adapters.source import UnclearError
from adapters.wording import data
from tests.somebody import FULL, HOST, OTHER, REF, books, code, step


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from books(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        (FULL, "s9 = lib.full([2, 2], 3.0, dtype=lib.float32, device=lib.Device('gpu:0'))"),
        (step("add", REF, OTHER), "s9 = s1 + s2"),
        (step("add", REF, 2), "s9 = s1 + 2"),
        (step("add", REF, -2.5), "s9 = s1 + (-2.5)"),
        (step("add", REF, {"data": [1.0] * 8}), "s9 = s1 + ([1.0] * 8)"),
        (step("power", x=REF, n=3), "s9 = s1 ** 3"),
        (step("attribute", {"data": 2.0}), "s9 = (2.0).T"),
        (step("attribute", REF), "s9 = s1.T"),
        (step("inherited", REF), "s9 = lib.base(s1, 'gpu')"),
        (step("helped", REF), "s9 = lib.helped(s1, 'gpu')"),
        (step("shortcut", REF), "s9 = s1.gpu()"),
        (step("guarded", REF, "pinned"), "s9 = s1.pin()"),
        (step("set_tail", REF, 1, OTHER), "s1[1:] = s2\ns9 = s1"),
        (step("add_", REF, OTHER), "s9 = s1\ns9 += s2"),
        (step("entered", REF, HOST), "with lib.default(lib.Device('cpu')):\n    s9_y = lib.copy(s1)\n    s9 = s9_y"),
        (step("add", {"device": "host", "spelled": "string"}, {"device": "misspelt"}), "s9 = 'cpu' + lib.Device('gpuu')"),
        (step("undecided", REF), "if lib.ready():\n    lib.go(s1)\ns9 = s1"),
        (step("short_circuit", REF), "s9 = s1.near"),
        (step("observe", REF), "print(s1)"),
        (step("drop", REF), "del s1"),
        (step("same", REF, OTHER), "print(s1 is s2, s1.address == s2.address)"),
        (step("compare", REF, OTHER), "print(s1 == s2, s2 == s1, hash(s1) == hash(s2))"),
        (step("name", HOST), "s9 = lib.Device('cpu')"),
        (step("buffer", {"data": [2.0, 3.0]}, "aligned"), "s9 = HostBuffer([2.0, 3.0], 'aligned')"),
        (step("write_buffer", REF, 9.0), "s1.write(9.0)"),
        (step("barrier"), "lib.wait(lib.Device('gpu:0'))\nlib.block([])"),
        (
            {"id": "s1", "scope": "default-device", "args": [HOST], "body": [step("add", REF, 1)]},
            "with lib.default(lib.Device('cpu')):\n    s9 = s1 + 1",
        ),
    ],
)  # fmt: skip
def test_a_step_is_the_adapters_expression_with_its_arguments(book: Any, asked: dict[str, Any], written: str) -> None:
    assert code(book(), asked) == written


def test_what_is_known_of_the_target_decides(book: Any) -> None:
    assert code(book("fake-gpu"), step("shortcut", REF)) == "s9 = s1.gpu()"
    (line,) = book("mps").lines({"steps": [step("shortcut", REF)]})
    assert (line.runs, line.code) == (False, "# shortcut: the framework offers no such thing: no mps()")
    (line,) = book().lines({"steps": [step("guarded", REF, "unified")]})
    assert (line.runs, "no memory kind unified" in line.code) == (False, True)
    assert code(book(), step("dynamic", HOST)).startswith("getattr(lib, lib.Device('cpu').type).sync(lib.Device('cpu'))")
    assert ".sync()" in code(book("mps"), step("dynamic", HOST))


def test_what_older_versions_write_otherwise_is_taken_for_them(book: Any) -> None:
    assert code(book(version="1.26.4"), step("add", REF, OTHER)) == "s9 = lib.add(s1, s2)"
    assert code(book(version="1.26.4"), step("power", REF, 2)) == "s9 = lib.add(s1, 2)"
    assert code(book(version="2.0"), step("add", REF, OTHER)) == "s9 = s1 + s2"


def test_what_cannot_be_written_is_said(book: Any) -> None:
    for op in ("looped", "no_such_operation"):
        (line,) = book().lines({"steps": [step(op, REF)]})
        assert not line.runs
        assert line.code.startswith(f"# {op}: see somebodys.adapter; it can't be written as plain code")
    (line,) = book().lines({"steps": [step("full", [2], 1, {"dtype": "int7"}, HOST)]})
    assert (line.runs, line.code) == (False, "# full: the framework offers no such thing: no dtype int7")
    (line,) = book().lines({"steps": [step("name", {"device": "absent"})]})
    assert not line.runs
    (line,) = book(spelled={"absent/object": "lib.Device('tpu')"}).lines({"steps": [step("name", {"device": "absent"})]})
    assert line == Line("s9", "s9 = lib.Device('tpu')")


def test_an_adapter_without_source_is_said() -> None:
    with pytest.raises(UnclearError, match="no adapter for nobodys is known here"):
        Phrases.example("nobodys")
    with pytest.raises(UnclearError, match=r"no (Python source of|module) math"):
        Phrases.example("mine", "math:Mine")
    with pytest.raises(UnclearError, match="no module"):
        Phrases.example("mine", "no.such.module:Mine")


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1.0, 2.0], "[1.0, 2.0]"),
        ([True, False] * 128, "[True, False] * 128"),
        ([[3] * 256, [1] * 256], "[[3] * 256, [1] * 256]"),
        ([0] * 5 + [1] + [0] * 30, "[0] * 5 + [1] + [0] * 30"),
        (["nan", "-inf"], "[float('nan'), float('-inf')]"),
        (2, "2"),
    ],
)  # fmt: skip
def test_data_is_written_shortly_and_means_the_same(values: Any, written: str) -> None:
    assert data(values) == written
    if "float(" not in written:
        assert ast.literal_eval(written) == values if "*" not in written else eval(written) == values  # noqa: S307  written above


def test_complex_data_has_both_parts() -> None:
    assert data([1.0, 2.0], [3.0, "inf"]) == "[complex(1.0, 3.0), complex(2.0, float('inf'))]"
