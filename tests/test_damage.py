"""Records from anywhere: whatever stands in one, every verb shows it or says in one sentence why it can't."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import cases
from reports import answer_by_version, history, html, markdown, terminal
from reports.record import Record, Writer, read
from reports.style import Style
from reports.visible import visible
from tests import sample
from tests.damage import ask, damaged, write
from tests.pairs import edited, written
from tests.sample import lines, matrix, one_cell
from tests.test_page import Page

CASE, WORKS = "scalars/one-element/host-accelerator/left", "placement/add/device-device"
#: What a terminal would obey, and text must not contain.
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J\rover\u202e \x00\ud800"
#: Damaged records of each seed.
ROUNDS = 30


def _loads(text: str) -> Any:
    def constant(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=constant)


def check(path: Path, case: str, target: str) -> None:
    """Ask every verb about a record; what comes out is text, JSON or a page, or one sentence."""
    page, data = path.with_suffix(".html"), path.with_suffix(".json")
    for arguments in (
        ["show", path], ["show", path, "--json"], ["matrix", path], ["matrix", path, "--full", "--deviations-first", "--width", 60],
        ["matrix", path, "--format", "markdown", "--deviations-first"], ["matrix", path, "--format", "json"],
        ["matrix", path, "--format", "html", "--output", page], ["matrix", path, "--format", "json", "--output", data],
        ["explain", case, "--record", path, "--target", target], ["explain", case, "--record", path, "--target", target, "--script"],
    ):  # fmt: skip
        status, out, err = ask(*arguments)
        assert not STEERS.search(out + err), arguments
        if status:
            assert (status, out, err.count("\n")) == (2, "", 1), arguments
            assert err.startswith(f"python -m reports {arguments[0]}: "), arguments
        elif "--output" in arguments:
            assert Page(page.read_text("utf-8")).data if "html" in arguments else _loads(data.read_text("utf-8"))
        elif "json" in arguments or "--json" in arguments:
            _loads(out)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_damaged_record_is_shown_or_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("reports.verbs.catalogue", cases.catalogue)  # the contracts are in order, once is enough
    whole = lines(sample.record(tmp_path / "r.jsonl", ["accel", "no-peer"], [CASE, "moving/equality/accelerator-peer"]))
    rng = random.Random(seed)  # noqa: S311  a choice that can be repeated, not a secret
    for number in range(ROUNDS):
        found = damaged(whole, rng)
        try:
            check(write(tmp_path / "damaged.jsonl", found), CASE, "dummy:accel")
        except Exception as error:
            raise AssertionError(f"record {number} of seed {seed}: {found}") from error


# --- what would steer a terminal -------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Write a record in which every text of a framework holds what a terminal would obey."""
    facts = sample.target("accel", version=HOSTILE, build={"flavour": HOSTILE})
    names = {f"dummy:accel{HOSTILE}": facts, "dummy:gpu": {"target": "dummy:gpu", "available": False, "why": HOSTILE}}
    error = {"type": f"Error{HOSTILE}", "module": "", "bases": [], "text": f"{HOSTILE}\n{HOSTILE}"}
    cell = sample.cell("accel", CASE, target=f"dummy:accel{HOSTILE}", stale=HOSTILE, why=HOSTILE, verdict="deviates")
    cell = {**cell, "facets": {HOSTILE: HOSTILE, "error.type": error["type"]}, "observation": {"steps": {"s3": {"error": error}}}}
    header = {**lines(one_cell(tmp_path / "plain.jsonl", sample.cell("accel", CASE)))[0], "targets": names}
    footer = {"type": "footer", "complete": False, "cells": 1, "missing": 1, "finished": "", "why": HOSTILE}
    return write(tmp_path / "hostile.jsonl", [header, cell, footer])


def test_no_view_lets_a_text_of_a_record_steer_the_terminal(hostile: Path) -> None:
    assert STEERS.search(json.loads(hostile.read_text("utf-8").splitlines()[1])["why"])
    check(hostile, CASE, "dummy:*")
    for arguments in (["show", hostile], ["matrix", hostile], ["explain", CASE, "--record", hostile]):
        status, out, err = ask(*arguments)
        assert (status, STEERS.search(out + err)) == (0, None)
        assert r"\x1b[31mred\x1b]0;title\x07 \x9b2J over\u202e \x00\ud800" in " ".join(out.split())


def test_only_the_suites_own_colours_reach_a_terminal(hostile: Path) -> None:
    merged = matrix(hostile)
    for compact in (False, True):
        text = terminal.render(merged, Style(200, colour=True), compact=compact, deviations_first=True)
        assert "\x1b[31m" not in text
        assert not STEERS.search(re.sub(r"\x1b\[(1|2|32|36|33|35|1;31|1;33|1;7;31|0)m", "", text))
    assert not STEERS.search(markdown.render(merged, deviations_first=True))


def test_what_a_record_says_is_kept_as_it_is_in_json(hostile: Path) -> None:
    (cell,) = _loads(ask("show", hostile, "--json")[1])
    assert cell["why"] == HOSTILE
    assert _loads(ask("matrix", hostile, "--format", "json")[1])["rows"][0]["cells"].popitem()[1]["why"] == HOSTILE
    assert HOSTILE in Page(html.render(matrix(hostile))).data["texts"]


@pytest.mark.parametrize(("text", "shown"), [("a\x1b\n\t", r"a\x1b\n\t"), ("\x7f\x9b", r"\x7f\x9b"), ("\u202e\ud800", r"\u202e\ud800")])
def test_what_steers_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible("é ✓ → 漢 \U0001f600") == "é ✓ → 漢 \U0001f600"


# --- single damages --------------------------------------------------------------------------------


def test_no_view_of_a_history_lets_a_text_steer_the_terminal(tmp_path: Path) -> None:
    records: list[Record] = []
    for version, device in (("1.0", "accelerator"), (f"2.0{HOSTILE}", HOSTILE)):
        cell = edited(sample.cell("accel", WORKS), "result", role=None, device=device)
        records.append(read(written(tmp_path / f"{len(records)}.jsonl", [cell], target=f"dummy:accel{HOSTILE}", version=version)))
    found = history.build(records)
    for text in (
        answer_by_version.terminal(found, Style(), full=True),
        answer_by_version.markdown(found, full=True),
        answer_by_version.json_text(found, full=True),
    ):
        assert "2.0" in text
        assert not STEERS.search(text)


def test_what_only_escapes_can_write_is_written_to_a_file(tmp_path: Path) -> None:
    cells = [sample.cell("accel", WORKS), edited(sample.cell("accel", WORKS), "result", role=None, device=HOSTILE)]
    targets = {f"dummy:{name}": sample.target("accel", target=f"dummy:{name}") for name in ("one", "other")}
    writer = Writer(tmp_path / "r.jsonl", {"scope": {"targets": ["dummy:*"], "cases": ["*"], "selected": 2}, "targets": targets})
    for name, cell in zip(targets, cells, strict=True):
        writer.write({**cell, "target": name})
    writer.close(complete=True)
    output = tmp_path / "port.json"
    assert ask("port", *targets, "--record", tmp_path / "r.jsonl", "--json", "--output", output)[0] == 0
    assert "result.device" in str(_loads(output.read_text("utf-8")))


def test_a_device_in_another_language_is_shown_as_text(tmp_path: Path) -> None:
    written = "Device::vulkan(DeviceKind::DefaultDevice)"
    roles = {role: {**facts, "expression": written} for role, facts in sample.target("accel")["roles"].items()}
    path = sample.record(tmp_path / "r.jsonl", ["accel"], [CASE], framework="torch", adapter=None, roles=roles)
    text = f"it can't be written as plain code (the worker writes a device as {written!r})"
    assert text in ask("explain", CASE, "--record", path, "--target", "dummy:accel")[1]
    status, out, err = ask("explain", CASE, "--record", path, "--target", "dummy:accel", "--script")
    assert (status, out) == (2, "")
    assert text in err
    assert Page(html.render(matrix(path))).data["columns"][0]["roles"]["host"]["expression"] == written


def test_a_framework_that_is_not_known_here_is_explained_all_the_same(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl", ["accel"], [CASE], framework="elsewhere", adapter=None)
    for arguments in (["--target", "dummy:accel"], []):
        status, out, _ = ask("explain", CASE, "--record", path, *arguments)
        assert status == 0
        assert "\nelsewhere\n  no contract speaks of it\n\n# no code to show: no adapter for elsewhere is known here\n" in out


def test_phrases_for_other_arguments_are_said(tmp_path: Path) -> None:
    phrases = {"tensor": "Tensor::new({9})", "mul": "{name 0} * {kind 1}", "full": "{rank 0}", "let": "let {5};", "barrier": "{1}"}
    for without in ("", "let", "tensor"):
        kept = {name: text for name, text in phrases.items() if name != without}
        path = sample.record(tmp_path / "r.jsonl", ["accel"], [CASE], framework="elsewhere", adapter=None, phrases=kept)
        assert Page(html.render(matrix(path))).open == []
        assert "incomplete: " in ask("explain", CASE, "--record", path, "--target", "dummy:accel")[1]


def test_columns_that_nothing_tells_apart_stay_two(tmp_path: Path) -> None:
    for changes in ({"label": "old"}, {"build": {"flavour": "plain", "x": "no y"}}):
        both = matrix(sample.record(tmp_path / "a.jsonl", ["accel"]), sample.record(tmp_path / "b.jsonl", ["accel"], **changes))
        assert len({column.key for column in both.columns}) == 2
        assert len(both.to_json()["rows"][0]["cells"]) == 2


def test_many_outcomes_with_one_beginning_have_short_forms(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl", ["accel"], [CASE])
    head, cell, foot = lines(path)
    many = [{**cell, "case": f"time/n{n}", "answer": f"moves-elsewhere-{n}"} for n in range(300)]
    check(write(path, [head, *many, {**foot, "cells": len(many)}]), CASE, "dummy:accel")
