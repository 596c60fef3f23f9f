"""Several releases in one run have a record each, and what is asked again is added to its record."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.asking import Asker, together
from reports.record import Writer, read
from tests import sample
from tests.pairs import asked, written

ADD, MIXED = "placement/add/device-device", "placement/add/host-accelerator"


@pytest.mark.parametrize("complete", [True, False])
def test_releases_that_one_run_asked_have_a_record_each_or_are_asked_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    askers = [Asker(f"dummy {one}", (f"{one}=dummy:accel@python",), tmp_path / "made" / f"{one}.jsonl") for one in ("1.0", "2.0")]
    said: list[tuple[str, tuple[str, ...]]] = []

    def run(self: Asker, what: str, _words: list[str], record: Path) -> None:
        said.append((what, self.options))
        targets = {name: sample.target("accel", target=name, version=name.partition("=")[0]) for name in self.selectors}
        writer = Writer(record, {"scope": {"targets": list(targets), "cases": ["*"], "selected": 4}, "targets": targets})
        for cell in (sample.cell("accel", case, target=name) for case in (ADD, MIXED) for name in targets):
            writer.write(cell)
        writer.close(complete=complete, missing=0 if complete else 1, why="" if complete else "interrupted")

    monkeypatch.setattr(Asker, "_run", run)
    assert together(askers) is complete
    assert said == [("dummy 1.0 and dummy 2.0", ("--at-once=2",))]
    assert all(asker.record.exists() is complete for asker in askers)
    for version, asker in zip(("1.0", "2.0"), askers if complete else (), strict=False):
        found = read(asker.record)
        assert (found.complete, found.scope["targets"], found.scope["selected"]) == (True, list(asker.selectors), 2)
        assert [target.version for target in found.targets.values()] == [version]
        assert list(found.cells) == [(asker.selectors[0], ADD), (asker.selectors[0], MIXED)]


def test_what_is_asked_again_is_asked_so_often_and_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = "time/loop/matmul"
    asker = Asker("dummy", ("dummy:accel",), written(tmp_path / "1.0.jsonl", asked("accel", loop)))
    said: list[list[str]] = []

    def run(_self: Asker, _what: str, words: list[str], record: Path) -> None:
        said.append(words)
        written(record, asked("blocks", loop))

    monkeypatch.setattr(Asker, "_run", run)
    asker.again([("dummy:accel", loop)], times=1)
    assert said == [[f"cases/__init__.py::dummy:accel::{loop}", "--repeat", "1"]]
    assert len(read(asker.record).cells["dummy:accel", loop].answers) == 2
