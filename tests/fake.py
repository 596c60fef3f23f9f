"""A small tensor framework in pure Python, with a switch for each defect a framework can have.

What a healthy one does, so that its answers can be foretold:

- operands on different devices raise `DeviceError`, which names the operation and both devices; a
  0-dim value on the host counts as a scalar and follows the other operand, whatever its dtype;
- Python scalars are weak: the result has the tensor's dtype; 0-dim values likewise;
- moving to the device a value is on returns the very value; a forced copy never shares storage;
- `copy_` and slice assignment copy between devices, all other writes need one device;
- accelerators are asynchronous: work is queued, errors in it surface where something waits;
- a device that isn't there raises where it is first used; `dev` and `dev:0` are one device.

Values are functions of a position and not lists, so that 256 x 256 costs nothing until it is read:
that is also what makes the queue, and freed or never written memory, easy to act out. A defect is
a fault of an operation or of the runtime; none knows a case or an answer.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Cells = Callable[[int], Any]
#: What memory holds that nobody wrote. No case expects it.
JUNK = -4321.5
#: The switches that are on. Set for the life of one program, as a broken build would be throughout.
FAULTS: set[str] = set()


class DeviceError(Exception):
    """Operands on different devices, or a device that isn't there."""


class RefusedError(Exception):
    """An operation that a device hasn't got."""


class LateError(Exception):
    """Queued work that failed."""


# --- dtypes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dtype:
    """A dtype: its category, its width, and for floats the stored bits of the significand."""

    name: str
    category: str
    bits: int
    significand: int = 0
    largest: float = math.inf

    def cast(self, value: Any) -> Any:
        """Return a Python number as this dtype holds it."""
        if self.category == "complex":
            part = DTYPES[f"float{self.bits // 2}"]
            number = complex(value)
            return complex(part.cast(number.real), part.cast(number.imag))
        if isinstance(value, complex):
            value = value.real
        if self.category == "bool":
            return bool(value)
        if self.category == "float":
            return self._round(float(value))
        whole = int(value) if math.isfinite(value) else 0
        wrapped = whole % (1 << self.bits)
        return wrapped - (1 << self.bits) if self.category == "int" and wrapped >> (self.bits - 1) else wrapped

    def _round(self, value: float) -> float:
        if self.bits >= 64 or not math.isfinite(value) or value == 0.0:
            return value
        if self.name == "float32":
            if abs(value) < 1 << 24 and value.is_integer():
                return value
            try:
                return float(struct.unpack("f", struct.pack("f", value))[0])
            except OverflowError:
                return math.copysign(math.inf, value)
        fraction, exponent = math.frexp(value)
        scale = 1 << (self.significand + 1)
        rounded = math.ldexp(round(fraction * scale) / scale, exponent)
        return math.copysign(math.inf, value) if abs(rounded) > self.largest else rounded


DTYPES: dict[str, Dtype] = {
    d.name: d
    for d in (
        Dtype("bool", "bool", 1),
        *(Dtype(f"int{bits}", "int", bits) for bits in (1, 2, 4, 8, 16, 32, 64, 128)),
        *(Dtype(f"uint{bits}", "uint", bits) for bits in (1, 2, 4, 8, 16, 32, 64, 128)),
        Dtype("float4_e2m1fn", "float", 4, 1, 6.0),
        Dtype("float6_e2m3fn", "float", 6, 3, 7.5),
        Dtype("float6_e3m2fn", "float", 6, 2, 28.0),
        Dtype("float8_e3m4", "float", 8, 4, 15.5),
        Dtype("float8_e4m3", "float", 8, 3, 240.0),
        Dtype("float8_e4m3fn", "float", 8, 3, 448.0),
        Dtype("float8_e4m3fnuz", "float", 8, 3, 240.0),
        Dtype("float8_e4m3b11fnuz", "float", 8, 3, 30.0),
        Dtype("float8_e5m2", "float", 8, 2, 57344.0),
        Dtype("float8_e5m2fnuz", "float", 8, 2, 57344.0),
        Dtype("float8_e8m0fnu", "float", 8, 0, 2.0**127),
        Dtype("float16", "float", 16, 10, 65504.0),
        Dtype("bfloat16", "float", 16, 7, 3.3895313892515355e38),
        Dtype("float32", "float", 32, 23),
        Dtype("float64", "float", 64, 52),
        Dtype("float128", "float", 128, 112),
        Dtype("complex32", "complex", 32),
        Dtype("complex64", "complex", 64),
        Dtype("complex128", "complex", 128),
    )
}
_ORDER = ("bool", "uint", "int", "float", "complex")


def promote(one: Dtype, other: Dtype) -> Dtype:
    """Return the dtype of a result: the higher category, then the greater width, then the first."""
    return max(one, other, key=lambda d: (_ORDER.index(d.category), d.bits))


#: What a dtype becomes where it is narrowed or widened: the neighbour of its own kind, or the nearest of another.
_LADDERS = (
    ("float8_e4m3fn", "float16", "float32", "float64", "float128"),
    ("float16", "complex32", "complex64", "complex128"),
    ("bool", "uint8"),
    *(("bool", *(f"{kind}{2**power}" for power in range(8))) for kind in ("int", "uint")),
    ("float8_e5m2", "bfloat16", "float32"),
    *(("float4_e2m1fn", f"float8_{form}", "float16") for form in ("e4m3fn", "e3m4", "e4m3", "e4m3fnuz", "e4m3b11fnuz")),
    *(("float4_e2m1fn", f"float8_{form}", "bfloat16") for form in ("e5m2", "e5m2fnuz", "e8m0fnu")),
    *(("float4_e2m1fn", f"float6_{form}", "float16") for form in ("e2m3fn", "e3m2fn")),
    ("int4", "float4_e2m1fn"),
    ("int1", "bool"),
)
_STEPS = [(ladder[i], ladder[i + 1]) for ladder in reversed(_LADDERS) for i in range(len(ladder) - 1)]
NARROWED = {wide: narrow for narrow, wide in _STEPS}
WIDENED = dict(_STEPS)


# --- devices -------------------------------------------------------------------------------------


class Device:
    """A device handle: `host`, or `dev` with an ordinal that is 0 when it isn't said."""

    _serial = itertools.count()

    def __init__(self, kind: str, index: int | None = None) -> None:
        """Make a handle; whether the device is there is asked where it is used."""
        self.serial = next(Device._serial)
        self.kind = kind
        self.index = None if kind == "host" else index or 0

    @property
    def name(self) -> str:
        """Return what the framework prints it as."""
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if "devices-not-comparable" in FAULTS:
            raise RefusedError("devices can't be compared")
        if isinstance(other, str) and "devices-equal-names" in FAULTS:
            return self.name == other
        if "devices-compare-handles" in FAULTS:
            return self is other
        if "devices-all-equal" in FAULTS:
            return isinstance(other, Device)
        if "devices-compare-one-way" in FAULTS and isinstance(other, Device):
            return self.serial <= other.serial
        return isinstance(other, Device) and self.name == other.name

    def __hash__(self) -> int:
        if "devices-hash-handles" in FAULTS:
            return self.serial
        return 0 if "devices-all-equal" in FAULTS else hash(self.name)


class Spread(Device):
    """Two accelerators that share a value."""

    def __init__(self, first: Device, second: Device) -> None:
        """Take the devices; rows go to them in this order."""
        super().__init__(first.kind)
        self.index = None
        self.kind = f"{first.name} {second.name}"


# --- values --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ramp:
    """Cells that count upwards."""

    start: int

    def __call__(self, i: int) -> Any:
        """Return the i-th element."""
        return self.start + i


@dataclass(frozen=True)
class Held:
    """Cells as a dtype holds them. Equal ones hold equal elements, which saves looking at each."""

    cells: Cells
    dtype: Dtype

    def __call__(self, i: int) -> Any:
        """Return the i-th element."""
        return self.dtype.cast(self.cells(i))


class Storage:
    """Memory on one device. Its cells are replaced, never changed: who took them keeps them."""

    def __init__(self, cells: Cells, constant: Any = None, error: Exception | None = None) -> None:
        """Take the cells; `constant` where all are alike, `error` where the work that makes them fails."""
        self.cells = cells
        self.constant = constant
        self.error = error


class Tensor:
    """A strided view of a storage."""

    def __init__(self, storage: Storage, shape: Sequence[int], dtype: Dtype, device: Device, offset: int = 0,
                 strides: Sequence[int] | None = None, memory: str = "device") -> None:  # fmt: skip
        """Look at a storage; rows follow one another unless strides are given."""
        self.storage = storage
        self.shape = tuple(shape)
        self.dtype = dtype
        self.device = device
        self.offset = offset
        self.strides = packed(self.shape) if strides is None else tuple(strides)
        self.memory = memory

    @property
    def count(self) -> int:
        """Return how many elements there are."""
        return math.prod(self.shape)

    def positions(self) -> Callable[[int], int]:
        """Return where in the storage the i-th element is, as the view is now."""
        offset, axes = self.offset, list(zip(reversed(self.shape), reversed(self.strides)))  # noqa: B905  Python 3.9

        def position(i: int) -> int:
            where = offset
            for edge, stride in axes:
                i, digit = divmod(i, edge)
                where += digit * stride
            return where

        return position

    def cells(self) -> Cells:
        """Return the elements by position, as they are now."""
        cells, offset = self.storage.cells, self.offset
        if self.strides == packed(self.shape):
            return cells if offset == 0 else lambda i: cells(offset + i)
        position = self.positions()
        return lambda i: cells(position(i))


class Elements(Sequence[Any]):
    """What reading gives: the elements, computed when looked at."""

    def __init__(self, cells: Cells, count: int) -> None:
        """Take the cells as they are when the value is read."""
        self._cells = cells
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: Any) -> Any:
        if i >= self._count:  # iteration ends by it
            raise IndexError(i)
        return self._cells(i)


def packed(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of rows that follow one another."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def flat(values: Any) -> Iterator[Any]:
    """Yield the numbers of nested lists."""
    if isinstance(values, (list, tuple)):
        for item in values:
            yield from flat(item)
    else:
        yield values


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of nested lists."""
    return (len(values), *(shape_of(values[0]) if values else ())) if isinstance(values, (list, tuple)) else ()
