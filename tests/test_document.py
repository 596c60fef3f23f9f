"""The little programs of a published page about burn's "not on the same device", run as that page runs them."""

from __future__ import annotations

import os
import subprocess
from functools import cache

import pytest

from tests.test_independent import built

AUTO, VULKAN = (f"Device<Cube(Wgpu(WgpuDevice {{ kind: DefaultDevice, backend: {name} }}))>" for name in ("Auto", "Vulkan"))

pytestmark = pytest.mark.skipif(not built("burn").is_file(), reason="burn's program is not built: tox run -e rust")


@cache
def run(name: str, device: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "BURN_DEVICE"} | ({"BURN_DEVICE": device} if device else {})
    done = subprocess.run([str(built("burn")), "document", name], env=environment, capture_output=True, text=True, timeout=120)
    if "No adapter available" in done.stderr:
        pytest.skip("no Vulkan driver here")
    return done


@pytest.mark.parametrize("name", ["mixed", "from"])
def test_a_value_on_the_default_device_and_one_on_the_explicit_device_don_t_add(name: str) -> None:
    done = run(name)
    assert done.returncode == 101
    assert "Operation: 'Add'" in done.stderr
    assert f"The provided tensors are not on the same device. Lhs tensor device {AUTO}, Rhs tensor device {VULKAN}." in done.stderr
    assert done.stdout == (f"a on {AUTO}\n" if name == "from" else "")


def test_one_device_value_throughout_works() -> None:
    done = run("one-device")
    assert (done.returncode, done.stdout) == (0, "[4.0, 6.0]\n")


def test_a_default_that_the_environment_names_is_the_explicit_device_and_adds() -> None:
    done = run("environment", "vulkan")
    assert (done.returncode, done.stdout) == (0, f"Device::default() = {VULKAN}\n== vulkan: true\n[4.0, 6.0]\n")


def test_without_the_variable_the_default_is_another_device() -> None:
    done = run("environment")
    assert (done.returncode, done.stdout) == (101, f"Device::default() = {AUTO}\n== vulkan: false\n")


def test_the_default_is_the_automatic_device_and_not_metal() -> None:
    assert run("wgpu").stdout == "== wgpu: true\n"
    assert run("metal").stdout == "== metal: false\n"
