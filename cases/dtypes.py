"""Dtypes on a device: made, moved, read back, computed with and cast, for every dtype there is.

The dtypes and their operands are in `cases.dtype_values`.

Dtypes are compared by their width alone: with fewer bits, or as many of another kind, not every
value can be held, and the dtype was narrowed. The values of 64-bit dtypes stay within the 32-bit
ones here, so that a framework which narrows can still answer; that larger ones survive is asked
of host memory, and with the wide dtypes switched on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cases.answers import ELSEWHERE, GARBAGE, NEUTRAL, RAISES, WORKS, WRONG, Inconclusive, Vocabulary, at_home, refused
from cases.case import case
from cases.dtype_values import BEYOND, DTYPES, WIDE, Matrix, Values, bits, counterpart, is_complex, part, plus, product, raw
from cases.lab import Lab, Place, Symbol
from cases.reading import REDUCED, Reading, walk

# --- answers -------------------------------------------------------------------------------------

WORD = {"works": (WORKS, "the right value, in the dtype that was asked for")}
NARROWS = {
    "narrows-silently": (WRONG, "another dtype, which doesn't hold every value of the one asked for, and no warning that names either"),
    "narrows-with-warning": (NEUTRAL, "another dtype, which doesn't hold every value of the one asked for, and a warning that says so"),
}


def told(reading: Reading, *dtypes: str) -> bool:
    """Say whether a warning names one of these dtypes."""
    texts = [w["text"] for mark in reading.program.marks for w in reading.fact(mark).get("warnings", [])]
    return any(re.search(rf"\b{dtype}\b", text) for dtype in dtypes for text in texts)


def _operands_as_asked(reading: Reading) -> None:
    """Raise Inconclusive where an operand was made in another dtype: that is the answer to another question, `create`.

    What comes of such an operand says nothing of the dtype that is asked about: it is never seen by the step in question.
    """
    for step in walk(reading.program.steps):
        made = reading.steps.get(step["id"], {}).get("value", {}).get("dtype")
        if step.get("op") == "tensor" and not step.get("attempt") and made is not None:
            asked = step["args"][1]["dtype"]
            if made != asked:
                raise Inconclusive(f"it needs an operand of {asked}, and that comes out as {made} where it is made")


def _wrong(reading: Reading, reduced: bool) -> bool:
    """Say whether the value is wrong; a product in reduced precision is not."""
    step = reading.program.marks["value"]
    return reading.step_right(step) is False and not (reduced and reading.step_right(step, REDUCED))


@cache
def keeping(dtype: str, computed: bool = False, reduced: bool = False, fits: bool = True) -> Vocabulary:
    """Return the answers to "does it come out right, and in this dtype?".

    What is computed may be wider than its operands by design (sums of integers are, often); what
    is made, moved or cast was asked for by name. `reduced` is for products: accelerators multiply
    32-bit floats in fewer bits. `fits` says whether the dtype can hold the result at all: a count of
    truths is no truth.
    """
    widens = {"widens": (WORKS if computed else NEUTRAL, "the right value, in a dtype of more bits")}

    def decide(reading: Reading) -> str:
        _operands_as_asked(reading)
        word = refused(reading)
        got = str(reading.value("result").get("dtype", dtype))
        if word:
            return word
        if got != dtype and bits(got) <= bits(dtype):
            return "narrows-with-warning" if told(reading, dtype, got) else "narrows-silently"
        if _wrong(reading, reduced) or (got == dtype and not fits):
            return "garbage"
        if not at_home(reading):
            return "moves-elsewhere"
        return "works" if got == dtype else "widens"

    narrowest, widest = bits(dtype) == 0, bits(dtype) == 128
    words = {**(WORD if fits else {}), **({} if widest else widens), **({} if narrowest else NARROWS)}
    return Vocabulary({**RAISES, **GARBAGE, **ELSEWHERE, **words}, decide)


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
    numbers = part(values.casts, "real") if is_complex(values.casts) else values.casts
    made = _made(lab, numbers, "int32" if dtype == "float32" else "float32", lab.device)
    return lab.attempt.cast(made, {"dtype": dtype}), numbers, {"home": made}


def _cast_from(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    made = _made(lab, values.casts, dtype, lab.device)
    return lab.attempt.cast(made, {"dtype": counterpart(dtype)}), values.casts, {"home": made}


def _cast_on_host(lab: Lab, dtype: str, values: Values) -> tuple[Symbol, Any, dict[str, Symbol]]:
    home, made = _at(lab, lab.accelerator), _made(lab, values.casts, dtype, lab.host)
    cast = lab.attempt.cast(made, {"dtype": counterpart(dtype)})
    return lab.attempt.to(cast, lab.accelerator), values.casts, {"home": home, "made": made, "cast": cast}


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
        keeping(
            reached, computed=name in ("add", "matmul", "sum"), reduced=name == "matmul" and dtype in ("float32", "complex64"),
            fits=(name, dtype) != ("sum", "bool"),
        ),
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
        control=f"dtypes/{dtype}/cast-on-host", claims=("D1.19", "D3.5"), wanted={"dtype": other},  # the same, in two steps
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

#: Plain Python numbers: what they are called, and the dtypes that they usually become.
LITERALS: Mapping[str, tuple[str, list[Any], tuple[str, ...]]] = {
    "bool": ("booleans", [True, False, True], ("bool",)),
    "int": ("integers", [2, -3, 5], ("int64", "int32")),
    "wide-int": ("integers beyond 32 bits", [2**40 + 3, -(2**35) - 7, 5], ("int64",)),
    "float": ("floats", [2.5, -3.25, 5.0], ("float32", "float64")),
    "complex": ("complex numbers", [2 + 3j, -3 + 5j], ("complex64", "complex128")),
}


def _register_literal(name: str) -> None:
    called, values, dtypes = LITERALS[name]

    @case(
        f"dtypes/literal/{name}",
        default_dtype(*dtypes),
        question=f"Which dtype do plain Python {called} get, made on the device with none said?",
        why="A default that the device lacks, or that is wider than the model's, decides which code works at all.",
        control="placement/create/device", claims=("D1.20",) if name == "float" else (),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        home = _at(lab, lab.device)
        result = lab.attempt.literal(raw(values), lab.device)
        return {"result": result, "value": lab.observe(result, values), "home": home}


for _name in LITERALS:
    _register_literal(_name)
