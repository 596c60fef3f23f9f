"""The adapter in the guide works as it stands there, with a framework of thirty lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reports.record import read

ROOT = Path(__file__).parent.parent
TOY = '''
"""Arrays as flat lists; there is a GPU, and operands must be on one device."""
__version__ = "0.1"


class Device(str):
    pass


class Array:
    def __init__(self, flat, shape, dtype, device):
        self.flat, self.shape, self.dtype, self.device = list(flat), tuple(shape), dtype, device

    def tolist(self):
        return self.flat

    def reshape(self, shape):
        return Array(self.flat, shape, self.dtype, self.device)

    def to(self, device):
        return self if device == self.device else Array(self.flat, self.shape, self.dtype, device)

    def __add__(self, other):
        if other.device != self.device:
            raise ValueError(f"add: {self.device} and {other.device}")
        return Array([x + y for x, y in zip(self.flat, other.flat)], self.shape, self.dtype, self.device)


def has_gpu():
    return True


def array(values, dtype, device):
    shape, flat = [], values
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0]
    flat = values
    for _ in shape[1:]:
        flat = [item for row in flat for item in row]
    return Array(flat, shape, dtype, device)


def full(shape, value, dtype, device):
    count = 1
    for edge in shape:
        count *= edge
    return Array([value] * count, shape, dtype, device)


def arange(start, stop, dtype, device):
    return Array(range(start, stop), (stop - start,), dtype, device)
'''

pytestmark = pytest.mark.slow


def test_the_guides_adapter_is_asked_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "add-a-target.md").read_text(encoding="utf-8")
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "toy_adapter.py").write_text(guide.split("```python\n")[1].split("```")[0])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    record = tmp_path / "record.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", f"--record={record}", "--adapter", "toy=toy_adapter:Toy", "--target", "toy:*"]
    command += ["--case", "placement/add/*", "--case", "moving/to-same/object", "--case", "placement/matmul/*"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    kept = read(record)
    answers = {case: cell.answer or cell.status for (target, case), cell in kept.cells.items() if target == "toy:gpu"}
    assert kept.targets["toy:gpu"].version == "0.1"
    assert answers["placement/add/device-device"] == "works"
    assert answers["placement/add/host-accelerator"] == "raises"
    assert answers["placement/add/accelerator-peer"] == "not-applicable"
    assert answers["moving/to-same/object"] == "same-object"
    assert answers["placement/matmul/device-device"] == "not-offered"
