"""On a real GPU: what hangs, fails or asks for too much costs its own cell, and the GPU is left to others.

Skipped where nvidia-smi lists no GPU, or a framework finds none; one of them is asked about a hang on the host too.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters.base import GPU_SHARE
from adapters.process import Process
from adapters.targets import Spec
from reports.record import read
from tests.running import ask, pgrep, start, surroundings, until

pytestmark = pytest.mark.slow
#: Statements that fail where a target isn't here.
FINDS = {
    "torch:cuda": "import torch; torch.cuda.get_device_name(0)",
    "jax:gpu": "import jax; jax.devices('gpu')",
    "jax:cpu": "import jax",
}
#: What a healthy device answers, and what hangs before it where differences do.
HANGS, HEALTHY = "placement/sub/device-device", "placement/mul/device-device"
#: MiB of a GPU's memory that may come and go with others who use it.
SLACK = 64


def memory(what: str) -> list[int]:
    """Return the `used`, `free` or `total` memory of each GPU in MiB; of none where none is listed."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    found = subprocess.run([tool, f"--query-gpu=memory.{what}", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True)
    return [int(line) for line in found.stdout.splitlines()] if found.returncode == 0 else []


@cache
def missing(target: str) -> str:
    """Say why a target can't be asked here; "" where it can."""
    framework = target.partition(":")[0]
    if importlib.util.find_spec(framework) is None:
        return f"{framework} is not installed"
    if target.endswith("cpu"):
        return ""
    if not memory("total"):
        return "nvidia-smi lists no GPU"
    found = subprocess.run([sys.executable, "-c", FINDS[target]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return f"{framework} finds no GPU: {found.stdout.strip().splitlines()[-1]}" if found.returncode else ""


def needs(target: str) -> None:
    if why := missing(target):
        pytest.skip(why)


@pytest.mark.parametrize(("target", "deadline"), [("jax:cpu", "6"), ("jax:gpu", "15"), ("torch:cuda", "15")])
def test_a_question_that_hangs_costs_its_own_cell_and_ends_with_its_process(tmp_path: Path, target: str, deadline: str) -> None:
    needs(target)
    framework = target.partition(":")[0]
    adapter = f"{framework}=tests.endless_{framework}:Endless"
    record, before = tmp_path / "record.jsonl", memory("used")
    chosen = ("--target", target, "--case", HANGS, "--case", HEALTHY, "--deadline", deadline)
    run = start(record, "--adapter", adapter, *chosen)
    until(lambda: record.exists() or run.poll() is not None, "the run has neither begun nor ended")
    workers = pgrep("-P", str(run.pid))
    said, _ = run.communicate(timeout=300)
    assert (run.returncode, "Traceback" in said) == (1, False), said
    found = read(record).cells
    assert [case for _, case in found] == [HANGS, HEALTHY]
    hung, healthy = found.values()
    assert (hung.status, hung.why) == ("hung", f"no answer within {deadline} s")
    assert (healthy.status, healthy.answer) == ("answered", "works"), healthy.why
    assert workers, "no worker to look for"
    until(lambda: not set(workers) & set(pgrep("-f", "")), "a worker that hangs outlives its run")
    until(lambda: all(now <= then + SLACK for now, then in zip(memory("used"), before, strict=True)), "the GPU's memory isn't free again")


def test_an_assert_on_the_device_and_a_failed_allocation_cost_their_own_cells(tmp_path: Path) -> None:
    needs("torch:cuda")
    record = tmp_path / "record.jsonl"
    order = ("moving/too-large/accelerator", "moving/to-accelerator/object", "time/beyond-end/accelerator", "modules/compute/device")
    chosen = [word for case in order for word in ("--case", case)]
    # Each twice: the second assert is one of a new worker.
    ask("--target", "torch:cuda", *chosen, "--repeat", "2", f"--record={record}")
    found = {case: cell for (_, case), cell in read(record).cells.items()}
    assert tuple(found) == order
    too_large, moved, beyond, computed = found.values()
    assert (too_large.answer, too_large.facets["error.type"]) == ("raises", "OutOfMemoryError")
    assert too_large.facets["device works"] is True
    assert (beyond.answer, beyond.facets["device works"]) == ("raises-late", False)
    assert beyond.observation is not None
    assert beyond.observation["poisoned"] is True
    assert {moved.status, computed.status} == {"answered"}
    assert {moved.kind, computed.kind} == {"works"}


def test_what_the_user_hides_stays_hidden() -> None:
    needs("torch:cuda")
    said = ask("--target", "torch:cuda", "--case", HEALTHY, env=surroundings(CUDA_VISIBLE_DEVICES=""), expect=2)
    assert "no CUDA device" in " ".join(said.split())


def test_what_the_user_shows_is_all_that_there_is(tmp_path: Path) -> None:
    needs("torch:cuda")
    record = tmp_path / "record.jsonl"
    chosen = ("--target", "torch:cuda", "--case", "placement/mul/*", f"--record={record}")
    ask(*chosen, env=surroundings(CUDA_VISIBLE_DEVICES="0"))
    found = read(record)
    assert found.targets["torch:cuda"].environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert found.cells["torch:cuda", HEALTHY].answer == "works"
    assert found.cells["torch:cuda", "placement/mul/accelerator-peer"].status == "not-applicable"


def zeros(mebibytes: int) -> dict[str, Any]:
    """Return a program that makes a value of such a size on the accelerator, and waits for it."""
    made = {"id": "s1", "op": "zeros", "args": [[mebibytes, 2**18], {"dtype": "float32"}, {"device": "accelerator"}], "attempt": True}
    return {"steps": [made, {"id": "s2", "op": "barrier", "args": [], "attempt": True}]}


@pytest.mark.parametrize(("target", "error"), [("torch:cuda", "OutOfMemoryError"), ("jax:gpu", "RESOURCE_EXHAUSTED")])
def test_more_than_a_share_of_the_memory_is_refused_while_the_gpu_has_room(target: str, error: str) -> None:
    needs(target)
    framework, _, device = target.partition(":")
    share, free = GPU_SHARE * memory("total")[0], memory("free")[0]
    if free < 2 * share:
        pytest.skip(f"the GPU has {free} MiB free: too little to tell a set share from a full GPU")
    process = Process(Spec(framework, None, None))
    try:
        process.hello(120)
        process.warm(device, 120)
        fits, beyond = (process.run(device, zeros(int(part * share)), None, 120)["steps"] for part in (0.5, 1.5))
    finally:
        process.kill()
    assert "error" not in str(fits), fits
    assert error in str(beyond), beyond
