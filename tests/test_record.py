"""Reading a record: what is written is what is read, and what is broken is said in one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.answers import CLASSES
from cases.contract import VERDICTS
from cases.judge import BEHAVIOUR, EVIDENCE, STATUSES
from reports.cells import Cell, Target
from reports.record import SCHEMA, Record, RecordError, Writer, read
from tests import sample
from tests.sample import ROOT, lines


def replaced(path: Path, number: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Change one line (from 1) of a record."""
    found = lines(path)
    found[number - 1] = change(found[number - 1])
    path.write_text("".join(json.dumps(line) + "\n" for line in found))
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    record = read(sample.record(tmp_path / "r.jsonl"))
    assert record.complete
    assert record.warning == ""
    assert record.missing == 0
    assert len(record.case_set) == 16
    assert record.cells["dummy:accel", "moving/to-same/object"].answer == "same-object"
    assert record.cells["dummy:no-peer", "moving/equality/accelerator-peer"].outcome == "not-applicable"
    assert record.targets["dummy:accel"].to_json() == sample.target("accel")
    for (name, case), cell in record.cells.items():
        assert cell.to_json() == sample.cell(name.partition(":")[2], case)


def test_a_line_for_a_cell_that_is_there_is_current_and_the_answers_add_up(tmp_path: Path) -> None:
    path, case = tmp_path / "r.jsonl", "moving/to-same/object"
    writer = Writer(path, sample.header(["accel"], [case]))
    for answer in ("same-object", "same-object", "copy"):
        writer.write(sample.cell("accel", case, answer=answer))
    writer.close(complete=True)
    (cell,) = read(path).cells.values()
    assert (cell.answer, cell.answers) == ("copy", ("same-object", "copy"))


def test_asked_twice_with_one_answer_is_one_answer(tmp_path: Path) -> None:
    path, case = tmp_path / "r.jsonl", "moving/to-same/object"
    writer = Writer(path, sample.header(["accel"], [case]))
    for _ in range(2):
        writer.write(sample.cell("accel", case))
    writer.close(complete=True)
    (cell,) = read(path).cells.values()
    assert cell.answers == ()


def test_a_killed_run_leaves_a_record_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    code = (
        "import os, sys; from pathlib import Path; from tests import sample; from reports.record import Writer\n"
        "w = Writer(Path(sys.argv[1]), sample.header())\n"
        "w.write(sample.cell('accel', sample.CASES[0])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=False)
    record = read(path)
    assert not record.complete
    assert record.missing == len(sample.KINDS) * len(sample.CASES) - 1
    assert "has no footer" in record.why
    assert record.warning.startswith("r.jsonl is incomplete, 20 cells are missing: ")


def test_a_record_cut_in_the_middle_of_a_line_keeps_what_is_whole(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(data[:4]) + data[4][:50])
    record = read(path)
    assert (record.complete, len(record.cells)) == (False, 3)
    assert "in the middle of a line" in record.why


def test_a_run_that_was_stopped_says_why(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Writer(path, sample.header()).close(complete=False, missing=21, why="interrupted")
    assert read(path).warning == "r.jsonl is incomplete, 21 cells are missing: interrupted"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", r"is empty: .*run it again"),
        (b"\n\n", r"is empty: .*run it again"),
        (b"target,case\n", r"is no record of this suite .*name a file that `pytest --record` wrote"),
        (b"\x7fELF\x00\xff\xfe", r"is no record of this suite"),
        (b"[1, 2]\n", r"is no record of this suite"),
        (b'{"type": "cell"}\n', r"is no record of this suite"),
        (b'{"type": "header", "schema": "1"}\n', r"is no record of this suite"),
        (b'{"type": "header", "schema": 1}\n', r"line 1 is damaged \(the header lacks 'suite'\)"),
        (b'{"type": "header", "schema": true}\n', r"is no record of this suite"),
        (b'{"type": "header", "schema": -1}\n', r"is no record of this suite"),
        (b"[" * 100_000, r"is no record of this suite"),
        (b'{"type": "header", "schema": 99}\n', rf"has schema 99 and this suite reads up to {SCHEMA}: read it with the suite that wr"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=says):
        read(path)


def test_a_missing_record_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no record at .*nope.jsonl: `pytest -n auto --record=.*nope.jsonl` makes one"):
        read(tmp_path / "nope.jsonl")
    with pytest.raises(RecordError, match=r"can't be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"type": "cel"}, "neither a cell nor a footer"),
        ({"status": ...}, "the cell lacks 'status'"),
        ({"status": "passed"}, "the cell has 'passed' as 'status'"),
        ({"facets": None}, "the cell lacks 'facets'"),
        ({"target": "torch:cuda"}, "target 'torch:cuda' is not in the header"),
        ({"target": 5}, "the cell has 5 as 'target'"),
        ({"case": "area onclick=x/y"}, "the cell has 'area onclick=x/y' as 'case'"),
        ({"answer": "-"}, "the cell has '-' as 'answer' of what is answered"),
        ({"answer": None}, "the cell has None as 'answer' of what is answered"),
        ({"status": "not-run"}, "the cell has 'works' as 'answer' of what is not-run"),
        ({"status": "crashed", "answer": None}, "the cell has 'works' as 'class'"),
        ({"class": None}, "the cell lacks 'class'"),
        ({"verdict": "fine"}, "the cell has 'fine' as 'verdict'"),
        ({"norm": None}, "the cell lacks 'norm'"),
        ({"status": "not-run", "answer": None, "class": None}, "the cell has 'unpinned' as 'verdict'"),
        ({"evidence": []}, "the cell has [] as 'evidence'"),
        ({"seconds": -1}, "the cell has -1 as 'seconds'"),
        ({"seconds": True}, "the cell has True as 'seconds'"),
        ({"answers": ["works", 5]}, "the cell has ['works', 5] as 'answers'"),
        ({"observation": None}, "the cell lacks 'observation'"),
        ({"observation": {"steps": []}}, "the cell has [] as 'steps'"),
        ({"observation": {"steps": {"s1": 5}}}, "the cell has 5 as 's1'"),
        ({"observation": {"steps": {"s1": {"error": {"type": "E"}}}}}, "the cell lacks 'text'"),
        ({"observation": {"steps": {}, "drain": {"error": 5}}}, "the cell has 5 as 'error'"),
        ({"observation": {"steps": {"s1": {"value": None}}}}, "the cell lacks 'value'"),
        ({"observation": {"steps": {"s1": {"value": {"size": "9"}}}}}, "the cell has '9' as 'size'"),
        ({"observation": {"steps": {"s1": {"warnings": [{"category": 5}]}}}}, "the cell has 5 as 'category'"),
        ({"facets": {"deep": json.loads("[" * 70 + "]" * 70)}}, "it is nested too deeply"),
        ({"facets": {"ratio": float("nan")}}, "it is no JSON"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = replaced(sample.record(tmp_path / "r.jsonl"), 2, lambda line: {k: v for k, v in {**line, **change}.items() if v is not ...})
    with pytest.raises(RecordError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}, line 2 is damaged ({says}); take the file from where it came once more, or ")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"build": {"cuda": 13}}, "the header has 13 as 'cuda'"),
        ({"environment": []}, "the header has [] as 'environment'"),
        ({"dtypes": [None]}, "the header has [None] as 'dtypes'"),
        ({"roles": {"host": "cpu"}}, "the header has 'cpu' as 'host'"),
        ({"roles": {"host": {"name": "cpu", "expression": "'cpu'", "evidence": "x>"}}}, "the header has 'x>' as 'evidence'"),
        ({"adapter": ["a"]}, "the header has ['a'] as 'adapter'"),
        ({"spelled": {"absent/object": 5}}, "the header has 5 as 'absent/object'"),
        ({"available": False}, "the header lacks 'why'"),
    ],
)  # fmt: skip
def test_a_damaged_target_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    found = {**lines(path)[0]["targets"]["dummy:accel"], **change}
    with pytest.raises(RecordError, match=re.escape(f"line 1 is damaged ({says})")):
        read(replaced(path, 1, lambda header: {**header, "targets": {"dummy:accel": found}}))


@pytest.mark.parametrize(
    ("number", "change", "says"),
    [
        (1, {"started": "today <b>"}, "the header has 'today <b>' as 'started'"),
        (1, {"scope": {"targets": [], "cases": []}}, "the header lacks 'selected'"),
        (-1, {"complete": "yes"}, "the footer has 'yes' as 'complete'"),
        (-1, {"missing": ["a"]}, "the footer has ['a'] as 'missing'"),
    ],
)  # fmt: skip
def test_a_damaged_header_or_footer_is_named(tmp_path: Path, number: int, change: dict[str, Any], says: str) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    at = number % (len(lines(path)) + 1)
    with pytest.raises(RecordError, match=re.escape(f"line {at} is damaged ({says})")):
        read(replaced(path, at, lambda line: {**line, **change}))


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*data[:5], b'{"type": "cell", "tar\n', *data[6:]]))
    with pytest.raises(RecordError, match=r"line 6 is damaged \(it is no JSON\)"):
        read(path)


def test_lost_lines_and_lines_behind_the_footer_are_noticed(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(data[:3] + data[4:]))
    with pytest.raises(RecordError, match=r"has 20 cells but its footer counts 21"):
        read(path)
    path.write_bytes(b"".join([*data, data[1]]))
    with pytest.raises(RecordError, match=rf"line {len(data) + 1}: there is more after the footer"):
        read(path)


# --- properties ------------------------------------------------------------------------------------

texts = st.text(max_size=40)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8,
)  # fmt: skip
words = st.from_regex("[a-z0-9]{1,4}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)


def of(status: str) -> st.SearchStrategy[Cell]:
    """Build cells of a status: an answer, a class and verdicts go with some alone."""
    answered, behaves = status == "answered", status in BEHAVIOUR
    verdicts = st.sampled_from(VERDICTS) if behaves else st.none()
    observations = st.dictionaries(texts, plain, max_size=3).map(lambda more: {**more, "steps": {}, "drain": None})
    return st.builds(
        Cell, target=st.just("dummy:accel"), case=words.map("time/{}".format), program=texts, status=st.just(status),
        answer=words if answered else st.none(), kind=st.sampled_from(CLASSES) if answered else st.none(),
        facets=st.dictionaries(texts, plain, max_size=4), evidence=st.sampled_from(EVIDENCE), verdict=verdicts, norm=verdicts, why=texts,
        stale=texts, seconds=st.none() | st.floats(0, 1e6), answers=st.lists(words, max_size=3).map(tuple),
        observation=observations if answered else st.none() | observations,
    )  # fmt: skip


cells = st.sampled_from(STATUSES).flatmap(of)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(cells=st.lists(cells, max_size=5, unique_by=lambda cell: cell.case))
def test_any_cell_survives_the_round_trip(tmp_path: Path, cells: list[Cell]) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(path, sample.header(["accel"], []))
    for cell in cells:
        writer.write(cell.to_json())
    writer.close(complete=True)
    assert list(read(path).cells.values()) == cells


def sentence(path: Path) -> str | None:
    """Read a record and return what is said of it, None when it can be read."""
    try:
        record = read(path)
    except RecordError as error:
        return str(error)
    assert isinstance(record, Record)
    return None


@quick
@given(data=st.binary(max_size=300), keep=st.integers(0, 23))
def test_no_bytes_raise_anything_but_a_sentence(tmp_path: Path, data: bytes, keep: int) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:keep]) + data)
    said = sentence(path)
    assert said is None or "\n" not in said


@quick
@given(st.integers(1, 23), st.dictionaries(st.sampled_from(["type", "target", "case", "status", "facets", "targets", "cells"]), plain))
def test_no_json_raises_anything_but_a_sentence(tmp_path: Path, number: int, line: dict[str, Any]) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    said = sentence(replaced(path, number, lambda old: {**old, **line}))
    assert said is None or str(path) in said


@quick
@given(texts, texts, st.dictionaries(texts, texts), st.none() | texts)
def test_any_target_survives_the_round_trip(version: str, machine: str, environment: dict[str, str], label: str | None) -> None:
    made = Target.from_json("t", sample.target("accel", version=version, machine={"m": machine}, environment=environment, label=label))
    assert Target.from_json("t", json.loads(json.dumps(made.to_json()))) == made


def test_cells_that_are_alike_in_two_records_are_shared_and_nothing_else_is(tmp_path: Path) -> None:
    one = sample.record(tmp_path / "one.jsonl")
    text = one.read_text("utf-8").replace('"type":"cell","target":"dummy:accel"', '"type":"cell","target":"x=dummy:accel"', 3)
    other = tmp_path / "other.jsonl"
    other.write_text(text.replace('"dummy:accel":{', '"x=dummy:accel":{"available":false,"why":""},"dummy:accel":{', 1), "utf-8")
    seen: dict[bytes, Cell] = {}
    assert read(one, seen=seen).cells == read(one).cells
    assert read(other, seen=seen).cells == read(other).cells
    assert seen
    # What is observed isn't taken for the cell's own seconds, and what is no number isn't read as one.
    other.write_text(one.read_text("utf-8").replace('"why":"', '"seconds":1.2.3,"why":"', 1), "utf-8")
    with pytest.raises(RecordError, match="it is no JSON"):
        read(other, seen=seen)
