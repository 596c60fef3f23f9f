"""NumPy: the host alone, named by a string since 2.0 (worker side)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .base import Adapter, NotOffered, role

if TYPE_CHECKING:
    import numpy as np


class Numpy(Adapter):
    """NumPy 1.24 on."""

    framework = "numpy"
    imports = "import numpy as np"
    examples: ClassVar[dict[str, dict[str, str]]] = {"cpu": {"host": "'cpu'"}}
    variables = (
        "NPY_PROMOTION_STATE", "NUMPY_EXPERIMENTAL_ARRAY_FUNCTION", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES",
        "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    )  # fmt: skip
    dtypes: ClassVar[dict[str, str]] = {
        "bool": "np.bool_",
        **{
            name: f"np.{name}"
            for name in (
                "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
                "complex64", "complex128",
            )
        },
    }  # fmt: skip

    @classmethod
    def start(cls) -> None:
        """Import NumPy, and take the phrases of the time before it knew of devices where it doesn't."""
        super().start()
        if not hasattr(np.ndarray, "device"):
            for name, phrase in vars(_Before20).items():
                if not name.startswith("_"):
                    setattr(cls, name, phrase)

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return the host, all that there is."""
        named = hasattr(np.ndarray, "device")
        return {"cpu": {"host": role("cpu", "'cpu'" if named else "_Unnamed()")}}

    def spelling(self, name: str, spelled: str) -> str:
        """Spell the host: a string without an index is the only way."""
        if spelled == "indexed":
            raise NotOffered("numpy devices have no index")
        return self.roles[name]["expression"]

    def missing(self, name: str, spelled: str) -> str:
        """Spell a device that is not here."""
        return {"absent": "'cuda'", "out-of-range": "'cpu:99'", "misspelt": "'cpuu'"}[name]

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype and shape; before 2.0 a value names no device and is in host memory."""
        if not isinstance(value, (np.ndarray, np.generic)):
            return {}
        return {
            "device": str(getattr(value, "device", "cpu")),
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "memory": "device",
        }

    def read(self, value: Any) -> Any:
        """Return the elements."""
        return np.asarray(value).reshape(-1)

    def metadata(self, x: Any) -> Any:
        return x.device, x.dtype

    def identity_of(self, value: Any) -> Any:
        """Return the address of the memory that a value was cut from; NumPy's scalars share theirs with nobody."""
        if isinstance(value, np.generic):
            return ("scalar", id(value))
        while isinstance(value.base, np.ndarray):
            value = value.base
        return value.__array_interface__["data"][0] if value.nbytes else None

    # --- creation -------------------------------------------------------------------------------

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:
        return np.asarray(values, dtype=dtype, device=device)

    def tensor_uncommitted(self, values: Any, dtype: Any) -> Any:
        return np.asarray(values, dtype=dtype)

    def literal(self, values: Any, device: Any) -> Any:
        return np.asarray(values, device=device)

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
        return np.full(shape, value, dtype=dtype, device=device)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:
        return np.arange(start, start + count, dtype=dtype, device=device).reshape(shape)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return np.zeros(shape, dtype=dtype, device=device)

    def zeros_uncommitted(self, shape: Any) -> Any:
        return np.zeros(shape)

    def zeros_like(self, x: Any) -> Any:
        return np.zeros_like(x)

    def from_buffer(self, buffer: Any, device: Any) -> Any:
        return np.asarray(np.frombuffer(buffer.memory, buffer.dtype), device=device)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:
        return np.asarray(np.frombuffer(buffer.memory, buffer.dtype), device=device, copy=True)

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
        return np.where(condition, x, y)

    def cat(self, x: Any, y: Any) -> Any:
        return np.concatenate([x, y])

    def stack(self, x: Any, y: Any) -> Any:
        return np.stack([x, y])

    def array_equal(self, x: Any, y: Any) -> Any:
        return np.array_equal(x, y)

    def add_out(self, x: Any, y: Any, out: Any) -> Any:
        return np.add(x, y, out=out)

    # --- indexing -------------------------------------------------------------------------------

    def index(self, x: Any, ids: Any) -> Any:
        return x[ids]

    def index_select(self, x: Any, ids: Any) -> Any:
        return np.take(x, ids, axis=0)

    def gather(self, x: Any, ids: Any) -> Any:
        return np.take_along_axis(x, ids, axis=0)

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
        return np.broadcast_to(x, shape)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    # --- effects --------------------------------------------------------------------------------

    def add_(self, x: Any, y: Any) -> Any:
        x += y
        return x

    def set_tail(self, x: Any, start: int, y: Any) -> Any:
        x[start:] = y
        return x

    def copy_(self, x: Any, y: Any) -> Any:
        np.copyto(x, y)
        return x

    # --- moving ---------------------------------------------------------------------------------

    def to(self, x: Any, device: Any) -> Any:
        return x.to_device(device)

    def to_copy(self, x: Any, device: Any) -> Any:
        return np.asarray(x, device=device, copy=True)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        return np.asarray(x, dtype=dtype, device=device)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def device_of(self, x: Any) -> Any:
        return x.device

    # --- reading back ---------------------------------------------------------------------------

    def to_list(self, x: Any) -> Any:
        return x.tolist()

    def to_numpy(self, x: Any) -> Any:
        return np.asarray(x)


class _Unnamed:
    """The host before 2.0: values are made there, and nothing can be asked of it or moved to it."""

    def __eq__(self, other: object) -> bool:
        raise NotOffered("numpy names no devices before 2.0")

    def __hash__(self) -> int:
        raise NotOffered("numpy names no devices before 2.0")


class _Before20:
    """What was written otherwise before 2.0, which brought `device=` and `to_device`."""

    def spelling(self, name: str, spelled: str) -> str:
        if spelled != "object":
            raise NotOffered("numpy names no devices before 2.0")
        return "_Unnamed()"

    def missing(self, name: str, spelled: str) -> str:
        raise NotOffered("numpy names no devices before 2.0")

    def metadata(self, x: Any) -> Any:
        return x.dtype

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:
        return np.asarray(values, dtype=dtype)

    def literal(self, values: Any, device: Any) -> Any:
        return np.asarray(values)

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
        return np.full(shape, value, dtype=dtype)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:
        return np.arange(start, start + count, dtype=dtype).reshape(shape)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return np.zeros(shape, dtype=dtype)

    def from_buffer(self, buffer: Any, device: Any) -> Any:
        return np.frombuffer(buffer.memory, buffer.dtype)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:
        return np.array(np.frombuffer(buffer.memory, buffer.dtype))

    def to(self, x: Any, device: Any) -> Any:
        raise NotOffered("numpy has no move before 2.0")

    to_copy = to

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        raise NotOffered("numpy has no move before 2.0")

    def device_of(self, x: Any) -> Any:
        raise NotOffered("numpy values name no device before 2.0")
