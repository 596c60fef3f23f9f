"""The neutral list of dtypes, and operands whose results each of them holds.

The list has every dtype that one of the frameworks offers for arithmetic. Operands and results are
values that the dtype holds exactly, also halfway through a sum or a product, so that rounding is
never an excuse; they are as distinct as the dtype allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Matrix = Sequence[Sequence[Any]]


def bits(dtype: str) -> int:
    """Return the width of a dtype, as its name says it; a truth value is the narrowest of all."""
    digits = re.search(r"\d+", dtype)
    return int(digits.group()) if digits else 0


@dataclass(frozen=True)
class Values:
    """Operands whose results a dtype holds."""

    #: Made, moved and read back; with `right` an addition.
    left: Matrix
    right: Matrix
    #: A matrix product.
    rows: Matrix
    columns: Matrix
    #: Summed up, exactly in any order.
    parts: Matrix
    #: Held by the counterpart of a cast too.
    casts: Matrix


def _plus(matrix: Matrix, number: complex) -> Matrix:
    """Return a matrix whose first element needs more bits."""
    return [[matrix[0][0] + number, *matrix[0][1:]], *matrix[1:]]


def _signed(fine: float = 0) -> Values:
    small = [[2, -3], [5, -7]]
    left = _plus(small, fine) if fine else small
    return Values(left, [[11, 13], [-17, 19]], left, [[4, 6], [8, -9]], left, small)


def _complex(fine: float = 0) -> Values:
    small = [[2 + 3j, -3 + 5j], [5 - 7j, -7 + 2j]]
    left = _plus(small, complex(fine, -fine))
    return Values(left, [[11 - 2j, 13 + 4j], [-17 + 6j, 19 - 8j]], left, [[4 + 1j, 6 - 2j], [8 + 3j, -9 + 5j]], left, small)


_TRUTHS = [[True, False], [False, True]]
_POWERS = [[2.0, 4.0], [8.0, 16.0]]
_NATURALS = [[2, 3], [5, 7]]
_UNSIGNED = Values(_NATURALS, [[11, 13], [17, 19]], _NATURALS, [[4, 6], [8, 9]], _NATURALS, _NATURALS)
#: Three bits of significand, and nothing above 7 on the way.
_NARROW = Values(
    [[2.0, -3.0], [5.0, -7.0]], [[3.0, 5.0], [-7.0, 2.0]], [[2.0, -3.0], [1.5, 2.0]], [[2.0, -1.0], [-1.0, 1.0]],
    [[2.0, -1.0], [4.0, -3.0]], [[2.0, -3.0], [5.0, -7.0]],
)  # fmt: skip
#: The neutral list. The first element of wide floats has bits that narrower ones lose.
DTYPES: Mapping[str, Values] = {
    # No two truths are added, so that "or" and "plus" agree.
    "bool": Values(_TRUTHS, [[False, False], [True, False]], [[False, True], [True, False]], [[True, False], [True, True]],
                   [[True, False], [True, True]], _TRUTHS),
    # No product of two of its numbers but zero is one of its numbers.
    "int1": Values([[-1, 0], [0, -1]], [[0, -1], [0, 0]], [[-1, 0], [-1, 0]], [[0, 0], [-1, -1]], [[-1, 0], [0, 0]], [[-1, 0], [0, -1]]),
    "int2": Values([[-2, 1], [-1, 0]], [[1, -2], [-1, 1]], [[-2, 1], [-1, -1]], [[1, 0], [1, 1]], [[-1, 1], [-1, 0]],
                   [[-2, 1], [-1, 0]]),
    "int4": Values([[2, -3], [5, -7]], [[3, -4], [-6, 4]], [[2, -3], [-1, 2]], [[2, -1], [-1, 1]], [[2, -3], [5, -2]],
                   [[2, -3], [5, -7]]),
    **{f"int{width}": _signed() for width in (8, 16, 32, 64)},
    "uint1": Values([[1, 0], [0, 1]], [[0, 1], [0, 0]], [[0, 1], [1, 0]], [[1, 0], [1, 1]], [[0, 1], [0, 0]], [[1, 0], [0, 1]]),
    "uint2": Values([[2, 3], [1, 0]], [[1, 0], [1, 3]], [[1, 2], [3, 0]], [[1, 1], [1, 0]], [[1, 0], [2, 0]], [[2, 3], [1, 0]]),
    "uint4": Values(_NATURALS, [[4, 6], [8, 3]], [[2, 3], [1, 2]], [[2, 1], [3, 4]], [[2, 3], [4, 6]], _NATURALS),
    **{f"uint{width}": _UNSIGNED for width in (8, 16, 32, 64)},
    "float4_e2m1fn": Values([[2.0, -3.0], [4.0, -6.0]], [[-0.5, 1.5], [2.0, 3.0]], [[2.0, 1.0], [1.0, 0.5]],
                            [[1.5, -1.0], [1.0, 3.0]], [[2.0, -1.0], [1.0, -3.0]], [[2.0, -3.0], [4.0, -6.0]]),
    "float6_e2m3fn": _NARROW, "float6_e3m2fn": _NARROW,
    **{f"float8_{form}": _NARROW for form in ("e3m4", "e4m3", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2", "e5m2fnuz")},
    # Powers of two alone, without a sign and without a zero: equal terms add up to the next power.
    "float8_e8m0fnu": Values(_POWERS, _POWERS, _POWERS, [[4.0, 8.0], [2.0, 4.0]], [[4.0, 4.0]], _POWERS),
    "float16": _signed(), "bfloat16": _signed(), "float32": _signed(2.0**-13), "float64": _signed(2.0**-30),
    "complex32": _complex(), "complex64": _complex(2.0**-13), "complex128": _complex(2.0**-30),
}  # fmt: skip
#: What is cast to and from, where that is not float32. A no-op would ask nothing, so complex64 is only cast to.
COUNTERPARTS = {"float32": "int32", "complex32": "complex64", "complex64": None, "complex128": "complex64"}
#: Host values that need the whole width.
BEYOND: Mapping[str, Sequence[Any]] = {
    "float32": [2.0 + 2.0**-13, -3.0, 5.0, 7.0],
    "float64": [1e300, 2.0 + 2.0**-30, -1e-300, 7.0],
    "int64": [2**40 + 3, -(2**35) - 7, 2**31, 5],
    "uint64": [2**63 + 5, 2**32 + 3, 2**40, 7],
    "complex128": [1e300 + 2j, 3 - 1e-300j, 2 + 2.0**-30 + 5j, 5 - 7j],
}
WIDE = ("float64", "int64", "uint64", "complex128")


def counterpart(dtype: str) -> str | None:
    """Return the dtype to cast to; None where there is nothing to ask."""
    return COUNTERPARTS.get(dtype, "float32")


def raw(values: Any) -> dict[str, Any]:
    """Return numbers as they go to a worker: complex ones in two parts."""
    parts = [part(values, "real"), part(values, "imag")]
    return {"data": parts[0], "imag": parts[1]} if is_complex(values) else {"data": values}


def is_complex(values: Any) -> bool:
    """Say whether there are complex numbers in nested lists."""
    return any(map(is_complex, values)) if isinstance(values, list) else isinstance(values, complex)


def part(values: Any, name: str) -> Any:
    """Return the `real` or the `imag` parts of nested lists."""
    return [part(v, name) for v in values] if isinstance(values, list) else getattr(values, name)


def plus(left: Matrix, right: Matrix) -> Matrix:
    """Add two matrices."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]


def product(rows: Matrix, columns: Matrix) -> Matrix:
    """Multiply two matrices."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*columns, strict=True)] for row in rows]
