"""Dtypes on a device: made, moved, read back, computed with and cast, for every dtype there is.

The neutral list holds every dtype that one of the frameworks offers for arithmetic. Operands and
results are values that the dtype holds exactly, also halfway through a sum or a product, so that
rounding is never an excuse; they are as distinct as the dtype allows.

Dtypes are compared by their width alone: with fewer bits, or as many of another kind, not every
value can be held, and the dtype was narrowed. The values of 64-bit dtypes stay within the 32-bit
ones here, so that a framework which narrows can still answer; that larger ones survive is asked
of host memory, and with the wide dtypes switched on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cases.answers import ELSEWHERE, GARBAGE, NEUTRAL, RAISES, WORKS, WRONG, Vocabulary, at_home, refused
from cases.case import case
from cases.lab import Lab, Place, Symbol
from cases.reading import REDUCED, Reading

Matrix = Sequence[Sequence[Any]]


def bits(dtype: str) -> int:
    """Return the width of a dtype, as its name says it; a truth value is the narrowest of all."""
    digits = re.search(r"\d+", dtype)
    return int(digits.group()) if digits else 0


# --- answers -------------------------------------------------------------------------------------

WORD = {"works": (WORKS, "the right value, in the dtype that was asked for")}
NARROWS = {
    "narrows-silently": (WRONG, "another dtype, which doesn't hold every value of the one asked for, and no warning that names either"),
    "narrows-with-warning": (NEUTRAL, "another dtype, which doesn't hold every value of the one asked for, and a warning that says so"),
}


def told(reading: Reading, *dtypes: str) -> bool:
    """Say whether a warning, where an operand was made or later, names one of these dtypes."""
    texts = [w["text"] for mark in reading.program.marks for w in reading.fact(mark).get("warnings", [])]
    return any(re.search(rf"\b{dtype}\b", text) for dtype in dtypes for text in texts)


def _wrong(reading: Reading, reduced: bool) -> bool:
    """Say whether the value is wrong; a product in reduced precision is not."""
    step = reading.program.marks["value"]
    return reading.step_right(step) is False and not (reduced and reading.step_right(step, REDUCED))


@cache
def keeping(dtype: str, computed: bool = False, reduced: bool = False) -> Vocabulary:
    """Return the answers to "does it come out right, and in this dtype?".

    What is computed may be wider than its operands by design (sums of integers are, often); what
    is made, moved or cast was asked for by name. `reduced` is for products: accelerators multiply
    32-bit floats in fewer bits.
    """
    widens = {"widens": (WORKS if computed else NEUTRAL, "the right value, in a dtype of more bits")}

    def decide(reading: Reading) -> str:
        word = refused(reading)
        got = str(reading.value("result").get("dtype", dtype))
        if word:
            return word
        if got != dtype and bits(got) <= bits(dtype):
            return "narrows-with-warning" if told(reading, dtype, got) else "narrows-silently"
        if _wrong(reading, reduced):
            return "garbage"
        if not at_home(reading):
            return "moves-elsewhere"
        return "works" if got == dtype else "widens"

    narrowest, widest = bits(dtype) == 0, bits(dtype) == 128
    words = {**RAISES, **GARBAGE, **ELSEWHERE, **WORD, **({} if narrowest else NARROWS), **({} if widest else widens)}
    return Vocabulary(words, decide)


def default_dtype(*dtypes: str) -> Vocabulary:
    """Return the answers to "which dtype has it when none is said?"."""

    def decide(reading: Reading) -> str:
        word = refused(reading) or ("garbage" if reading.right("value") is False else None)
        if word or not at_home(reading):
            return word or "moves-elsewhere"
        got = str(reading.value("result").get("dtype"))
        return got if got in dtypes else "other-dtype"

    other = {"other-dtype": (NEUTRAL, "the right value, in a dtype that is none of these")}
    words = {dtype: (WORKS, f"the right value, as {dtype}") for dtype in dtypes}
    return Vocabulary({**RAISES, **GARBAGE, **ELSEWHERE, **words, **other}, decide)


# --- values --------------------------------------------------------------------------------------


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
                   [[False, True], [False, False]], _TRUTHS),
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


def raw(values: Any) -> dict[str, Any]:
    """Return numbers as they go to a worker: complex ones in two parts."""
    parts = [_part(values, "real"), _part(values, "imag")]
    return {"data": parts[0], "imag": parts[1]} if _is_complex(values) else {"data": values}


def _is_complex(values: Any) -> bool:
    return any(map(_is_complex, values)) if isinstance(values, list) else isinstance(values, complex)


def _part(values: Any, name: str) -> Any:
    return [_part(v, name) for v in values] if isinstance(values, list) else getattr(values, name)


def plus(left: Matrix, right: Matrix) -> Matrix:
    """Add two matrices."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]


def product(rows: Matrix, columns: Matrix) -> Matrix:
    """Multiply two matrices."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*columns, strict=True)] for row in rows]


# --- questions -----------------------------------------------------------------------------------


def _made(lab: Lab, values: Matrix, dtype: str, on: Place) -> Symbol:
    parts = raw(values)
    return lab.tensor(parts["data"], on, dtype, imag=parts.get("imag"))


def _at(lab: Lab, place: Place) -> Symbol:
    """Return a value whose device is the one that the result should be on."""
    return lab.full((2,), 3.0, place)


Ask = Callable[[Lab, str, Values], tuple[Symbol, Any, dict[str, Symbol]]]


def _create(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    home = _at(lab, lab.device)
    return lab.attempt.tensor(raw(values.left), {"dtype": dtype}, lab.device), values.left, {"home": home}


def _move(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    home, made = _at(lab, lab.accelerator), _made(lab, values.left, dtype, lab.host)
    return lab.attempt.to(made, lab.accelerator), values.left, {"home": home, "made": made}


def _read_back(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    home, made = _at(lab, lab.host), _made(lab, values.left, dtype, lab.accelerator)
    return lab.attempt.to(made, lab.host), values.left, {"home": home, "made": made}


def _add(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    left, right = (_made(lab, v, dtype, lab.device) for v in (values.left, values.right))
    return lab.attempt.add(left, right), plus(values.left, values.right), {"home": left, "made": right}


def _matmul(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    rows, columns = (_made(lab, v, dtype, lab.device) for v in (values.rows, values.columns))
    return lab.attempt.matmul(rows, columns), product(values.rows, values.columns), {"home": rows, "made": columns}


def _sum(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    made = _made(lab, values.parts, dtype, lab.device)
    return lab.attempt.sum(made), sum(x for row in values.parts for x in row), {"home": made}


def _cast_to(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    # From real numbers also to complex ones.
    numbers = _part(values.casts, "real") if _is_complex(values.casts) else values.casts
    made = _made(lab, numbers, "int32" if dtype == "float32" else "float32", lab.device)
    return lab.attempt.cast(made, {"dtype": dtype}), numbers, {"home": made}


def _cast_from(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    made = _made(lab, values.casts, dtype, lab.device)
    return lab.attempt.cast(made, {"dtype": counterpart(dtype)}), values.casts, {"home": made}


def _cast_on_host(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    home, made = _at(lab, lab.accelerator), _made(lab, values.casts, dtype, lab.host)
    cast = lab.attempt.cast(made, {"dtype": counterpart(dtype)})
    return lab.attempt.to(cast, lab.accelerator), values.casts, {"home": home, "made": made, "cast": cast}


def counterpart(dtype: str) -> str | None:
    """Return the dtype to cast to; None where there is nothing to ask."""
    return COUNTERPARTS.get(dtype, "float32")


@dataclass(frozen=True)
class Question:
    """What is asked of each dtype."""

    #: `{dtype}` and `{other}`, the counterpart of a cast.
    text: str
    why: str
    ask: Ask
    claims: tuple[str, ...] = ()


_LACKING = "A device that lacks the dtype should say so here; one that narrows changes results without a word."
QUESTIONS: Mapping[str, Question] = {
    "create": Question("{dtype}: can it be made on the device?", _LACKING, _create, ("D1.21",)),
    "move": Question(
        "{dtype}: can a host value be moved to the accelerator?",
        "Some devices store what they cannot compute with, others refuse the move itself.", _move, ("D1.19", "D1.21"),
    ),
    "read-back": Question(
        "{dtype}: can it be read back from the accelerator?", "What can be stored and not read is lost.", _read_back, ("D1.21",)
    ),
    "add": Question(
        "{dtype}: can the device add it?", "Storage alone is no support: the first operation may fail.", _add, ("D1.21",)
    ),
    "matmul": Question(
        "{dtype}: can the device multiply matrices of it?",
        "Models are cast to narrow dtypes for the sake of products, which not every device has.", _matmul, ("D1.22",),
    ),
    "sum": Question(
        "{dtype}: can the device sum it up, and in which dtype?",
        "Some frameworks sum integers in a wider dtype, others let them wrap.", _sum,
    ),
    "cast-to": Question(
        "{dtype}: can the device cast {source} to it?", "A cast is how most code meets a dtype that the device lacks.", _cast_to
    ),
    "cast-from": Question(
        "{dtype}: can the device cast it to {other}?",
        "A value that is stored and cannot be cast has to go back to the host.", _cast_from, ("D1.21",),
    ),
    "cast-on-host": Question(
        "{dtype}: does casting to {other} on the host, then moving, reach the accelerator?",
        "The way out where the device itself cannot cast.", _cast_on_host, ("D1.21",),
    ),
}  # fmt: skip


def _register(name: str, dtype: str) -> None:
    question = QUESTIONS[name]
    other = counterpart(dtype)
    casts = name in ("cast-from", "cast-on-host")
    if casts and other is None:
        return
    reached = other if casts and other is not None else dtype
    control = f"dtypes/float32/{name}" if dtype != "float32" else "placement/create/device" if name == "create" else "dtypes/float32/create"

    @case(
        f"dtypes/{dtype}/{name}",
        keeping(reached, name in ("add", "matmul", "sum"), name == "matmul" and dtype in ("float32", "complex64")),
        question=question.text.format(dtype=dtype, other=other, source="int32" if dtype == "float32" else "float32"),
        why=question.why, control=control, claims=question.claims, wanted={"dtype": reached},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        result, expected, others = question.ask(lab, dtype, DTYPES[dtype])
        return {"result": result, "value": lab.observe(result, expected), **others}


for _dtype in DTYPES:
    for _name in QUESTIONS:
        _register(_name, _dtype)


def _register_host_memory(dtype: str) -> None:
    @case(
        f"dtypes/{dtype}/host-memory",
        keeping(dtype),
        question=f"{dtype}: do host values that need the whole width survive the way to the device?",
        why="Tables of ids and time stamps are loaded as 64-bit arrays; cut to 32 bits they are other numbers.",
        control="dtypes/float32/create" if dtype == "float32" else "dtypes/float32/host-memory", wanted={"dtype": dtype},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        home = _at(lab, lab.device)
        memory = lab.do.buffer(raw(BEYOND[dtype]), "aligned", dtype)
        result = lab.attempt.from_buffer(memory, lab.device)
        return {"result": result, "value": lab.observe(result, BEYOND[dtype]), "home": home}


def _register_switched_on(dtype: str) -> None:
    @case(
        f"dtypes/{dtype}/create-switched-on",
        keeping(dtype),
        question=f"{dtype}: with the wide dtypes switched on, is it made on the device in its whole width?",
        why="The switch is what code that needs 64 bits relies on.",
        control="dtypes/float32/create", environment="wide-dtypes", wanted={"dtype": dtype},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        home = _at(lab, lab.device)
        result = lab.attempt.tensor(raw(BEYOND[dtype]), {"dtype": dtype}, lab.device)
        return {"result": result, "value": lab.observe(result, BEYOND[dtype]), "home": home}


def _register_move_and_cast(dtype: str, other: str) -> None:
    @case(
        f"dtypes/{dtype}/move-and-cast",
        keeping(other),
        question=f"{dtype}: does moving and casting to {other} in one step reach an accelerator that may lack {dtype}?",
        why="The order of the two decides whether the device ever sees the dtype that it lacks.",
        control="dtypes/float32/move", claims=("D1.19", "D3.5"), wanted={"dtype": other},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        values = DTYPES[dtype].casts
        home, made = _at(lab, lab.accelerator), _made(lab, values, dtype, lab.host)
        result = lab.attempt.to_both(made, lab.accelerator, {"dtype": other})
        return {"result": result, "value": lab.observe(result, values), "home": home, "made": made}


for _dtype in BEYOND:
    _register_host_memory(_dtype)
for _dtype in WIDE:
    _register_switched_on(_dtype)
for _dtype, _other in (("float64", "float32"), ("int64", "int32"), ("complex128", "complex64")):
    _register_move_and_cast(_dtype, _other)

#: Plain Python numbers, and the dtypes that they usually become.
LITERALS: Mapping[str, tuple[list[Any], tuple[str, ...]]] = {
    "bool": ([True, False, True], ("bool", "uint8")),
    "int": ([2, -3, 5], ("int64", "int32")),
    "wide-int": ([2**40 + 3, -(2**35) - 7, 5], ("int64",)),
    "float": ([2.5, -3.25, 5.0], ("float32", "float64")),
    "complex": ([2 + 3j, -3 + 5j], ("complex64", "complex128")),
}


def _register_literal(name: str) -> None:
    values, dtypes = LITERALS[name]

    @case(
        f"dtypes/literal/{name}",
        default_dtype(*dtypes),
        question=f"Which dtype do Python {name.replace('wide-int', 'integers beyond 32 bits').replace('int', 'integer')} literals get?"
        if name != "wide-int" else "Which dtype do Python integers beyond 32 bits get, made on the device?",
        why="A default that the device lacks, or that is wider than the model's, decides which code works at all.",
        control="placement/create/device", claims=("D1.20",) if name == "float" else (),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        home = _at(lab, lab.device)
        result = lab.attempt.literal(raw(values), lab.device)
        return {"result": result, "value": lab.observe(result, values), "home": home}


for _name in LITERALS:
    _register_literal(_name)
