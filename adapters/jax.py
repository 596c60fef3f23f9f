"""JAX: three forced host devices, gpu, tpu and any other platform of a plugin (worker side).

Arrays are immutable. Where JAX has a functional way of its own, as for a slice assignment, that is
the operation; where it has none, as for `out=`, the operation is absent.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, ClassVar

from .base import Adapter, NotOffered, Unavailable, role

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np

_FORCE = "--xla_force_host_platform_device_count=3"


class Jax(Adapter):
    """JAX 0.4.20 on."""

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
    environments: ClassVar[dict[str, dict[str, str]]] = {
        "wide-dtypes": {"JAX_ENABLE_X64": "1"},
        "no-accelerator": {"JAX_PLATFORMS": "cpu"},
    }
    dtypes: ClassVar[dict[str, str]] = {
        "bool": "jnp.bool_",
        **{
            name: f"jnp.{name}"
            for name in (
                "int1", "int2", "int4", "int8", "int16", "int32", "int64", "uint1", "uint2", "uint4", "uint8", "uint16", "uint32",
                "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e3m4", "float8_e4m3",
                "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
                "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
            )
        },
    }  # fmt: skip
    #: JAX's global settings as they were at start.
    _settings: ClassVar[dict[str, Any]] = {}

    @classmethod
    def start(cls) -> None:
        """Import JAX with three host devices, without taking a GPU's whole memory, and with kernels kept."""
        flags = os.environ.get("XLA_FLAGS", "")
        if _FORCE not in flags.split():
            os.environ["XLA_FLAGS"] = (flags + " " + _FORCE).strip()
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        super().start()
        _keep_kernels()
        try:
            jax.devices()
        except Exception as error:
            platforms = os.environ.get("JAX_PLATFORMS", "")
            raise Unavailable(f"JAX finds no device with JAX_PLATFORMS={platforms!r}: {str(error) or type(error).__name__}") from error
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
            kinds["cpu"] = f"JAX computes on {default} by default in this process: jax:cpu wants JAX_PLATFORMS=cpu"
        for platform in dict.fromkeys(("gpu", "tpu", default)):
            if platform == "cpu":
                continue
            found, why = _devices(platform)
            if found and hosts:
                kinds[platform] = {"host": host, **_accelerators(platform, found, 0, "measured")}
            else:
                kinds[platform] = f"no host device beside the {platform}: JAX_PLATFORMS leaves cpu out" if found else why
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

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype, shape, memory kind, and how the value came to its device and dtype."""
        if not isinstance(value, jax.Array):
            return {}
        devices = sorted(value.devices(), key=lambda d: d.id)
        return {
            "device": " ".join(str(d) for d in devices),
            "dtype": self.dtype_name(value.dtype),
            "shape": list(value.shape),
            "memory": _memory(value, devices[0]),
            "committed": bool(value.committed if hasattr(value, "committed") else value._committed),
            "weak": bool(value.weak_type),
        }

    def read(self, value: Any) -> Any:
        """Return the elements, those of JAX's own narrow dtypes in one that every reader knows."""
        flat = np.asarray(value).reshape(-1)
        if flat.dtype.isbuiltin == 2:
            flat = flat.astype(np.int8 if "int" in flat.dtype.name else np.float32)
        return flat

    def identity_of(self, value: Any) -> Any:
        """Return the address of the buffer; None for a deleted array and for one over several devices."""
        try:
            return value.unsafe_buffer_pointer()
        except Exception:
            return None

    # --- creation -------------------------------------------------------------------------------

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:
        return jax.device_put(jnp.array(values, dtype=dtype), device)

    def tensor_uncommitted(self, values: Any, dtype: Any) -> Any:
        return jnp.array(values, dtype=dtype)

    def literal(self, values: Any, device: Any) -> Any:
        return jax.device_put(jnp.array(values), device)

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
        return jax.device_put(jnp.full(shape, value, dtype=dtype), device)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:
        return jax.device_put(jnp.arange(start, start + count, dtype=dtype).reshape(shape), device)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return jax.device_put(jnp.zeros(shape, dtype=dtype), device)

    def zeros_uncommitted(self, shape: Any) -> Any:
        return jnp.zeros(shape)

    def zeros_like(self, x: Any) -> Any:
        return jnp.zeros_like(x)

    def from_buffer(self, buffer: Any, device: Any) -> Any:
        return jax.device_put(np.frombuffer(buffer.memory, buffer.dtype), device)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:
        """Put with the wish for a copy, where a put takes one."""
        if not _takes(jax.device_put, "may_alias"):
            raise NotOffered("a put takes no wish for a copy in this version of jax")
        return jax.device_put(np.frombuffer(buffer.memory, buffer.dtype), device, may_alias=False)

    def to_memory(self, x: Any, kind: str) -> Any:
        """Move to the pinned memory that belongs to the value's device."""
        if kind != "pinned-host":
            raise NotOffered(f"jax has no memory kind {kind}")
        if "pinned_host" not in _memories(next(iter(x.devices()))):
            raise NotOffered("jax shows no pinned host memory for this device in this version")
        return jax.device_put(x, x.sharding.with_memory_kind("pinned_host"))

    # --- arithmetic -----------------------------------------------------------------------------

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def sub(self, x: Any, y: Any) -> Any:
        return x - y

    def mul(self, x: Any, y: Any) -> Any:
        return x * y

    def div(self, x: Any, y: Any) -> Any:
        return x / y

    def less(self, x: Any, y: Any) -> Any:
        return x < y

    def matmul(self, x: Any, y: Any) -> Any:
        return x @ y

    def sum(self, x: Any) -> Any:
        return x.sum()

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return jnp.where(condition, x, y)

    def cat(self, x: Any, y: Any) -> Any:
        return jnp.concatenate([x, y])

    def stack(self, x: Any, y: Any) -> Any:
        return jnp.stack([x, y])

    def array_equal(self, x: Any, y: Any) -> Any:
        return jnp.array_equal(x, y)

    # --- indexing -------------------------------------------------------------------------------

    def index(self, x: Any, ids: Any) -> Any:
        return x[ids]

    def index_select(self, x: Any, ids: Any) -> Any:
        return jnp.take(x, ids, axis=0)

    def gather(self, x: Any, ids: Any) -> Any:
        return jnp.take_along_axis(x, ids, axis=0)

    def mask(self, x: Any, mask: Any) -> Any:
        return x[mask]

    def corner(self, x: Any) -> Any:
        return x[0, 0]

    def item(self, x: Any) -> Any:
        return x.item()

    # --- layouts --------------------------------------------------------------------------------

    def element(self, x: Any, i: int) -> Any:
        return x[i]

    def tail(self, x: Any, start: int) -> Any:
        return x[start:]

    def transpose(self, x: Any) -> Any:
        return x.T

    def expand(self, x: Any, shape: Any) -> Any:
        return jnp.broadcast_to(x, shape)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    # --- effects --------------------------------------------------------------------------------

    def set_tail(self, x: Any, start: int, y: Any) -> Any:
        return x.at[start:].set(y)

    # --- moving ---------------------------------------------------------------------------------

    def to(self, x: Any, device: Any) -> Any:
        return jax.device_put(x, device)

    def to_copy(self, x: Any, device: Any) -> Any:
        """Put with the wish for a copy, where a put takes one."""
        if not _takes(jax.device_put, "may_alias"):
            raise NotOffered("a put takes no wish for a copy in this version of jax")
        return jax.device_put(x, device, may_alias=False)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        """Convert with a device, where that takes one."""
        if not _takes(jnp.asarray, "device"):
            raise NotOffered("no call moves and casts at once in this version of jax")
        return jnp.asarray(x, dtype=dtype, device=device)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    # --- devices as values ----------------------------------------------------------------------

    def device_of(self, x: Any) -> Any:
        """Ask the attribute, which was a method once and then absent for a while."""
        if not isinstance(vars(jax.Array).get("device"), property):
            raise NotOffered("jax arrays have no attribute device in this version")
        return x.device

    def ordinal(self, device: Any) -> Any:
        return device.id

    def accelerator_count(self) -> Any:
        """Count a platform's devices; forced host devices are none that a program looks for."""
        platform = "gpu" if self.kind == "cpu" else self.kind
        return jax.device_count(platform)

    def best_device(self) -> Any:
        return jax.devices()[0]

    # --- reading back ---------------------------------------------------------------------------

    def to_list(self, x: Any) -> Any:
        return x.tolist()

    def to_numpy(self, x: Any) -> Any:
        return np.asarray(x)


def _takes(function: Any, argument: str) -> bool:
    return argument in inspect.signature(function).parameters


def _devices(platform: str) -> tuple[list[Any], str]:
    """Return a platform's devices, or none and why."""
    try:
        return list(jax.devices(platform)), ""
    except RuntimeError as error:
        return [], f"no {platform} that JAX can use: {error}"


def _accelerators(platform: str, devices: list[Any], first: int, evidence: str) -> dict[str, dict[str, str]]:
    return {
        name: role(str(device), f"jax.devices({platform!r})[{position}]", evidence, _mention(device))
        for position, (name, device) in enumerate(zip(("accelerator", "peer"), devices), first)
    }


def _mention(device: Any) -> str:
    """Return how an error about mixed devices writes one of them."""
    return f"device ids [{device.id}] on platform {device.platform.upper()}"


def _memories(device: Any) -> list[str]:
    with contextlib.suppress(Exception):  # absent from the oldest versions
        return [memory.kind for memory in device.addressable_memories()]
    return []


def _memory(value: Any, device: Any) -> str:
    """Name a memory kind neutrally: what a device uses by default is called otherwise from version to version."""
    kind = getattr(value.sharding, "memory_kind", None)
    with contextlib.suppress(Exception):
        if kind is not None and kind != device.default_memory().kind:
            return str(kind).replace("_", "-")
    return "device"


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
