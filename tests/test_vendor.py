"""Another vendor's PyTorch backend is a target without an adapter of its own, found or asked for by name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from reports.record import Record, read

ROOT = Path(__file__).parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
#: A backend that PyTorch loads by itself; it has a device and no operation at all.
BACKEND = """
def load():
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend("vendor")
"""


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the backend, with the entry point that vendors announce it by."""
    info = tmp_path / "vendor_backend-1.0.dist-info"
    info.mkdir()
    (tmp_path / "vendor_backend.py").write_text(BACKEND)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nvendor = vendor_backend:load\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "record.jsonl"


def ask(record: Path, target: str) -> Record:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"--record={record}",
        "--target",
        target,
        "--case",
        "moving/equality/*",
        "--case",
        "placement/add/*",
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode in (0, 1), done.stdout
    return read(record)


@pytest.mark.parametrize("target", ["torch:vendor", "torch:*"])
def test_a_vendors_device_type_is_a_target(vendor: Path, target: str) -> None:
    record = ask(vendor, target)
    cells = record.cells
    assert record.targets["torch:vendor"].evidence == "measured"
    assert cells[("torch:vendor", "moving/equality/same-spelling")].answer == "equal"
    # It has no operations, and says so itself: an operand can't be made, so adding is not answered.
    add = cells[("torch:vendor", "placement/add/device-device")]
    assert add.status == "inconclusive"
    assert "vendor" in add.why
