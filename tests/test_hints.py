"""What an adapter says of a device that isn't here, or of a question that can't be asked: why, and what to do."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapters import jax_devices, torch_devices

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("cuda", "hip", "says"),
    [
        (None, None, "built without CUDA; install a build with it"),
        ("13.2", None, "built for CUDA 13.2, sees none; look whether nvidia-smi lists one and CUDA_VISIBLE_DEVICES hides it"),
        (None, "6.4", "built for ROCm 6.4, sees none; look whether rocm-smi lists one and HIP_VISIBLE_DEVICES hides it"),
    ],
)
def test_a_build_without_cuda_and_a_machine_without_a_gpu_are_told_apart(
    cuda: str | None, hip: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_devices, "torch", SimpleNamespace(version=SimpleNamespace(cuda=cuda, hip=hip)), raising=False)
    assert says in torch_devices._why_no_cuda()


def test_a_platform_that_jax_lacks_comes_with_what_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def devices(platform: str) -> list[object]:
        raise RuntimeError(f"Unknown backend: {platform!r} requested\nand more")

    monkeypatch.setattr(jax_devices, "jax", SimpleNamespace(devices=devices), raising=False)
    for platform, mend in (("gpu", "pip install 'jax[cuda13]'"), ("tpu", "pip install 'jax[tpu]'"), ("xpu", "install the plugin")):
        found, why = jax_devices._devices(platform)
        assert not found
        assert why.startswith(f"no {platform} that JAX can use (Unknown backend: {platform!r} requested); {mend}")


@pytest.mark.skipif(not find_spec("jax"), reason="jax is not installed")
@pytest.mark.slow
def test_a_platform_that_jax_does_not_know_is_one_sentence_that_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reports", "targets", f"jax:gpu@{sys.executable}", "--json"], cwd=ROOT, capture_output=True, text=True,
        check=False, env={**os.environ, "JAX_PLATFORMS": "nope"},
    )  # fmt: skip
    (target,) = json.loads(done.stdout)
    assert "JAX finds no device with JAX_PLATFORMS='nope'" in target["why"]
    assert target["why"].endswith("unset it, or name platforms that are here, such as cpu")
    assert "Unavailable" not in target["why"]


@pytest.mark.parametrize("name", ["torch", "torch_devices", "jax", "jax_devices"])
def test_what_a_version_or_a_simulation_lacks_says_what_to_ask_instead(name: str) -> None:
    """Look at each reason in the source: only a concept that the framework hasn't at all leaves nothing to do."""
    tree = ast.parse((ROOT / "adapters" / f"{name}.py").read_text("utf-8"))
    raised = [n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    reasons = [ast.unparse(call.args[0]) for call in raised if ast.unparse(call.func) in ("NotOffered", "NotModelled")]
    concepts = ("spelling of a device", "has no memory kind", "torch tensors have no", "_IDLE", "self.untimed")
    for reason in reasons:
        assert ": ask " in reason or "pip install" in reason or any(concept in reason for concept in concepts), reason
