"""Scalars: which values count as one, and go to the other operand's device.

An id says what the operand in question is, where it and the other operand are, and on which side of
the operator it stands: `scalars/zero-dim/host-accelerator/left` multiplies a 0-dim host value by an
accelerator's vector, `.../right` the vector by the value. Python's own numbers have no place:
`scalars/python-float/mul/left`. Two axes beside the scalar's kind stand here too, since they decide
in the same kernels: layouts (a broadcast is one) and dtypes other than the tensor's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases.answers import WORKING, Vocabulary, placed, promotion, without
from cases.case import case
from cases.lab import Expected, Lab, Numbers, Place, Symbol
from cases.placement import COUNT, PLACES, sentinel

CONTROL = ("device", "device")
MIXED = ("host", "accelerator")
SIDES = ("left", "right")
#: Neither zero nor one; halves, so that a result in an integer dtype is not right.
SCALAR = 2.5
#: Few and exact in every float dtype, for questions about the result's dtype.
FRACTIONS = [2.5, 3.25, 5.75, 7.5]
WHOLES = [2, 3, 5, 7]
#: Two rows of distinct values, not square: reading it transposed gives other numbers.
MATRIX = [[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]]
OTHER = [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]

Make = Callable[[Lab, Place], Symbol]


def _question(lab: Lab, op: str, side: str, scalar: Symbol | float, other: Symbol) -> Symbol:
    ask = getattr(lab.attempt, op)
    result: Symbol = ask(scalar, other) if side == "left" else ask(other, scalar)
    return result


# --- Python's numbers ----------------------------------------------------------------------------

#: What a whole number or a truth does to a float tensor, or a fraction to an integer one.
WEAK = promotion("keeps-dtype", "other-dtype", "truncates")
WIDE = promotion("keeps-dtype", "takes-scalar-dtype", "other-dtype")
LOSSY = promotion("takes-scalar-dtype", "other-dtype", "truncates")


@dataclass(frozen=True)
class Literal:
    """A number of Python's, beside a tensor of some dtype. Its own dtype is the one Python computes in."""

    name: str
    value: float
    dtype: str
    tensor: str
    values: list[float] | list[int]
    answers: Vocabulary
    operations: tuple[str, ...] = ("add", "mul")
    claims: tuple[str, ...] = ()


LITERALS = (
    Literal("python-int", 3, "int64", "float32", FRACTIONS, WEAK),
    Literal("python-float", SCALAR, "float64", "float32", FRACTIONS, WIDE, claims=("D1.10",)),
    Literal("python-bool", True, "bool", "float32", FRACTIONS, WEAK),
    Literal("python-float-on-int32", SCALAR, "float64", "int32", WHOLES, LOSSY, ("mul",)),
)


def _register_literal(literal: Literal, op: str, side: str) -> None:
    @case(
        f"scalars/{literal.name}/{op}/{side}",
        literal.answers,
        question=f"{op}: which dtype has a {literal.tensor} tensor with a Python {literal.name.split('-')[1]} on its {side}?",
        why="A number in the source should neither move a tensor, nor widen it and with it everything computed from it.",
        control=f"placement/{op}/device-device",
        claims=literal.claims,
        wanted={"tensor": literal.tensor, "scalar": literal.dtype},
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        tensor = lab.tensor(literal.values, lab.device, literal.tensor)
        result = _question(lab, op, side, literal.value, tensor)
        expected = [v + literal.value if op == "add" else v * literal.value for v in literal.values]
        return {"result": result, "value": lab.observe(result, expected), "home": tensor}


for _literal in LITERALS:
    for _op in _literal.operations:
        for _side in SIDES:
            _register_literal(_literal, _op, _side)


# --- tensors that are nearly numbers -------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One kind of operand, and the other operand that it is multiplied by."""

    name: str
    #: What it is, as the question says it.
    says: str
    make: Make
    other: Make
    #: What must be read; None for a result that holds nothing.
    expected: Expected | None
    why: str
    #: Where the operand and the other one are, beside the control and host with accelerator.
    pairs: tuple[tuple[str, str], ...] = ()
    operation: str = "mul"
    claims: tuple[str, ...] = ()


def vector(lab: Lab, on: Place) -> Symbol:
    """Make a vector so long that its memory isn't handed out again."""
    return lab.ramp((COUNT,), on, start=2)


def _matrix(lab: Lab, on: Place) -> Symbol:
    return lab.tensor(OTHER, on)


def _empty(lab: Lab, on: Place) -> Symbol:
    return lab.tensor([], on)


SCALED = Numbers(COUNT, lambda i: SCALAR * (2.0 + i))
EXCEPTION = "Some frameworks let a 0-dim value of the host follow the other operand; code that relies on it breaks elsewhere."
SHAPE_RULE = "One element is not a scalar everywhere: a shape that broadcasts may still be refused, or moved in silence."
LAYOUT_RULE = "A kernel that ignores offset or strides reads the wrong elements, without a word."
EMPTY_RULE = "A check that skips empty operands lets a program work until its first input that isn't."


def _layout(name: str, says: str, values: list[list[float]]) -> Kind:
    products = [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(values, OTHER, strict=True)]
    return Kind(name, says, lambda lab, on: lab.tensor(values, on, layout=name), _matrix, products, LAYOUT_RULE)


KINDS = (
    Kind(
        "zero-dim", "a 0-dim value", lambda lab, on: lab.tensor(SCALAR, on), vector, SCALED, EXCEPTION,
        (("accelerator", "host"), ("peer", "accelerator"), ("accelerator", "peer"), ("host", "peer")), claims=("D1.8",),
    ),
    Kind(
        "zero-dim-view", "a 0-dim view t[2]", lambda lab, on: lab.do.element(lab.tensor([7.0, 11.0, SCALAR, 13.0], on), 2),
        vector, SCALED, "A kernel that ignores the view's offset uses t[0].",
    ),
    Kind(
        "zero-dims", "a 0-dim value beside another one", lambda lab, on: lab.tensor(SCALAR, on), lambda lab, on: lab.tensor(3.0, on),
        3.0 * SCALAR, "Where both could follow the other, one of them decides the device.",
    ),
    Kind("one-element", "a vector of one element", lambda lab, on: lab.tensor([SCALAR], on), vector, SCALED, SHAPE_RULE, claims=("D1.9",)),
    Kind("one-element-matrix", "a matrix of one element", lambda lab, on: lab.tensor([[SCALAR]], on), vector, SCALED, SHAPE_RULE),
    Kind("empty", "an empty vector beside another one", _empty, _empty, None, EMPTY_RULE),
    Kind("empty-part", "an empty vector", _empty, vector, Numbers(COUNT, lambda i: 2.0 + i), EMPTY_RULE, operation="cat"),
    _layout("offset-view", "a view with an offset", MATRIX),
    _layout("expanded", "an expanded row", [MATRIX[0]] * 2),
    _layout("transposed", "a transposed matrix", MATRIX),
)  # fmt: skip


def _register_kind(kind: Kind, pair: tuple[str, str], side: str) -> None:
    control = pair == CONTROL
    answers = WORKING if control else placed(*pair)
    place = f"on the {side}, on one device" if control else f"of the {pair[0]} on the {side} and an operand of the {pair[1]} on the other"

    @case(
        f"scalars/{kind.name}/{'-'.join(pair)}/{side}",
        without(answers, "garbage") if kind.expected is None else answers,
        question=f"{kind.operation} with {kind.says} {place}: "
        + ("does it work?" if control else "is it refused, or where is the result?"),
        why=kind.why,
        control=f"placement/{kind.operation}/device-device" if control else f"scalars/{kind.name}/device-device/left",
        claims=() if control else kind.claims,
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        mine, others = (PLACES[p] for p in pair)
        scalar, other = kind.make(lab, mine), kind.other(lab, others)
        sentinel(lab, mine) if control else sentinel(lab, mine, others)
        result = _question(lab, kind.operation, side, scalar, other)
        if kind.expected is None:
            return {"result": result, "home": other}
        again = _question(lab, kind.operation, side, scalar, other)
        value = lab.observe(result, kind.expected)
        return {"result": result, "value": value, "again": lab.observe(again, kind.expected), "home": other}


for _kind in KINDS:
    _register_kind(_kind, CONTROL, "left")
    for _pair in (MIXED, *_kind.pairs):
        for _side in SIDES:
            _register_kind(_kind, _pair, _side)


# --- 0-dim values of another dtype ---------------------------------------------------------------


@dataclass(frozen=True)
class Typed:
    """A 0-dim value of one dtype beside a vector of another."""

    scalar: str
    tensor: str
    value: float
    values: list[float] | list[int]
    words: tuple[str, ...]


TYPED = (
    Typed("float64", "float32", SCALAR, FRACTIONS, ("keeps-dtype", "takes-scalar-dtype", "other-dtype")),
    Typed("int64", "float32", 3, FRACTIONS, ("keeps-dtype", "other-dtype", "truncates")),
    Typed("float32", "int32", SCALAR, WHOLES, ("takes-scalar-dtype", "other-dtype", "truncates")),
)


def _register_typed(typed: Typed, pair: tuple[str, str], side: str) -> None:
    name = f"scalars/zero-dim-{typed.scalar}-on-{typed.tensor}"
    control = pair == CONTROL

    @case(
        f"{name}/{'-'.join(pair)}/{side}",
        promotion(*typed.words, scalar_on=None if control else pair[0]),
        question=f"mul: which dtype has a {typed.tensor} vector {'' if control else 'on the accelerator '}"
        f"with a 0-dim {typed.scalar} {'' if control else 'of the host '}on its {side}?",
        why="The device rule for scalars and the dtype rule for scalars are two rules; a 0-dim value may pass one of them only.",
        control=f"placement/mul/{'-'.join(CONTROL)}" if control else f"{name}/{'-'.join(CONTROL)}/{side}",
        claims=("D1.8",) if typed.scalar == "float64" else (),
        wanted={"tensor": typed.tensor, "scalar": typed.scalar},
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        mine, others = (PLACES[p] for p in pair)
        scalar, tensor = lab.tensor(typed.value, mine, typed.scalar), lab.tensor(typed.values, others, typed.tensor)
        result = _question(lab, "mul", side, scalar, tensor)
        value = lab.observe(result, [v * typed.value for v in typed.values])
        return {"result": result, "value": value, "home": tensor, "scalar": scalar}


for _typed in TYPED:
    for _pair in (CONTROL, MIXED):
        for _side in SIDES:
            _register_typed(_typed, _pair, _side)
