"""Records: what is written is what is read, and what is broken is said in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cases.judge import STATUSES
from reports import writer as writing
from reports.cells import Cell, Target
from reports.record import SCHEMA, Record, RecordError, Writer, default_path, read
from tests import sample

ROOT = Path(__file__).parent.parent
VALIDATOR = Draft202012Validator(json.loads((ROOT / "reports" / "record.schema.json").read_text("utf-8")))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def replaced(path: Path, number: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Change one line (from 1) of a record."""
    found = lines(path)
    found[number - 1] = change(found[number - 1])
    path.write_text("".join(json.dumps(line) + "\n" for line in found))
    return path


# --- writing -------------------------------------------------------------------------------------


def test_every_line_of_a_record_fits_the_schema(tmp_path: Path) -> None:
    found = lines(sample.record(tmp_path / "r.jsonl"))
    assert [line["type"] for line in found] == ["header", *["cell"] * len(sample.KINDS) * len(sample.CASES), "footer"]
    for line in found:
        VALIDATOR.validate(line)


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "answered"])
def test_a_cell_without_an_answer_fits_the_schema(status: str) -> None:
    from cases import catalogue
    from cases.judge import judge

    cell = judge(catalogue()[sample.CASES[0]], sample.target("accel"), {"status": status, "why": "so it was"})
    VALIDATOR.validate(cell)


@pytest.mark.parametrize(
    "change",
    [
        {"answer": None}, {"class": None}, {"verdict": "fine"}, {"status": "passed"}, {"evidence": "recorded"}, {"program": "xyz"},
        {"status": "crashed", "why": "died"}, {"colour": "blue"}, {"answers": ["works"]},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_is_no_cell(change: dict[str, Any]) -> None:
    good = sample.cell("accel", sample.CASES[0])
    assert VALIDATOR.is_valid(good)
    assert not VALIDATOR.is_valid({**good, **change})


def test_the_schema_refuses_a_header_that_hides_why_a_target_is_absent(tmp_path: Path) -> None:
    header = lines(sample.record(tmp_path / "r.jsonl"))[0]
    header["targets"]["torch:cuda"] = {"target": "torch:cuda", "available": False, "why": "no CUDA device"}
    assert VALIDATOR.is_valid(header)
    header["targets"]["torch:cuda"]["why"] = ""
    assert not VALIDATOR.is_valid(header)


def test_the_header_is_there_before_the_first_cell_and_each_cell_at_once(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "that" / "is-new" / "r.jsonl"
    writer = Writer(path, sample.header())
    assert [line["type"] for line in lines(path)] == ["header"]
    writer.write(sample.cell("accel", sample.CASES[0]))
    assert [line["type"] for line in lines(path)] == ["header", "cell"]
    writer.close(complete=False, missing=20, why="interrupted")


def test_a_line_is_written_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path / "r.jsonl", sample.header())
    pieces: list[bytes] = []
    real = os.write

    def write(file: int, data: bytes) -> int:
        pieces.append(bytes(data))
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    writer.write(sample.cell("accel", sample.CASES[0]))
    writer.close(complete=False, missing=20)
    assert len(pieces) == 2
    assert all(piece.endswith(b"\n") and piece.count(b"\n") == 1 for piece in pieces)


def test_a_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(path, sample.header(["accel"], sample.CASES[:1]))
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:100]))
    writer.write(sample.cell("accel", sample.CASES[0]))
    writer.close(complete=True)
    assert read(path).complete


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(path, sample.header(sample.KINDS, [f"time/thread{n}/{m}" for n in range(8) for m in range(40)]))

    def work(n: int) -> None:
        for m in range(40):
            writer.write(sample.cell("accel", sample.CASES[0], case=f"time/thread{n}/{m}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (writer.cells, writer.answered) == (320, 320)
    writer.close(complete=True)
    assert len(read(path).cells) == 320


def test_only_behaviour_counts_as_answered(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "r.jsonl", sample.header())
    writer.write(sample.cell("no-peer", "moving/equality/accelerator-peer"))
    assert (writer.cells, writer.answered) == (1, 0)
    writer.write(sample.cell("accel", sample.CASES[0], status="crashed", answer=None, **{"class": None}, why="died"))
    assert (writer.cells, writer.answered) == (2, 1)
    writer.close(complete=True)


def test_after_the_footer_nothing_is_written(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    writer = Writer(tmp_path / "other.jsonl", sample.header())
    writer.close(complete=True)
    before = (tmp_path / "other.jsonl").read_bytes()
    writer.write(sample.cell("accel", sample.CASES[0]))
    writer.close(complete=True)
    assert (tmp_path / "other.jsonl").read_bytes() == before
    assert read(path).complete


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = Writer(path, sample.header())
    with pytest.raises(RecordError, match=r"another run is writing to .*; give this one another --record"):
        Writer(path, sample.header())
    first.close(complete=False)
    Writer(path, sample.header()).close(complete=False)  # the control: once it is closed it may be replaced


def test_two_processes_get_different_default_names() -> None:
    code = "from reports.record import default_path; print(default_path())"
    names = {subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith(str(default_path().parent)) for name in names)


def test_the_last_record_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "OUT", tmp_path)
    monkeypatch.setattr(writing, "LATEST", tmp_path / "latest.jsonl")
    sample.record(tmp_path / "one.jsonl", ["accel"])
    assert set(read(tmp_path / "latest.jsonl").targets) == {"dummy:accel"}
    sample.record(tmp_path / "two.jsonl", ["no-peer"])
    assert set(read(tmp_path / "latest.jsonl").targets) == {"dummy:no-peer"}
    sample.record(tmp_path / "elsewhere" / "three.jsonl", ["accel"])
    assert set(read(tmp_path / "latest.jsonl").targets) == {"dummy:no-peer"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "latest.jsonl", "one.jsonl", "two.jsonl"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"^the record .* can't be written \(.+\); give --record a path in a folder that can$"):
        Writer(tmp_path / "file" / "r.jsonl", sample.header())


def test_what_json_cannot_hold_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(path, sample.header(["accel"], sample.CASES[:1]))
    writer.write(sample.cell("accel", sample.CASES[0], facets={"ratio": float("nan"), "text": "\udcff <&> \u2028"}))
    writer.close(complete=True)
    assert b"NaN" not in path.read_bytes()
    (cell,) = read(path).cells.values()
    assert cell.facets["ratio"] == "nan"


# --- reading -------------------------------------------------------------------------------------


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
        (lambda line: {**line, "type": "cel"}, r"line 3 is damaged \(neither a cell nor a footer\)"),
        (lambda line: {k: v for k, v in line.items() if k != "status"}, r"line 3 is damaged \(the cell lacks 'status'\)"),
        (lambda line: {**line, "status": "passed"}, r"line 3 is damaged"),
        (lambda line: {**line, "facets": None}, r"line 3 is damaged \(the cell lacks 'facets'\)"),
        (lambda line: {**line, "target": "torch:cuda"}, r"line 3 is damaged \(target 'torch:cuda' is not in the header\)"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, change: Any, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        read(replaced(sample.record(tmp_path / "r.jsonl"), 3, change))


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*data[:5], b'{"type": "cell", "tar\n', *data[6:]]))
    with pytest.raises(RecordError, match=r"line 6 is damaged \(not JSON\)"):
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
cells = st.builds(
    Cell, target=st.just("dummy:accel"), case=texts, program=texts, status=st.sampled_from(STATUSES), answer=st.none() | texts,
    kind=st.sampled_from([None, "works", "refuses", "wrong", "neutral"]), facets=st.dictionaries(texts, plain, max_size=4),
    evidence=st.sampled_from(["measured", "simulated", "documented"]), verdict=st.none() | texts, norm=st.none() | texts, why=texts,
    stale=texts, seconds=st.none() | st.floats(0, 1e6), answers=st.lists(texts, max_size=3).map(tuple),
    observation=st.none() | st.dictionaries(texts, plain, max_size=3),
)  # fmt: skip
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
