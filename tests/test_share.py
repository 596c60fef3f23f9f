"""A worker takes a set share of a GPU's memory at most, and touches no GPU before somebody asks about one."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from adapters.base import GPU_SHARE
from adapters.jax_devices import _limit_memory
from adapters.torch import Torch

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
ROLES = {
    name: {"name": text, "expression": f"torch.device({text!r})", "evidence": "measured"}
    for name, text in (("host", "cpu"), ("accelerator", "cuda:0"), ("alias", "cuda"), ("peer", "cuda:1"))
}


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """Put a PyTorch in place that only notes what it is limited to."""
    noted: list[tuple[float, str]] = []
    cuda = SimpleNamespace(set_per_process_memory_fraction=lambda share, device: noted.append((share, device)))
    monkeypatch.setattr("adapters.torch_devices.torch", SimpleNamespace(cuda=cuda, device=str), raising=False)
    monkeypatch.setattr("adapters.torch.torch", SimpleNamespace(device=str), raising=False)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return noted


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put in place of FakeTensor what notes its operations."""
    made: list[str] = []

    def ones(_: int, device: str) -> int:
        made.append(device)
        return 1

    fake = SimpleNamespace(device=str, ones=ones)
    monkeypatch.setattr("adapters.torch.torch", fake, raising=False)
    monkeypatch.setattr("adapters.torch_devices.torch.ones", fake.ones, raising=False)
    monkeypatch.setattr(Torch, "around", lambda _: nullcontext())
    monkeypatch.setattr(Torch, "_forget", lambda _: None)
    return made


def warmed(kind: str, *roles: str) -> None:
    Torch(kind, {name: ROLES[name] for name in roles}).warm()


def test_each_gpu_that_is_asked_about_is_limited_once_before_the_first_question(limits: list[tuple[float, str]]) -> None:
    warmed("cuda", "host", "accelerator", "alias")
    assert limits == [(GPU_SHARE, "cuda:0")]
    warmed("cuda", *ROLES)
    assert limits[1:] == [(GPU_SHARE, "cuda:0"), (GPU_SHARE, "cuda:1")]


@pytest.mark.parametrize("kind", ["cpu", "meta", "fake-cuda", "mps", "vendor"])
def test_no_other_question_starts_cuda(limits: list[tuple[float, str]], simulated: list[str], kind: str) -> None:
    warmed(kind, *ROLES)
    assert limits == []
    assert simulated == (["cuda:0"] if kind == "fake-cuda" else []), "a simulation's slow first operation is no question's"


@pytest.mark.parametrize(
    ("kind", "operations", "times"),
    [("fake-cuda", {"add"}, 0), ("fake-cuda", {"add", "holder"}, 2), ("fake-mps", {"current-device"}, 2), ("cuda", {"holder"}, 0)],
)
def test_what_a_simulation_remembers_is_forgotten_around_a_program_whose_answer_it_would_change(
    monkeypatch: pytest.MonkeyPatch, kind: str, operations: set[str], times: int
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr("adapters.torch_devices.torch", MagicMock(), raising=False)
    monkeypatch.setattr(Torch, "_forget", lambda torch: forgotten.append(torch.kind))
    one = Torch(kind, ROLES)
    one.prepare(operations)
    one.reset()
    assert forgotten == [kind] * times
    one.prepare({"add"})
    one.reset()
    assert len(forgotten) == times, "the next program is another"


@pytest.mark.parametrize("name", NAMES)
def test_a_share_that_the_user_set_for_pytorch_wins(limits: list[tuple[float, str]], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "expandable_segments:True")
    warmed("cuda", *ROLES)
    assert len(limits) == 2
    monkeypatch.setenv(name, "expandable_segments:True,per_process_memory_fraction:0.9")
    warmed("cuda", *ROLES)
    assert len(limits) == 2


@pytest.mark.parametrize(
    ("found", "limited"),
    [
        ({}, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_MEM_FRACTION": str(GPU_SHARE)}),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, {"XLA_PYTHON_CLIENT_MEM_FRACTION": str(GPU_SHARE)}),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
        # JAX refuses to start where both names of the fraction are set.
        ({"XLA_CLIENT_MEM_FRACTION": ".9"}, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    ],
)
def test_jax_is_limited_by_its_environment_where_the_user_has_not_done_so(found: dict[str, str], limited: dict[str, str]) -> None:
    environment: dict[str, Any] = dict(found)
    _limit_memory(environment)
    assert environment == {**found, **limited}
