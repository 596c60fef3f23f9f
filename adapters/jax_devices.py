"""JAX's devices: three forced host devices, gpu, tpu and any other platform of a plugin (worker side).

What changes with a new platform, a new build or a new setting stands here; the operations are in `jax`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, ClassVar, MutableMapping

from .base import GPU_SHARE, Adapter, NotOffered, Unavailable, role

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np

#: What gives JAX a platform.
_MEND = {
    "gpu": "pip install 'jax[cuda13]' or the plugin for ROCm, and look whether nvidia-smi or rocm-smi lists one",
    "tpu": "pip install 'jax[tpu]' on a machine with a TPU",
}
_FORCE = "--xla_force_host_platform_device_count=3"


class JaxDevices(Adapter):
    """Which devices there are, how each is written, and what surrounds a program on it."""

    framework = "jax"
    imports = "import jax\nimport jax.numpy as jnp\nimport numpy as np"
    variables = (
        "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_NUM_CPU_DEVICES", "JAX_ENABLE_X64", "JAX_EXPLICIT_X64_DTYPES",
        "JAX_DEFAULT_DTYPE_BITS", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION",
        "JAX_TRANSFER_GUARD", "JAX_TRANSFER_GUARD_HOST_TO_DEVICE", "JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE",
        "JAX_TRANSFER_GUARD_DEVICE_TO_HOST", "JAX_CPU_ENABLE_ASYNC_DISPATCH", "JAX_DISABLE_JIT", "JAX_DEBUG_NANS",
        "JAX_DEBUG_INFS", "JAX_ENABLE_CHECKS", "JAX_CHECK_STATIC_INDICES", "JAX_ERROR_CHECKING_BEHAVIOR_NAN",
        "JAX_ERROR_CHECKING_BEHAVIOR_DIVIDE", "JAX_ERROR_CHECKING_BEHAVIOR_OOB", "JAX_DISABLE_MOST_OPTIMIZATIONS",
        "JAX_OPTIMIZATION_LEVEL", "JAX_EAGER_CONSTANT_FOLDING", "JAX_ENABLE_MEMORIES", "JAX_DEFAULT_PRNG_IMPL",
        "JAX_ENABLE_CUSTOM_PRNG", "JAX_LEGACY_PRNG_KEY", "JAX_THREEFRY_PARTITIONABLE", "JAX_RANDOM_SEED_OFFSET",
        "JAX_CUDA_VISIBLE_DEVICES", "JAX_ROCM_VISIBLE_DEVICES", "JAX_MOCK_GPU_TOPOLOGY", "XLA_FLAGS", "XLA_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "LIBTPU_INIT_ARGS",
        "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE",
    )  # fmt: skip
    # An entry that a killed process left half written is noticed by JAX, and compiled again.
    chatter = "persistent compilation cache"
    examples: ClassVar[dict[str, dict[str, str]]] = {
        "cpu": {"host": "jax.devices('cpu')[0]", "accelerator": "jax.devices('cpu')[1]", "peer": "jax.devices('cpu')[2]"}
    }
    environments: ClassVar[dict[str, dict[str, str]]] = {
        "wide-dtypes": {"JAX_ENABLE_X64": "1"},
        "no-accelerator": {"JAX_PLATFORMS": "cpu"},
    }
    environments_of: ClassVar[dict[str, dict[str, dict[str, str]]]] = {
        "gpu": {"one-accelerator": {"CUDA_VISIBLE_DEVICES": "0"}, "reversed-accelerators": {"CUDA_VISIBLE_DEVICES": "1,0"}}
    }
    #: JAX's global settings as they were at start.
    _settings: ClassVar[dict[str, Any]] = {}

    @classmethod
    def start(cls) -> None:
        """Import JAX with three host devices, with a share of a GPU's memory at most, and with kernels kept."""
        flags = os.environ.get("XLA_FLAGS", "")
        if _FORCE not in flags.split():
            os.environ["XLA_FLAGS"] = (flags + " " + _FORCE).strip()
        _limit_memory(os.environ)
        super().start()
        _keep_kernels()
        try:
            jax.devices()
        except Exception as error:
            platforms = os.environ.get("JAX_PLATFORMS")
            asked = f" with JAX_PLATFORMS={platforms!r}" if platforms else ""
            mend = "unset it, or name platforms that are here, such as cpu" if platforms else "look whether jax and jaxlib fit: pip check"
            raise Unavailable(f"JAX finds no device{asked}: {str(error) or type(error).__name__}; {mend}") from error
        jax.config.update("jax_traceback_filtering", "off")  # nobody sees the frames, and sifting them takes time
        cls._settings = dict(jax.config.values)

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return the versions, and which platform and device JAX computes on by default."""
        default = jax.devices()[0]
        build = {"jaxlib": sys.modules["jaxlib"].__version__, "numpy": np.__version__, "default": str(default)}
        if default.platform != "cpu":
            build["accelerator"] = str(default.device_kind)
            build["runtime"] = str(default.client.platform_version)
        return {"version": jax.__version__, "build": build}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return the forced host devices, and each platform or why it is not here."""
        hosts, _ = _devices("cpu")
        default = jax.default_backend()
        host = role(str(hosts[0]), "jax.devices('cpu')[0]", mention=_mention(hosts[0])) if hosts else {}
        kinds: dict[str, Any] = {"cpu": {"host": host, **_accelerators("cpu", hosts[1:], 1, "simulated")}}
        if default != "cpu":
            kinds["cpu"] = f"JAX computes on {default} by default in this process: ask jax:cpu, which starts one with JAX_PLATFORMS=cpu"
        for platform in dict.fromkeys(("gpu", "tpu", default)):
            if platform == "cpu":
                continue
            found, why = _devices(platform)
            if found and hosts:
                kinds[platform] = {"host": host, **_accelerators(platform, found, 0, "measured")}
            else:
                asked = os.environ.get("JAX_PLATFORMS", platform)
                kinds[platform] = f"no host device beside the {platform}: set JAX_PLATFORMS={asked},cpu" if found else why
        return kinds

    def missing(self, name: str, spelled: str) -> str:
        """Spell a device that is not here: devices are found by platform and position, not named."""
        if spelled != "object":
            raise NotOffered(f"jax has no {spelled} spelling of a device")
        absent = next(p for p in ("gpu", "tpu", "rocm") if not _devices(p)[0])
        return {
            "absent": f"jax.devices({absent!r})[0]",
            "out-of-range": f"jax.devices({self.kind!r})[99]",
            "misspelt": f"jax.devices({self.kind + 'u'!r})[0]",
        }[name]

    def scope(self, name: str, *args: Any) -> Any:
        """Return JAX's scoped regions."""
        if name == "default-device":
            return self.default_device(*args)
        return super().scope(name, *args)

    def default_device(self, device: Any) -> Any:
        """Enter a default device: where uncommitted values are made."""
        return jax.default_device(device)

    def reset(self) -> None:
        """Put back every setting that a program changed: default device, 64-bit dtypes, guards."""
        now = jax.config.values  # made anew each time it is looked at
        for name, value in self._settings.items():
            if now.get(name) != value:
                jax.config.update(name, value)

    def warm(self) -> None:
        """Start the compiler with a first operation."""
        jnp.full((2,), 2.0, dtype=jnp.float32) + 3.0

    def barrier(self, values: list[Any]) -> None:
        """Wait for the values and for side effects: JAX has no way to wait for a device."""
        jax.block_until_ready([v for v in values if isinstance(v, jax.Array) and not v.is_deleted()])
        jax.effects_barrier()

    def poisoned(self, error: BaseException) -> bool:
        """After a CUDA error other than a failed allocation, the context is unusable."""
        text = str(error)
        return "CUDA_ERROR" in text and "CUDA_ERROR_OUT_OF_MEMORY" not in text


def _limit_memory(environment: MutableMapping[str, str]) -> None:
    """Let JAX take a GPU's memory as it needs it, and a share at most; what the user has set himself wins.

    The fraction is the limit of a pool that grows too. It has two names: the older one is what every version knows, and
    versions that know both refuse to start where both are set.
    """
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if "XLA_CLIENT_MEM_FRACTION" not in environment:
        environment.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", str(GPU_SHARE))


def _devices(platform: str) -> tuple[list[Any], str]:
    """Return a platform's devices, or none and why."""
    try:
        return list(jax.devices(platform)), ""
    except RuntimeError as error:
        said = str(error).partition("\n")[0]
        return [], f"no {platform} that JAX can use ({said}); {_MEND.get(platform, 'install the plugin of that platform')}"


def _accelerators(platform: str, devices: list[Any], first: int, evidence: str) -> dict[str, dict[str, str]]:
    return {
        name: role(str(device), f"jax.devices({platform!r})[{position}]", evidence, _mention(device))
        for position, (name, device) in enumerate(zip(("accelerator", "peer"), devices), first)
    }


def _mention(device: Any) -> str:
    """Return how an error about mixed devices writes one of them."""
    return f"device ids [{device.id}] on platform {device.platform.upper()}"


def _keep_kernels() -> None:
    """Let JAX keep compiled kernels in the user's cache folder: compiling takes most of a run's time.

    A folder that can't be written is not used, since JAX would warn in the middle of a question.
    """
    home = _cache_home()
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or not os.path.isabs(home):
        return
    folder = os.path.join(home, "device-semantics", "jax-" + jax.__version__)
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return
    for name, value in (
        ("jax_compilation_cache_dir", folder),
        ("jax_persistent_cache_min_compile_time_secs", 0),
        ("jax_persistent_cache_min_entry_size_bytes", -1),
    ):
        with contextlib.suppress(Exception):  # older versions lack some of these
            jax.config.update(name, value)


def _cache_home() -> str:
    """Return the folder for the user's caches by the custom of the system."""
    if os.environ.get("XDG_CACHE_HOME"):
        return os.environ["XDG_CACHE_HOME"]
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    return os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
