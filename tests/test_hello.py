"""A worker's hello of another form than the protocol's: one line says why its targets are not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.hello import misfit
from tests.damage import ask

ROLE = {"name": "cpu", "expression": "'cpu'", "evidence": "measured"}
HELLO: dict[str, Any] = {
    "type": "hello", "protocol": 1, "framework": "numpy", "version": "1", "build": {}, "machine": {"python": "3.9"}, "environment": {},
    "environments": {}, "operations": ["add"], "dtypes": [],
    "devices": {"cpu": {"available": True, "roles": {"host": ROLE}}, "gpu": {"available": False, "why": "none"}},
}  # fmt: skip
PROGRAM = """
import json, sys
print("ready", flush=True)
sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if asked["type"] == "bye":
        break
    print(json.dumps({**json.loads(HELLO), "id": asked["id"]}), flush=True)
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"build": {"cuda": 13}}, "build is {'cuda': 13}"),
        ({"operations": [["add"]]}, "operations is [['add']]"),
        ({"devices": {"cpu": {"available": False}}}, "device cpu is {'available': False}"),
        ({"devices": {"cpu": {"available": True, "roles": {}, "spelled": {"absent/object": 5}}}}, "device cpu is {'available': True, "),
    ],
)  # fmt: skip
def test_what_a_record_could_not_hold_is_named(change: dict[str, Any], says: str) -> None:
    assert misfit(HELLO) == ""
    assert misfit({**HELLO, **change}).startswith(says)


def test_nobody_waits_for_a_worker_whose_hello_does_not_fit(tmp_path: Path) -> None:
    worker = tmp_path / "worker"
    worker.write_text(f"#!{sys.executable} -u\nHELLO = {json.dumps({**HELLO, 'devices': []})!r}\n{PROGRAM}")
    worker.chmod(0o755)
    status, out, err = ask("targets", f"numpy:cpu@{worker}")
    assert (status, err.count("\n")) == (2, 1)
    assert "its hello isn't made as the protocol says: devices is []" in out
