"""Mixed placement: operands on different devices, for every family of operations.

Large operands (256 x 256) throughout: memory of small blocks is not handed out again, so a result
that was never computed could look right. Freed memory is filled with a sentinel before the
question, which is asked twice.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from cases.answers import IN_PLACE, IN_PLACE_ONLY, TRUTH, WORKING, placed
from cases.case import case
from cases.lab import Expected, Lab, Numbers, Place, Symbol
from cases.reading import SENTINEL

N = 256
SHAPE = (N, N)
COUNT = N * N
#: Which rows the ids ask for: in another order, one twice.
IDS = [3, 1, 200, 1]
PLACES = {"host": Lab.host, "accelerator": Lab.accelerator, "peer": Lab.peer, "device": Lab.device, "alias": Lab.alias}
#: Both orders of host and accelerator, and of two accelerators. `device-device` is the control.
CONTROL = ("device", "device")
PAIRS = (CONTROL, ("host", "accelerator"), ("accelerator", "host"), ("accelerator", "peer"), ("peer", "accelerator"))

Operands = Callable[[Lab, Place, Place], list[Symbol]]


@dataclass(frozen=True)
class Family:
    """One operation whose operands are on two devices."""

    name: str
    #: What is on the first device, and what on the second, as the question says it.
    left: str
    right: str
    operands: Operands
    expected: Expected
    claims: tuple[str, ...] = ()
    #: What it answers where both operands are on one device.
    control_claims: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """Return the operation's name in the case language."""
        return self.name.removesuffix("-condition").removesuffix("-branch").replace("-", "_")


def ramps(lab: Lab, left: Place, right: Place) -> list[Symbol]:
    """Make two operands of distinct elements, none of them zero or one."""
    return [lab.ramp(SHAPE, left, start=2), lab.ramp(SHAPE, right, start=5)]


def _condition(lab: Lab, on: Place) -> Symbol:
    # True in the first columns: half of each branch, so that a branch taken whole is told apart.
    return lab.halves((1, N), on)


def _ids(lab: Lab, left: Place, right: Place) -> list[Symbol]:
    return [lab.ramp(SHAPE, left), lab.tensor(IDS, right, "int64")]


def _gather(lab: Lab, left: Place, right: Place) -> list[Symbol]:
    return [lab.ramp(SHAPE, left), lab.tensor([[row] * N for row in IDS], right, "int64")]


def _mask(lab: Lab, left: Place, right: Place) -> list[Symbol]:
    return [lab.ramp(SHAPE, left), lab.tensor([row in (1, 200) for row in range(N)], right, "bool")]


ROWS = Numbers(len(IDS) * N, lambda i: 2.0 + IDS[i // N] * N + i % N)
CHOSEN = Numbers(COUNT, lambda i: (2.0 if i % N < N / 2 else 5.0) + i)
JOINED = Numbers(2 * COUNT, lambda i: 2.0 + i if i < COUNT else 5.0 + i - COUNT)
SUM = Numbers(COUNT, lambda i: 7.0 + 2 * i)


def _elementwise(compute: Callable[[float, float], float]) -> Numbers:
    return Numbers(COUNT, lambda i: compute(2.0 + i, 5.0 + i))


FAMILIES = (
    Family("add", "left operand", "right operand", ramps, SUM, ("D1.7", "D2.2", "D2.9", "D2.10"), ("D2.4",)),
    Family("sub", "left operand", "right operand", ramps, _elementwise(operator.sub)),
    Family("mul", "left operand", "right operand", ramps, _elementwise(operator.mul)),
    Family("div", "left operand", "right operand", ramps, _elementwise(operator.truediv)),
    Family(
        "less", "left operand", "right operand",
        # True in one half and false in the other: memory that nobody wrote reads as true throughout, or as false.
        lambda lab, left, right: [lab.ramp(SHAPE, left, start=2), lab.full(SHAPE, COUNT / 2, right)],
        Numbers(COUNT, lambda i: 2.0 + i < COUNT / 2),
    ),
    Family(
        "matmul", "left matrix", "right matrix",
        lambda lab, left, right: [lab.full(SHAPE, 2.0, left), lab.full(SHAPE, 3.0, right)],
        Numbers(COUNT, lambda _: 2.0 * 3.0 * N), ("D1.11",),
    ),
    Family(
        "where-condition", "condition", "branches",
        lambda lab, left, right: [_condition(lab, left), *ramps(lab, right, right)], CHOSEN,
    ),
    Family(
        "where-branch", "condition and first branch", "second branch",
        lambda lab, left, right: [_condition(lab, left), *ramps(lab, left, right)], CHOSEN,
    ),
    Family("cat", "first part", "second part", ramps, JOINED, ("D2.8",)),
    Family("stack", "first part", "second part", ramps, JOINED),
    Family("embedding", "table", "ids", _ids, ROWS, ("D1.12", "D1.26")),
    Family("index", "value", "ids", _ids, ROWS, ("D3.12",)),
    Family("index-select", "value", "ids", _ids, ROWS, ("D3.12",)),
    Family("gather", "value", "ids", _gather, ROWS, ("D3.12",)),
    Family("mask", "value", "mask", _mask, Numbers(2 * N, lambda i: 2.0 + (1 if i < N else 200) * N + i % N), ("D3.12",)),
)  # fmt: skip


def sentinel(lab: Lab, *places: Place) -> None:
    """Fill memory with a number that no answer has, and free it."""
    for place in places:
        lab.do.drop(lab.do.full(list(SHAPE), SENTINEL, {"dtype": "float32"}, place))


def where(pair: tuple[str, str], left: str, right: str) -> str:
    """Say in words what is where."""
    if pair == CONTROL:
        return f"{left} and {right} on one device"
    on = {"peer": "peer accelerator"}
    return f"{left} on the {on.get(pair[0], pair[0])} and {right} on the {on.get(pair[1], pair[1])}"


def _register(family: Family, pair: tuple[str, str]) -> None:
    control = pair == CONTROL

    @case(
        f"placement/{family.name}/{'-'.join(pair)}",
        WORKING if control else placed(*pair),
        question=f"{family.operation} with {where(pair, 'the ' + family.left, 'the ' + family.right)}: "
        + ("does it work?" if control else "is it refused, or where is the result?"),
        why="Implicit moves hide costs, refusals break code that ran on one device, and garbage is silent.",
        control="placement/create/device" if control else f"placement/{family.name}/device-device",
        claims=family.control_claims if control else family.claims + (("D3.13",) if "peer" in pair else ()),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        left, right = (PLACES[p] for p in pair)
        operands = family.operands(lab, left, right)
        sentinel(lab, left) if control else sentinel(lab, left, right)
        ask = getattr(lab.attempt, family.operation)
        result = ask(*operands)
        value = lab.observe(result, family.expected)
        again = lab.observe(ask(*operands), family.expected)
        return {"result": result, "value": value, "again": again, "home": operands[0]}


for _family in FAMILIES:
    for _pair in PAIRS:
        _register(_family, _pair)


@case(
    "placement/create/device", WORKING,
    question="Does a value made on the device hold what was written?",
    why="Without this nothing else that is read from the device means anything.",
    control=None, claims=("D3.1",),
)  # fmt: skip
def _create(lab: Lab) -> dict[str, Symbol]:
    home = lab.full((2,), 11.0, lab.device)
    result = lab.attempt.tensor({"data": [[2.0, 3.0], [5.0, 7.0]]}, {"dtype": "float32"}, lab.device)
    return {"result": result, "value": lab.observe(result, [[2.0, 3.0], [5.0, 7.0]]), "home": home}


# --- effects -------------------------------------------------------------------------------------

EFFECTS: dict[str, tuple[str, Expected]] = {
    "add-in-place": ("add_", SUM),
    "copy": ("copy_", Numbers(COUNT, lambda i: 5.0 + i)),
    "set-tail": ("set_tail", Numbers(COUNT, lambda i: 2.0 + i if i < N else 5.0 + i - N)),
}


def _register_effect(name: str, pair: tuple[str, str]) -> None:
    operation, expected = EFFECTS[name]
    control = pair == CONTROL

    @case(
        f"placement/{name}/{'-'.join(pair)}",
        IN_PLACE,
        question=f"{operation} with {where(pair, 'the target', 'the source')}: is the target written?",
        why="A write that is refused, ignored or applied to a copy changes a model without a word.",
        control="placement/create/device" if control else f"placement/{name}/device-device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        left, right = (PLACES[p] for p in pair)
        x = lab.ramp(SHAPE, left, start=2)
        before = Numbers(COUNT, lambda i: 2.0 + i)
        if name == "set-tail":
            y = lab.ramp((N - 1, N), right, start=5)
            result = lab.attempt.set_tail(x, 1, y)
        else:
            y = lab.ramp(SHAPE, right, start=5)
            result = getattr(lab.attempt, operation)(x, y)
        return {
            "result": result,
            "value": lab.observe(x, expected),
            "before": lab.observe(x, before),
            "copy": lab.observe(result, expected),
            "home": x,
            "identity": lab.attempt.same(x, result),
        }


for _name in EFFECTS:
    for _pair in PAIRS:
        _register_effect(_name, _pair)


def _register_out(pair: tuple[str, str]) -> None:
    control = pair == CONTROL

    @case(
        f"placement/add-out/{'-'.join(pair)}",
        IN_PLACE_ONLY,
        question=f"add with out=, {where(pair, 'the output', 'the operands')}: is the output written?",
        why="An output elsewhere is either a hidden copy or a result that never arrives.",
        control="placement/create/device" if control else "placement/add-out/device-device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        left, right = (PLACES[p] for p in pair)
        x, y = ramps(lab, right, right)
        out = lab.full(SHAPE, SENTINEL, left)
        result = lab.attempt.add_out(x, y, out)
        before = Numbers(COUNT, lambda _: SENTINEL)
        return {"result": result, "value": lab.observe(out, SUM), "before": lab.observe(out, before), "home": out}


def _register_equal(pair: tuple[str, str]) -> None:
    control = pair == CONTROL

    @case(
        f"placement/array-equal/{'-'.join(pair)}",
        TRUTH,
        question=f"Equality of whole values, {where(pair, 'one', 'its equal')}: what is said?",
        why="Tests compare results with it; an answer from another device hides what was compared.",
        control="placement/create/device" if control else "placement/array-equal/device-device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        left, right = (PLACES[p] for p in pair)
        result = lab.attempt.array_equal(lab.ramp(SHAPE, left), lab.ramp(SHAPE, right))
        return {"result": result, "value": lab.observe(result, True)}


for _pair in PAIRS:
    _register_out(_pair)
    _register_equal(_pair)
