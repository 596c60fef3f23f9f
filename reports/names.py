"""What names say by themselves: which are devices, dtypes, plain Python, and what a call of one gives."""

from __future__ import annotations

from collections.abc import Sequence

#: What an expression is known to be: a framework's value, a device, one of its modules (layers), or nothing of the kind.
VALUE, DEVICE, LAYER, OTHER = "value", "device", "layer", "other"
#: Builtins whose results are plain Python.
PLAIN_BUILTINS = frozenset((
    "bool", "bytes", "complex", "dict", "enumerate", "float", "format", "frozenset", "hash", "id", "input", "int", "isinstance", "len",
    "list", "open", "ord", "print", "range", "repr", "round", "set", "sorted", "str", "tuple", "type", "zip",
))  # fmt: skip
#: Attributes and methods of a value that are plain Python.
PLAIN = frozenset((
    "shape", "ndim", "dtype", "itemsize", "nbytes", "size", "dim", "numel", "item", "tolist", "numpy", "is_cuda", "requires_grad",
    "stride", "element_size", "is_contiguous", "data_ptr", "weak_type", "committed",
))  # fmt: skip
#: What names or gives devices.
DEVICES = frozenset(("device", "Device", "devices", "local_devices", "current_device", "get_device"))
#: Classes whose instances are values and not layers.
_VALUES = ("Tensor", "Parameter", "Buffer", "Array")
#: How names of dtypes begin.
DTYPES = ("int", "uint", "float", "bfloat", "complex", "bool", "half", "double")


def made(path: str) -> str:
    """Return what a call of the framework's own name gives."""
    last = path.rpartition(".")[2]
    if last in DEVICES:
        return DEVICE
    return LAYER if last[:1].isupper() and not any(word in last for word in _VALUES) else VALUE


def annotated(path: str) -> str:
    """Return what an annotation with the framework's own name says."""
    last = path.rpartition(".")[2]
    return DEVICE if last in DEVICES else VALUE if last.endswith(("Tensor", "Parameter", "Array", "ndarray")) else LAYER


def called(kind: str | None) -> str | None:
    """Return what a call of something gives: a layer gives a value."""
    return VALUE if kind in (LAYER, VALUE) else kind


def joined(kinds: Sequence[str | None]) -> str | None:
    """Return what an operation with several operands gives."""
    return VALUE if VALUE in kinds else None if None in kinds else OTHER
