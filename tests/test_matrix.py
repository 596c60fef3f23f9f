"""The matrix: what is merged, what stays apart, and how a run ends."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from cases.case import AREAS
from reports import html, markdown, marks, terminal
from reports.closing import closing
from reports.matrix import Matrix
from reports.record import Writer
from tests import sample
from tests.sample import matrix, one_cell
from tests.test_page import Page


@pytest.fixture
def plain(tmp_path: Path) -> Matrix:
    return matrix(sample.record(tmp_path / "r.jsonl"))


def dated(path: Path, started: str) -> Path:
    """Give a record another start."""
    first, rest = path.read_text("utf-8").split("\n", 1)
    path.write_text(json.dumps({**json.loads(first), "started": started}) + "\n" + rest)
    return path


# --- merging ---------------------------------------------------------------------------------------


def test_rows_stand_in_the_catalogues_order_by_area(plain: Matrix) -> None:
    assert list(plain.areas) == [area for area in AREAS if area in plain.areas]
    order = list(catalogue())
    assert [order.index(case) for case in plain.rows()] == sorted(order.index(case) for case in sample.CASES)


def test_a_target_is_a_column(plain: Matrix) -> None:
    assert [column.key for column in plain.columns] == ["dummy:accel", "dummy:no-peer", "dummy:copies-on-same-to"]
    assert plain.columns[2].cell("moving/to-same/object").answer == "copy"
    assert plain.notes == ()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"version": "2.0"}, "dummy:accel (2.0)"),
        ({"build": {"flavour": "fast"}}, "dummy:accel (flavour fast)"),
        ({"machine": {"python": "3.12", "system": "Linux"}}, "dummy:accel (python 3.12)"),
        ({"environment": {"FALLBACK": "1"}}, "dummy:accel (FALLBACK 1)"),
    ],
)  # fmt: skip
def test_what_differs_stays_a_column_of_its_own(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    merged = matrix(sample.record(tmp_path / "a.jsonl", ["accel"]), sample.record(tmp_path / "b.jsonl", ["accel"], **changes))
    assert len(merged.columns) == 2
    assert merged.columns[1].key == key
    assert merged.notes == ()


def test_labels_are_names_of_their_own(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "r.jsonl", {
        "scope": {"targets": [], "cases": [], "selected": 2},
        "targets": {
            "old=dummy:accel": sample.target("accel", target="old=dummy:accel", label="old"), "dummy:accel": sample.target("accel"),
        },
    })  # fmt: skip
    for name in ("old=dummy:accel", "dummy:accel"):
        writer.write(sample.cell("accel", sample.CASES[0], target=name))
    writer.close(complete=True)
    assert [column.key for column in matrix(tmp_path / "r.jsonl").columns] == ["old=dummy:accel", "dummy:accel"]


@pytest.mark.parametrize("newest_first", [False, True])
def test_of_the_same_target_the_newer_wins_and_it_is_said(tmp_path: Path, newest_first: bool) -> None:
    case = "moving/to-same/object"
    old = dated(sample.record(tmp_path / "old.jsonl", ["accel"]), "2026-01-01T00:00:00Z")
    new = dated(one_cell(tmp_path / "new.jsonl", sample.cell("accel", case, answer="copy")), "2026-02-01T00:00:00Z")
    merged = matrix(*([new, old] if newest_first else [old, new]))
    (column,) = merged.columns
    assert column.cell(case).answer == "copy"
    assert column.cell(sample.CASES[0]).answer == "works"
    assert column.records == ("old.jsonl", "new.jsonl")
    assert merged.notes == (
        "dummy:accel: in old.jsonl and new.jsonl, of which the newer one wins in 1 cells, 1 of them with another answer; "
        "6 are only in the older",
    )


def test_what_was_not_asked_is_not_run_and_nothing_else(tmp_path: Path) -> None:
    one = one_cell(tmp_path / "a.jsonl", sample.cell("accel", sample.CASES[0]))
    merged = matrix(one, sample.record(tmp_path / "b.jsonl", ["no-peer"]))
    cell = merged.columns[0].cell("moving/to-same/object")
    assert (cell.status, cell.answer, cell.behaves, marks.kind(cell)) == ("not-run", None, False, "none")


def test_a_target_that_started_nowhere_is_one_line(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl", ["accel"])
    first, rest = path.read_text("utf-8").split("\n", 1)
    header = json.loads(first)
    header["targets"]["dummy:gpu"] = {"target": "dummy:gpu", "available": False, "why": "no <GPU> here"}
    path.write_text(json.dumps(header) + "\n" + rest)
    merged = matrix(path)
    assert dict(merged.absent) == {"dummy:gpu": "no <GPU> here"}
    assert "dummy:gpu: no <GPU> here" in terminal.render(merged)
    assert "no &lt;GPU&gt; here" in html.render(merged)
    assert r"no \<GPU\> here" in markdown.render(merged)


def test_a_case_that_is_asked_otherwise_today_is_noted(tmp_path: Path) -> None:
    merged = matrix(one_cell(tmp_path / "r.jsonl", sample.cell("accel", sample.CASES[0], program="0" * 16)))
    assert merged.notes == ("1 cases are asked otherwise today than when they were recorded, such as placement/create/device",)


def test_a_case_of_another_catalogue_stands_last_in_its_area(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(path, sample.header(["accel"]))
    for case in ("placement/gone/now", "placement/create/device"):
        writer.write(sample.cell("accel", "placement/create/device", case=case))
    writer.close(complete=True)
    merged = matrix(path)
    assert merged.areas["placement"] == ("placement/create/device", "placement/gone/now")
    assert merged.notes == ("1 cases are not in this catalogue, such as placement/gone/now",)
    for text in (terminal.render(merged), markdown.render(merged), html.render(merged)):
        assert "gone" in text


# --- the end of a run ------------------------------------------------------------------------------


class Reporter:
    """As much of pytest's terminal reporter as the end of a run needs."""

    class _Screen:
        fullwidth = 100
        hasmarkup = False
        _file = io.StringIO()

    def __init__(self) -> None:
        """Keep what is written."""
        self._tw = self._Screen()
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        """Take a heading."""
        self.lines.append(f"= {title} =")

    def write_line(self, line: str) -> None:
        """Take a line."""
        self.lines.append(line)


def test_a_run_ends_with_deviations_matrix_page_and_record(tmp_path: Path) -> None:
    path, reporter = sample.record(tmp_path / "r.jsonl"), Reporter()
    closing(path, reporter)
    assert reporter.lines[0] == "= device semantics ="
    assert reporter.lines[1].startswith("Nothing deviates")
    assert reporter.lines[-2:] == [f"page:   {tmp_path / 'r.html'}", f"record: {path}"]
    assert Page((tmp_path / "r.html").read_text("utf-8")).open == []


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    path, reporter = sample.record(tmp_path / "r.jsonl"), Reporter()
    (tmp_path / "r.html").mkdir()
    closing(path, reporter)
    assert reporter.lines[-2].startswith("no page: ")
    assert reporter.lines[-1] == f"record: {path}"
