"""JAX: its operations and dtypes in its own words (worker side).

Arrays are immutable. Where JAX has a functional way of its own, as for a slice assignment, that is
the operation; where it has none, as for `out=`, the operation is absent.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from .base import NotOffered
from .jax_devices import JaxDevices

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np


class Jax(JaxDevices):
    """JAX 0.4.20 on."""

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

    def metadata(self, x: Any) -> Any:
        return x.devices(), x.dtype

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
            raise NotOffered("jax.device_put takes no may_alias in this version: ask jax 0.4.34 or later")
        return jax.device_put(np.frombuffer(buffer.memory, buffer.dtype), device, may_alias=False)

    def to_memory(self, x: Any, kind: str) -> Any:
        """Move to the pinned memory that belongs to the value's device."""
        if kind != "pinned-host":
            raise NotOffered(f"jax has no memory kind {kind}, only pinned-host")
        if "pinned_host" not in _memories(next(iter(x.devices()))):
            raise NotOffered("jax lists no pinned_host among this device's addressable_memories(): ask a later jax or another device")
        return jax.device_put(x, x.sharding.with_memory_kind("pinned_host"))

    def shard(self, x: Any, first: Any, second: Any) -> Any:
        """Spread the first axis over two devices."""
        mesh = jax.sharding.Mesh(np.array([first, second]), ("rows",))
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows")))

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
            raise NotOffered("jax.device_put takes no may_alias in this version: ask jax 0.4.34 or later")
        return jax.device_put(x, device, may_alias=False)

    def to_async(self, x: Any, device: Any) -> Any:
        return jax.device_put(x, device)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        """Convert with a device, where that takes one."""
        if not _takes(jnp.asarray, "device"):
            raise NotOffered("jnp.asarray takes no device in this version, so none moves and casts at once: ask jax 0.4.34 or later")
        return jnp.asarray(x, dtype=dtype, device=device)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    # --- devices as values ----------------------------------------------------------------------

    def device_of(self, x: Any) -> Any:
        """Ask the attribute, which was a method once and then absent for a while."""
        if not isinstance(vars(jax.Array).get("device"), property):
            raise NotOffered("jax arrays have no attribute device in this version: ask jax 0.4.34 or later")
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
