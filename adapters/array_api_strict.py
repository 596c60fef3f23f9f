"""array-api-strict: the array API standard's own functions, on the devices that it pretends to have (worker side)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .base import Adapter, NotOffered, role

if TYPE_CHECKING:
    import array_api_strict as xp
    import numpy as np


class ArrayApiStrict(Adapter):
    """array-api-strict 1.0 on; the devices came with 2.1."""

    framework = "array-api-strict"
    # NumPy is only looked through: it holds every value, whatever device it pretends to be on.
    imports = "import array_api_strict as xp\nimport numpy as np"
    examples: ClassVar[dict[str, dict[str, str]]] = {
        "CPU_DEVICE": {"host": "xp.Device('CPU_DEVICE')", "alias": "xp.Device('CPU_DEVICE')"},
        "device1": {
            "host": "xp.Device('CPU_DEVICE')", "accelerator": "xp.Device('device1')", "peer": "xp.Device('device2')",
            "alias": "xp.Device('device1')",
        },
    }  # fmt: skip
    variables = (
        "ARRAY_API_STRICT_API_VERSION", "ARRAY_API_STRICT_BOOLEAN_INDEXING", "ARRAY_API_STRICT_DATA_DEPENDENT_SHAPES",
        "ARRAY_API_STRICT_ENABLED_EXTENSIONS", "NPY_PROMOTION_STATE",
    )  # fmt: skip
    dtypes: ClassVar[dict[str, str]] = {
        name: f"xp.{name}"
        for name in (
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
            "complex128",
        )
    }  # fmt: skip

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return the version, and which standard it keeps to."""
        build = {"standard": _standard(), "numpy": np.__version__}
        return {"version": str(xp.__version__), "build": build}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return each device that the library names: all but the first pretend."""
        if not hasattr(xp, "Device"):
            return {"CPU_DEVICE": {"host": role(str(xp.asarray(0).device), "xp.asarray(0).device")}}
        names = [str(device).partition("'")[2].partition("'")[0] for device in xp.__array_namespace_info__().devices()]
        host = names[0]
        kinds: dict[str, Any] = {host: {"host": _device(host, "measured"), "alias": _device(host, "measured")}}
        for name in names[1:]:
            peer = next((n for n in names[1:] if n != name), None)
            kinds[name] = {"host": _device(host, "measured"), "accelerator": _device(name), "alias": _device(name)}
            kinds[name].update({} if peer is None else {"peer": _device(peer)})
        return kinds

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Remember that only the first device does work: the others are names for it."""
        super().__init__(kind, roles)
        self.untimed = "its devices are names; all work is the host's" if "accelerator" in roles else ""

    def missing(self, name: str, spelled: str) -> str:
        """Spell a device that is not here: they have names and no ordinals."""
        if not hasattr(xp, "Device"):
            raise NotOffered("array-api-strict names no devices before 2.1")
        if spelled != "object":
            raise NotOffered(f"array-api-strict has no {spelled} spelling of a device")
        if name == "out-of-range":
            raise NotOffered("devices of array-api-strict have no ordinals")
        text = {"absent": "cuda", "misspelt": self.kind + "u"}[name]
        return f"xp.Device({text!r})"

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype and shape."""
        if not isinstance(value, type(xp.asarray(0))):
            return {}
        return {
            "device": str(value.device),
            "dtype": self.dtype_name(value.dtype),
            "shape": list(value.shape),
            "memory": "device",
        }

    def read(self, value: Any) -> Any:
        """Return the elements of the NumPy array inside: a pretended device refuses the conversion."""
        return value._array.reshape(-1)

    def metadata(self, x: Any) -> Any:
        return x.device, x.dtype

    def identity_of(self, value: Any) -> Any:
        """Return the address of the memory that a value was cut from; None where nothing is held."""
        array = value._array
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array.__array_interface__["data"][0] if array.nbytes else None

    # --- creation -------------------------------------------------------------------------------

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:
        return xp.asarray(values, dtype=dtype, device=device)

    def tensor_uncommitted(self, values: Any, dtype: Any) -> Any:
        return xp.asarray(values, dtype=dtype)

    def literal(self, values: Any, device: Any) -> Any:
        return xp.asarray(values, device=device)

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
        return xp.full(tuple(shape), value, dtype=dtype, device=device)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:
        return xp.reshape(xp.arange(start, start + count, dtype=dtype, device=device), tuple(shape))

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return xp.zeros(tuple(shape), dtype=dtype, device=device)

    def zeros_uncommitted(self, shape: Any) -> Any:
        return xp.zeros(tuple(shape))

    def zeros_like(self, x: Any) -> Any:
        return xp.zeros_like(x)

    def from_buffer(self, buffer: Any, device: Any) -> Any:
        return xp.asarray(np.frombuffer(buffer.memory, buffer.dtype), device=device)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:
        return xp.asarray(np.frombuffer(buffer.memory, buffer.dtype), device=device, copy=True)

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
        return xp.sum(x)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return xp.where(condition, x, y)

    def cat(self, x: Any, y: Any) -> Any:
        return xp.concat([x, y])

    def stack(self, x: Any, y: Any) -> Any:
        return xp.stack([x, y])

    def array_equal(self, x: Any, y: Any) -> Any:
        return xp.all(x == y)

    # --- indexing -------------------------------------------------------------------------------

    def index(self, x: Any, ids: Any) -> Any:
        """Index with integers: since 2024.12, and only with an index for each axis."""
        if x.ndim != 1 or _standard() < "2024.12":
            raise NotOffered("the array API standard takes an array of ids only with one for each axis, since 2024.12")
        return x[ids]

    def index_select(self, x: Any, ids: Any) -> Any:
        return xp.take(x, ids, axis=0)

    def gather(self, x: Any, ids: Any) -> Any:
        """Gather with the function that came with 2024.12."""
        if _standard() < "2024.12":
            raise NotOffered("the array API standard has take_along_axis since 2024.12")
        return xp.take_along_axis(x, ids, axis=0)

    def mask(self, x: Any, mask: Any) -> Any:
        return x[mask]

    def corner(self, x: Any) -> Any:
        return x[0, 0]

    def item(self, x: Any) -> Any:
        """Make the Python number that goes with the dtype: the standard has a conversion for each, without dimensions."""
        kind = self.dtype_name(x.dtype).rstrip("0123456789").lstrip("u")
        convert = {"bool": bool, "int": int, "float": float, "complex": complex}[kind]
        return convert(xp.reshape(x, ()))

    # --- layouts --------------------------------------------------------------------------------

    def element(self, x: Any, i: int) -> Any:
        return x[i, ...]

    def tail(self, x: Any, start: int) -> Any:
        return x[start:, ...]

    def transpose(self, x: Any) -> Any:
        return x.T

    def expand(self, x: Any, shape: Any) -> Any:
        return xp.broadcast_to(x, tuple(shape))

    def reshape(self, x: Any, shape: Any) -> Any:
        return xp.reshape(x, tuple(shape))

    # --- effects --------------------------------------------------------------------------------

    def add_(self, x: Any, y: Any) -> Any:
        x += y
        return x

    def set_tail(self, x: Any, start: int, y: Any) -> Any:
        x[start:, ...] = y
        return x

    # --- moving ---------------------------------------------------------------------------------

    def to(self, x: Any, device: Any) -> Any:
        return x.to_device(device)

    def to_copy(self, x: Any, device: Any) -> Any:
        return xp.asarray(x, device=device, copy=True)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        """Cast on the way, which the standard knows since 2023.12."""
        if _standard() < "2023.12":
            raise NotOffered("the array API standard casts and moves in one call since 2023.12")
        return xp.astype(x, dtype, device=device)

    def cast(self, x: Any, dtype: Any) -> Any:
        return xp.astype(x, dtype)

    def device_of(self, x: Any) -> Any:
        return x.device

    def to_numpy(self, x: Any) -> Any:
        """Exchange with NumPy by the standard's own protocol."""
        return np.from_dlpack(x)


def _device(name: str, evidence: str = "simulated") -> dict[str, str]:
    return role(str(xp.Device(name)), f"xp.Device({name!r})", evidence)


def _standard() -> str:
    return str(xp.__array_api_version__)
