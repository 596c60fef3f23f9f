"""Recorded answers of other machines: where they are shown, with which day, and what becomes of damaged ones."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import reports.recorded
from cases import catalogue
from reports.cells import RecordError
from reports.closing import closing
from reports.matrix import Matrix, build
from reports.record import Record, read
from reports.recorded import Beside
from tests import sample
from tests.running import ask
from tests.test_matrix import Reporter


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let what is recorded be somewhere else."""
    monkeypatch.setattr(reports.recorded, "FOLDER", tmp_path / "recorded")
    (tmp_path / "recorded").mkdir()
    return tmp_path / "recorded"


def packed(path: Path, *kinds: str, started: str = "2026-01-02T03:04:05Z", **changes: Any) -> Path:
    """Write a record as it is kept: packed, and of another day."""
    plain = sample.record(path.with_suffix(""), list(kinds), **changes)
    header, rest = plain.read_text("utf-8").split("\n", 1)
    path.write_bytes(lzma.compress((json.dumps({**json.loads(header), "started": started}) + "\n" + rest).encode()))
    plain.unlink()
    return path


def shown(run: Path) -> Matrix:
    """Return the matrix of a run with what is recorded."""
    record = read(run)
    return beside(record).add(build([record]))


def beside(record: Record) -> Beside:
    """Return what a run that asked for all cases may show beside its own."""
    return Beside(record.scope["targets"], catalogue().keys())


def ran(path: Path, *selectors: str, kinds: tuple[str, ...] = ("accel",)) -> Path:
    """Write a record of a run that asked for these targets."""
    header, rest = sample.record(path, list(kinds)).read_text("utf-8").split("\n", 1)
    data = json.loads(header)
    path.write_text(json.dumps({**data, "scope": {**data["scope"], "targets": list(selectors)}}) + "\n" + rest)
    return path


def test_a_packed_record_reads_as_the_plain_one(tmp_path: Path, folder: Path) -> None:
    plain = read(sample.record(tmp_path / "a.jsonl", ["accel"]))
    assert read(packed(folder / "a.jsonl.xz", "accel")).cells == plain.cells


def test_a_packed_record_that_is_cut_is_a_sentence(folder: Path) -> None:
    path = packed(folder / "a.jsonl.xz", "accel")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(RecordError, match="can't be unpacked"):
        read(path)


def test_a_target_that_is_not_here_is_shown_with_its_day(tmp_path: Path, folder: Path) -> None:
    packed(folder / "gpu.jsonl.xz", "accel", "no-peer")
    matrix = shown(ran(tmp_path / "run.jsonl", "dummy:*"))
    assert [(column.key, column.recorded) for column in matrix.columns] == [("dummy:accel", ""), ("dummy:no-peer", "2026-01-02")]
    assert matrix.notes == (
        "dummy:no-peer: recorded on another machine on 2026-01-02, not asked in this run; --no-recorded leaves such answers out",
    )
    assert matrix.columns[1].cell("scalars/one-element/host-accelerator/left").behaves
    assert "gpu.jsonl.xz" in {name for name, _, _ in matrix.records}


@pytest.mark.parametrize("selector", ["other:*", "dummy:accel", "new=dummy:no-peer", "dummy:no-peer@/usr/bin/python3"])
def test_what_was_not_asked_for_is_not_shown(tmp_path: Path, folder: Path, selector: str) -> None:
    packed(folder / "gpu.jsonl.xz", "no-peer")
    assert [column.key for column in shown(ran(tmp_path / "run.jsonl", selector)).columns] == ["dummy:accel"]


def test_what_is_only_simulated_here_is_shown_where_it_was_measured(tmp_path: Path, folder: Path) -> None:
    roles = {name: {**facts, "evidence": "measured"} for name, facts in sample.target("accel")["roles"].items()}
    packed(folder / "gpu.jsonl.xz", "accel", "no-peer", roles=roles)
    matrix = shown(ran(tmp_path / "run.jsonl", "dummy:*"))
    assert [(column.key, column.recorded) for column in matrix.columns] == [
        ("dummy:accel", ""), ("dummy:accel (recorded)", "2026-01-02"), ("dummy:no-peer", "2026-01-02"),
    ]  # fmt: skip


def test_of_two_records_the_newer_is_shown(tmp_path: Path, folder: Path) -> None:
    packed(folder / "a.jsonl.xz", "no-peer", started="2026-03-01T00:00:00Z")
    packed(folder / "b.jsonl.xz", "no-peer", started="2026-02-01T00:00:00Z")
    assert [column.recorded for column in shown(ran(tmp_path / "run.jsonl", "dummy:*")).columns] == ["", "2026-03-01"]


def test_rows_are_those_of_the_run(tmp_path: Path, folder: Path) -> None:
    packed(folder / "gpu.jsonl.xz", "no-peer")
    record = read(ran(tmp_path / "run.jsonl", "dummy:*"))
    matrix = build([record])
    one = matrix.chosen(matrix.columns, ["placement/create/device"])
    assert list(beside(record).add(one).columns[1].cells) == ["placement/create/device"]


def test_recorded_words_are_derived_again(tmp_path: Path, folder: Path) -> None:
    path = packed(folder / "gpu.jsonl.xz", "no-peer")
    text = lzma.decompress(path.read_bytes()).decode()
    path.write_bytes(lzma.compress(text.replace('"answer":"works"', '"answer":"shines"').encode()))
    assert "shines" in {cell.answer for cell in read(path).cells.values()}
    assert "shines" not in {cell.answer for cell in shown(ran(tmp_path / "run.jsonl", "dummy:*")).columns[1].cells.values()}


def test_a_damaged_one_costs_a_note_and_not_the_page(tmp_path: Path, folder: Path) -> None:
    (folder / "bad.jsonl.xz").write_bytes(b"\xfd7zXZ\0 and no more")
    matrix = shown(ran(tmp_path / "run.jsonl", "dummy:*"))
    assert len(matrix.columns) == 1
    assert "can't be unpacked" in matrix.notes[0]


def test_one_that_is_damaged_within_costs_a_note_too(tmp_path: Path, folder: Path) -> None:
    path = packed(folder / "bad.jsonl.xz", "no-peer")
    header, first, *rest = lzma.decompress(path.read_bytes()).split(b"\n")
    path.write_bytes(lzma.compress(b"\n".join([header, first[:-9], *rest])))
    matrix = shown(ran(tmp_path / "run.jsonl", "dummy:*"))
    assert len(matrix.columns) == 1
    assert "line 2 is damaged" in matrix.notes[0]


def test_only_targets_that_are_shown_are_read(folder: Path) -> None:
    path = packed(folder / "two.jsonl.xz", "no-peer", "accel")
    some = read(path, of={"dummy:accel"})
    assert {cell.target for cell in some.cells.values()} == {"dummy:accel"}
    assert some.complete
    assert set(some.cells) == {key for key in read(path).cells if key[0] == "dummy:accel"}


def test_deviations_of_the_run_alone_are_counted_in_the_headline(tmp_path: Path, folder: Path) -> None:
    from reports.headline import headline

    packed(folder / "gpu.jsonl.xz", "no-peer")
    record = read(ran(tmp_path / "run.jsonl", "dummy:*"))
    assert headline(beside(record).add(build([record]))) == headline(build([record]))


def test_the_page_has_them_unless_they_are_left_out(tmp_path: Path, folder: Path) -> None:
    packed(folder / "gpu.jsonl.xz", "no-peer")
    path = ran(tmp_path / "run.jsonl", "dummy:*")
    for recorded in (True, False):
        reporter = Reporter()
        closing(path, reporter, recorded=beside(read(path)) if recorded else None)
        assert ("recorded 2026-01-02" in path.with_suffix(".html").read_text("utf-8")) is recorded
        assert any("dummy:no-peer: --no-recorded leaves them out" in line for line in reporter.lines) is recorded


def test_what_is_shipped_is_whole_and_of_real_devices() -> None:
    kept = sorted(Path(reports.recorded.__file__).parent.glob("*.jsonl.xz"))
    records = [read(path) for path in kept]
    assert [record.warning for record in records] == [""] * len(kept)
    targets = {name: target for record in records for name, target in record.targets.items() if target.available}
    assert {"torch:cuda", "jax:gpu", "candle:cuda", "burn:vulkan"} <= targets.keys()
    for name in ("torch:cuda", "jax:gpu", "candle:cuda", "burn:vulkan"):
        assert targets[name].evidence == "measured"
        assert any("peer" in record.targets[name].roles for record in records if name in record.targets)


def test_pytest_takes_the_option(tmp_path: Path) -> None:
    said = ask("--target=numpy:cpu", "--case=scalars/python-int/*", "--no-recorded", f"--record={tmp_path / 'r.jsonl'}")
    assert "recorded answers" not in said
