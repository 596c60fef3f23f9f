"""Writing a record: the header at once, each line whole, the footer at the end, one run for one file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cases import catalogue
from cases.judge import STATUSES, judge
from reports import writer as writing
from reports.record import RecordError, Writer, default_path, read
from tests import sample
from tests.sample import ROOT, lines

VALIDATOR = Draft202012Validator(json.loads((ROOT / "reports" / "record.schema.json").read_text("utf-8")))


def test_every_line_of_a_record_fits_the_schema(tmp_path: Path) -> None:
    found = lines(sample.record(tmp_path / "r.jsonl"))
    assert [line["type"] for line in found] == ["header", *["cell"] * len(sample.KINDS) * len(sample.CASES), "footer"]
    for line in found:
        VALIDATOR.validate(line)


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "answered"])
def test_a_cell_without_an_answer_fits_the_schema(status: str) -> None:
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
    path = tmp_path / "new-folder" / "r.jsonl"
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


def test_one_missing_folder_is_made_and_more_are_a_mistyped_path(tmp_path: Path) -> None:
    Writer(tmp_path / "new" / "r.jsonl", sample.header()).close(complete=False)
    with pytest.raises(RecordError, match=rf"can't be written \(there is no folder {re.escape(str(tmp_path))}/nwe\)"):
        Writer(tmp_path / "nwe" / "new" / "r.jsonl", sample.header())
    assert not (tmp_path / "nwe").exists()


def test_an_older_record_is_there_until_the_new_one_has_a_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sample.record(tmp_path / "r.jsonl")
    before = path.read_bytes()

    def interrupted(_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "case_set", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Writer(path, {**sample.header(), "case_set": ""})
    assert path.read_bytes() == before
