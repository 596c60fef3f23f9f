"""How deviations are told in a terminal: once, with the promise that they break, and labels that break where a reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import catalogue, contract
from reports import terminal
from reports.headline import promised
from reports.matrix import build
from reports.record import Writer, read
from reports.style import folded
from tests import sample


@pytest.mark.parametrize(
    ("label", "width", "lines"),
    [
        ("2 × */device: buffer/aligned, buffer-waited/aligned", 27, ["2 × */device:", "  buffer/aligned,", "  buffer-waited/aligned"]),
        ("2 × scoped/accelerator-host/*: left, right", 24, ["2 × scoped/", "  accelerator-host/*:", "  left, right"]),
        ("zero-dim/host-accelerator/left", 20, ["zero-dim/", "  host-accelerator/", "  left"]),
        ("an-uncommonly-long-name-of-one", 20, ["an-uncommonly-long-", "  name-of-one"]),
    ],
)
def test_a_label_is_broken_where_a_reader_would(label: str, width: int, lines: list[str]) -> None:
    assert folded(label, width) == lines
    assert len(folded(label, width, 1)) == 1
    assert folded(label, width, 1)[0].endswith(" …")


def test_targets_that_break_the_same_promise_are_told_together(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "r.jsonl", sample.header(["accel", "no-peer"], sample.CASES[:2]))
    for kind, case in (("accel", sample.CASES[0]), ("no-peer", sample.CASES[0]), ("accel", sample.CASES[1])):
        writer.write(sample.cell(kind, case, verdict="deviates"))
    writer.close(complete=False, missing=1)
    text = terminal.render(build([read(tmp_path / "r.jsonl")]), deviations_first=True)
    assert text.count("dummy:accel (simulated), dummy:no-peer (simulated), nobody promises that\n") == 1
    assert text.count(f": {sample.CASES[0]}\n") == 1
    assert text.count(f"dummy:accel (simulated), nobody promises that\n    ✓ works: {sample.CASES[1]}\n") == 1


def test_what_was_promised_is_told_with_its_reason(tmp_path: Path) -> None:
    promises = contract.contract_for("torch").promises
    name, entry = next((c, e) for c in catalogue() for e in promises if e.answers and e.names(c) and e.applies("cuda", "2.15"))
    facts = {"framework": "torch", "device": "cuda", "version": "2.15"}
    writer = Writer(tmp_path / "r.jsonl", sample.header(["accel"], [name], **facts))
    writer.write(sample.cell("accel", sample.CASES[0], case=name, verdict="deviates"))
    writer.close(complete=True)
    ((column, cell),) = ((column, cell) for column, cell in build([read(tmp_path / "r.jsonl")]).cells() if cell.case == name)
    first = contract.contract_for("torch").promise(name, "cuda", "2.15")
    assert first is not None
    assert promised(column, cell) == f"{first.strength} is {' or '.join(first.answers)}: {first.says} ({first.source})"
    assert entry.answers
