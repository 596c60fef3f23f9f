"""Every view of a matrix says what a reader must know, and the terminal's keeps to what a terminal can show."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from reports import html, markdown, marks, terminal
from reports.matrix import Matrix
from reports.record import Writer
from reports.style import Style, style_of
from tests import sample
from tests.sample import matrix, one_cell

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def plain(tmp_path: Path) -> Matrix:
    return matrix(sample.record(tmp_path / "r.jsonl"))


def views(merged: Matrix) -> dict[str, str]:
    return {
        "terminal": terminal.render(merged, Style(200)),
        "compact": terminal.render(merged, Style(200), compact=True, deviations_first=True),
        "markdown": markdown.render(merged, deviations_first=True), "html": html.render(merged), "json": json.dumps(merged.to_json()),
    }  # fmt: skip


VIEWS = ("terminal", "compact", "markdown", "html", "json")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_says_that_a_record_is_incomplete(tmp_path: Path, view: str) -> None:
    whole = sample.record(tmp_path / "r.jsonl")
    assert "is incomplete" not in views(matrix(whole))[view]
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(whole.read_text("utf-8").splitlines(keepends=True)[:9]))
    assert "cut.jsonl is incomplete, 13 cells are missing" in re.sub(r"\\(.)", r"\1", views(matrix(cut))[view])


def test_what_is_said_of_an_incomplete_record_is_one_sentence_over_the_matrix(tmp_path: Path) -> None:
    path = tmp_path / "a-name-that-leaves-little-room-in-a-line-of-eighty-characters.jsonl"
    Writer(path, sample.header()).close(complete=False, missing=1, why="interrupted")
    merged = matrix(path)
    first = terminal.render(merged, Style(80)).partition("\n\n")[0]
    assert first == f"{path.name} is\nincomplete, 1 cell is missing: interrupted"
    assert f"<b>{path.name} is incomplete, 1 cell is missing: interrupted</b>" in html.render(merged)


@pytest.mark.parametrize(("verdict", "colour"), [("deviates", "1;7;31"), ("known-deviation", "35"), ("conforms", "32")])
def test_the_colour_of_a_cell_follows_its_verdict_before_its_class(tmp_path: Path, verdict: str, colour: str) -> None:
    merged = matrix(one_cell(tmp_path / "r.jsonl", sample.cell("accel", sample.CASES[0], verdict=verdict)))
    for compact in (False, True):
        assert f"\x1b[{colour}m✓" in terminal.render(merged, Style(80, colour=True), compact=compact)
    tone = {"deviates": "works deviates s", "known-deviation": "works known s", "conforms": "works s"}[verdict]
    assert f"<td class='{tone}'>" in html.render(merged)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_target_version_and_evidence(tmp_path: Path, view: str) -> None:
    text = views(matrix(sample.record(tmp_path / "r.jsonl", version="7.8.9")))[view]
    for word in ("no-peer", "7.8.9", sample.target("accel")["roles"]["accelerator"]["evidence"]):
        assert word in text


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_evidence_that_is_not_the_columns(tmp_path: Path, view: str) -> None:
    roles = {role: {**facts, "evidence": "measured"} for role, facts in sample.target("accel")["roles"].items()}
    cell = sample.cell("accel", sample.CASES[0], evidence="simulated")
    text = views(matrix(one_cell(tmp_path / "r.jsonl", cell, roles=roles)))[view]
    assert "simulated" in text if view != "compact" else "measured" in text


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_a_deviation(tmp_path: Path, view: str) -> None:
    def text(verdict: str) -> str:
        cell = sample.cell("accel", sample.CASES[0], verdict=verdict)
        return views(matrix(one_cell(tmp_path / "r.jsonl", cell)))[view]

    assert text("deviates") != text("conforms")
    assert text("known-deviation") != text("conforms")
    assert text("known-deviation") != text("deviates")


def test_a_crash_is_shown_as_wrong_and_never_as_no_answer(tmp_path: Path) -> None:
    died = sample.cell("accel", sample.CASES[0], status="crashed", answer=None, **{"class": None}, verdict="deviates", why="SIGSEGV")
    merged = matrix(one_cell(tmp_path / "r.jsonl", died))
    assert "✗ crashed!" in terminal.render(merged)
    assert "✗ **crashed**!" in markdown.render(merged)
    assert re.search(r"<td class='wrong deviates s'><button tabindex=-1><i>✗</i>&nbsp;<span class=whole>crashed<b", html.render(merged))


def test_answers_that_varied_are_flagged(tmp_path: Path) -> None:
    varied = sample.cell("accel", "moving/to-same/object", answers=["same-object", "copy"])
    merged = matrix(one_cell(tmp_path / "r.jsonl", varied))
    assert "same-object?" in terminal.render(merged)
    assert "asked more than once" in terminal.render(merged)
    assert "same-object?" in markdown.render(merged)


# --- the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("copies", [1, 5])
def test_the_terminal_fits(tmp_path: Path, width: int, compact: bool, copies: int) -> None:
    merged = matrix(*(sample.record(tmp_path / f"{n}.jsonl", version=f"2.{n}.0+cu132") for n in range(copies)))
    text = terminal.render(merged, Style(width), compact=compact, deviations_first=True)
    assert max(len(line) for line in text.splitlines()) <= width


def test_every_target_and_case_is_in_some_block(tmp_path: Path) -> None:
    merged = matrix(*(sample.record(tmp_path / f"{n}.jsonl", version=f"2.{n}") for n in range(5)))
    text = terminal.render(merged, Style(80))
    for n in range(5):
        assert text.count(f"2.{n}") >= len(sample.KINDS)
    blocks = text.count("create/device")
    assert blocks > 1
    # A long id is broken behind a slash: what stands before it is in the line of the answers.
    assert all(text.count(case.partition("/")[2].partition("/")[0]) >= blocks for case in sample.CASES)


def test_colour_is_only_added_and_marks_say_the_same(plain: Matrix) -> None:
    for compact in (False, True):
        coloured = terminal.render(plain, Style(100, colour=True), compact=compact)
        bare = terminal.render(plain, Style(100), compact=compact)
        assert ANSI.sub("", coloured) == bare != coloured


def test_a_terminal_without_unicode_gets_ascii(plain: Matrix) -> None:
    for compact in (False, True):
        text = terminal.render(plain, Style(80, unicode=False), compact=compact, deviations_first=True)
        assert text.isascii()
        assert "+ " in text


def test_colour_wants_a_terminal_and_no_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert style_of(Terminal()).colour
    assert not style_of(io.StringIO()).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_of(Terminal()).colour
    assert not style_of(io.TextIOWrapper(io.BytesIO(), "latin-1")).unicode


def test_the_compact_rows_and_counts_add_up_to_all_cases(tmp_path: Path) -> None:
    cases = [case for case in catalogue() if case.partition("/")[0] in ("placement", "moving")][::2]
    assert len(cases) > 40
    merged = matrix(sample.record(tmp_path / "r.jsonl", cases=dict.fromkeys((*cases, *sample.CASES))))
    text = terminal.render(merged, Style(120), compact=True)
    alike = sum(map(int, re.findall(r"^(\d+) (?:more|questions?), the same everywhere: ", text, re.M)))
    several = sum(map(int, re.findall(r"^(\d+) × \D.* [✓⊘✗~·]", text, re.M)))
    alone = len([line for line in text.splitlines() if re.match(r"[a-z-]+/[a-z/-]+ +[✓⊘✗~·]", line)])
    assert alike + several + alone == len(list(merged.rows()))
    assert alike
    assert several + alone
    lines = text.splitlines()
    for area in merged.areas:  # "more" is said only below rows
        assert " more, the same everywhere" not in lines[lines.index(area) + 1]


def test_few_rows_or_one_target_are_listed_one_by_one(plain: Matrix) -> None:
    text = terminal.render(plain, Style(120), compact=True)
    assert "the same everywhere" not in text
    assert all(re.search(rf"^{case.partition('/')[2]} +[✓⊘✗~·]", text, re.M) for case in sample.CASES)
    one = terminal.render(plain.chosen(plain.columns[1:2], plain.rows()), Style(120), compact=True)
    assert re.search(r"^equality/accelerator-peer +· not-applicable$", one, re.M)


def test_a_target_that_was_asked_nothing_is_left_out_of_the_summary(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "r.jsonl", sample.header(["accel", "no-peer"]))
    writer.write(sample.cell("accel", sample.CASES[0]))
    writer.close(complete=True)
    text = terminal.render(matrix(tmp_path / "r.jsonl"), Style(120), compact=True, deviations_first=True)
    assert "dummy:accel" in text
    assert "dummy:no-peer" not in text


def test_questions_without_an_answer_are_counted_by_reason(tmp_path: Path) -> None:
    cases = list(catalogue())[:60]
    writer = Writer(tmp_path / "r.jsonl", sample.header(["accel", "no-peer"], cases))
    empty: dict[str, Any] = {"answer": None, "class": None, "verdict": None, "norm": None, "facets": {}}
    for n, case in enumerate(cases):
        for kind in ("accel", "no-peer"):
            status = "not-offered" if n < 50 else "not-applicable" if kind == "accel" else "inconclusive"
            writer.write(sample.cell("accel", sample.CASES[0], target=f"dummy:{kind}", case=case, status=status, why="no ramp", **empty))
    writer.close(complete=True)
    text = terminal.render(matrix(tmp_path / "r.jsonl"), Style(120), compact=True, deviations_first=True)
    assert text.startswith(
        "Nothing was answered.\n  100 × not-offered: no ramp\n  10 × not-applicable: no ramp\n  10 × inconclusive: no ramp\n"
    )
    assert "deviates" not in text
    assert "60 questions, the same everywhere: 50 × not-offered, 10 × no answer" in text
    assert "Nothing was answered." in html.render(matrix(tmp_path / "r.jsonl"))
    assert "10 × inconclusive: no ramp" in markdown.render(matrix(tmp_path / "r.jsonl"), deviations_first=True)


def test_short_words_are_short_distinct_and_in_the_legend(plain: Matrix) -> None:
    words = {word for one in catalogue().values() for word in one.answers.words}
    for limit in (20, 10, 6, 5, 3):
        short = marks.shorten(words, limit)
        assert all(len(form) <= limit for form in short.values())
        assert len(set(short.values())) == len(words)
    assert marks.shorten(["moves-to-accelerator"], 20) == {"moves-to-accelerator": "moves-to-accelerator"}
    text = terminal.render(plain, Style(60))
    assert "= moves-to-accelerator" in " ".join(text.split())


def test_deviations_come_first_when_asked(tmp_path: Path) -> None:
    merged = matrix(one_cell(tmp_path / "r.jsonl", sample.cell("accel", sample.CASES[0], verdict="deviates")))
    first = terminal.render(merged, deviations_first=True)
    assert first.splitlines()[:3] == [
        "1 answer deviates from what a framework promises, on a simulated device", "dummy:accel (simulated), nobody promises that",
        "    ✓ works: placement/create/device",
    ]  # fmt: skip
    assert terminal.render(merged).lstrip().startswith("dummy:accel")
    good = matrix(one_cell(tmp_path / "g.jsonl", sample.cell("accel", sample.CASES[0], verdict="conforms")))
    assert terminal.render(good, deviations_first=True).startswith("Nothing deviates")


def test_a_known_deviation_that_is_gone_comes_first_too(tmp_path: Path) -> None:
    stale = sample.cell("accel", sample.CASES[0], verdict="conforms", stale="known deviation is gone: it read garbage")
    merged = matrix(one_cell(tmp_path / "r.jsonl", stale))
    for compact in (False, True):
        text = terminal.render(merged, deviations_first=True, compact=compact)
        assert text.splitlines()[:2] == [
            "1 known deviation is gone: take its entry out of the contract",
            "dummy:accel (simulated), known deviation is gone: it read garbage",
        ]  # fmt: skip
        assert "deviates" not in text.partition("\n\n")[0]
        assert "^  a known deviation that is gone" in text
    for page in (html.render(merged), markdown.render(merged, deviations_first=True)):
        assert "1 known deviation is gone: take its entry out of the contract" in page


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        (("measured", "measured"), "2 answers deviate from what a framework promises"),
        (("measured", "simulated"), "2 answers deviate from what a framework promises, 1 of them on simulated devices"),
        (("simulated", "simulated"), "2 answers deviate from what a framework promises, all on simulated devices"),
    ],
)  # fmt: skip
def test_the_headline_says_what_was_simulated(tmp_path: Path, evidence: tuple[str, str], says: str) -> None:
    writer = Writer(tmp_path / "r.jsonl", sample.header(["accel"], sample.CASES[:2]))
    for case, one in zip(sample.CASES[:2], evidence, strict=True):
        writer.write(sample.cell("accel", case, verdict="deviates", evidence=one))
    writer.close(complete=True)
    lines = terminal.render(matrix(tmp_path / "r.jsonl"), deviations_first=True).splitlines()
    assert lines[0] == says
    assert ("dummy:accel (simulated), nobody promises that" in lines) == ("simulated" in evidence)
    assert ("dummy:accel, nobody promises that" in lines) == ("measured" in evidence)


def test_nothing_started_is_said(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    absent = {"dummy:accel": {"target": "dummy:accel", "available": False, "why": "not installed"}}
    Writer(path, {"scope": {"targets": [], "cases": [], "selected": 0}, "targets": absent}).close(complete=True)
    merged = matrix(path)
    for text in (terminal.render(merged), terminal.render(merged, compact=True), markdown.render(merged)):
        assert "No target started" in text
        assert "not installed" in text
    assert "not installed" in html.render(merged)
