"""Moving: what comes back, where it is, and what it still shares with the original.

`moving/to-X/HOW` moves a value to X and asks where it lands; `moving/to-same/HOW` moves it to where it
is and asks whether anything was done. HOW is a spelling of the device, a way of asking, or the kind
of value that is moved. Writes show afterwards what two values share, which no framework's own word
for identity can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases.answers import ALIAS, MOVE, MOVE_CAST, UNTOUCHED, without
from cases.answers_moving import READ, write_seen
from cases.case import case
from cases.lab import Expected, Lab, Place, Symbol
from cases.placement import PLACES

VALUES = [2.0, 3.0, 5.0, 7.0]
MATRIX = [[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]]
ROWS = [MATRIX[0], MATRIX[0]]

Make = Callable[[Lab, Place], Symbol]
Ask = Callable[[Lab, Symbol, Place], Symbol]


@dataclass(frozen=True)
class Value:
    """A kind of value that is moved."""

    #: As the question says it.
    says: str
    make: Make
    expected: Expected | None
    why: str


def _plain(lab: Lab, on: Place) -> Symbol:
    return lab.tensor(VALUES, on)


def to(lab: Lab, x: Symbol, place: Place) -> Symbol:
    """Move, in the plainest way."""
    return lab.attempt.to(x, place)


STRIDES = "A copy that ignores offset, strides or shape holds other elements, and says nothing."
OPERANDS = {
    "offset-view": Value("a view with an offset", lambda lab, on: lab.tensor(MATRIX, on, layout="offset-view"), MATRIX, STRIDES),
    "expanded": Value("an expanded row", lambda lab, on: lab.tensor(ROWS, on, layout="expanded"), ROWS, STRIDES),
    "transposed": Value("a transposed matrix", lambda lab, on: lab.tensor(MATRIX, on, layout="transposed"), MATRIX, STRIDES),
    "reshaped": Value(
        "a transposed matrix in another shape",
        lambda lab, on: lab.do.reshape(lab.tensor(MATRIX, on, layout="transposed"), [3, 2]),
        [[2.0, 3.0], [5.0, 7.0], [11.0, 13.0]], STRIDES,
    ),
    "zero-dim": Value("a 0-dim value", lambda lab, on: lab.tensor(2.5, on), 2.5, STRIDES),
    "empty": Value("an empty value", lambda lab, on: lab.tensor([], on), None, "A move that forgets empty values fails on the last batch."),
    "shared": Value(
        "a value with another name", lambda lab, on: lab.tensor(VALUES, on, shared=True), VALUES,
        "Another name must not change what a move does, and a donated buffer must not be taken from it.",
    ),
    "uncommitted": Value(
        "a value made without a device", lambda lab, on: lab.tensor(VALUES, on, commitment="uncommitted"), VALUES,
        "A value that nobody placed may be moved by itself later; putting it somewhere ends that.",
    ),
    "pinned": Value(
        "a value in pinned memory", lambda lab, on: lab.tensor(VALUES, on, memory="pinned-host"), VALUES,
        "Pinned memory is there to make this very move fast; it must still be right.",
    ),
    "misaligned": Value(
        "a value over misaligned memory", lambda lab, on: lab.tensor(VALUES, on, alignment="misaligned"), VALUES,
        "Where memory can't be used in place a copy is made, and kernels that assume alignment read elsewhere.",
    ),
}  # fmt: skip
#: The kinds whose elements a careless copy gets wrong: they are moved both ways.
STRIDED = ("offset-view", "expanded", "transposed", "zero-dim", "empty")
PLAIN = Value("a value", _plain, VALUES, "Everything that is computed on a device was moved to it by one of these calls.")

#: How a move is asked for: words of the question, and the call.
ASKS: dict[str, tuple[str, Ask]] = {
    "object": ("to a device object", to),
    "string": ("to a device's name", lambda lab, x, place: lab.attempt.to(x, place.as_("string"))),
    "indexed": ("to a device's name with an index", lambda lab, x, place: lab.attempt.to(x, place.as_("indexed"))),
    "indexless": ("to a device's name without an index", lambda lab, x, place: lab.attempt.to(x, place.as_("indexless"))),
    "copy": ("to a device, asking for a copy", lambda lab, x, place: lab.attempt.to_copy(x, place)),
}
SHORTCUTS: dict[str, Ask] = {
    "host": lambda lab, x, _: lab.attempt.to_host_shortcut(x),
    "accelerator": lambda lab, x, _: lab.attempt.to_accelerator_shortcut(x),
}

# --- to another device ---------------------------------------------------------------------------


def register_move(
    name: str, goal: str, source: str, how: str, says: str, value: Value, ask: Ask, claims: tuple[str, ...] = ()
) -> None:  # fmt: skip
    """Ask about a move of one kind of value; `name` is the middle of the id."""
    plain = how == "object"

    @case(
        f"moving/{name}/{how}",
        MOVE if value.expected is not None else without(MOVE, "garbage"),
        question=f"Does {value.says} of the {source} arrive when it is moved to the {goal}, {says}?",
        why=value.why,
        control="placement/create/device" if plain else f"moving/{name}/object",
        claims=claims,
        wanted={"role": goal, "from": source},
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = value.make(lab, PLACES[source])
        result = ask(lab, x, PLACES[goal])
        if value.expected is None:
            return {"result": result}
        return {"result": result, "value": lab.observe(result, value.expected), "identity": lab.attempt.same(x, result)}


MOVES = (("accelerator", "host"), ("host", "accelerator"))
CLAIMED = {("host", "object"): ("D1.17",)}

for _goal, _source in MOVES:
    for _how, (_says, _ask) in ASKS.items():
        register_move(f"to-{_goal}", _goal, _source, _how, _says, PLAIN, _ask, CLAIMED.get((_goal, _how), ()))
    register_move(f"to-{_goal}", _goal, _source, "shortcut", "by the short way", PLAIN, SHORTCUTS[_goal], ("D3.6",))
    for _how, _value in OPERANDS.items():
        if _goal == "accelerator" or _how in STRIDED:
            register_move(f"to-{_goal}", _goal, _source, _how, "as it is", _value, to)


def register_round_trip(source: str, there: str) -> None:
    """Ask whether a value comes back right."""
    @case(
        f"moving/round-trip/{source}-{there}",
        MOVE,
        question=f"Does a value of the {source} come back right from the {there}?",
        why="If there and back is not the identity, no result that was read means anything.",
        control=f"moving/to-{there}/object",
        claims=("D3.19",) if source == "host" else (),
        wanted={"role": source, "from": there},
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        result = lab.attempt.to(lab.attempt.to(_plain(lab, PLACES[source]), PLACES[there]), PLACES[source])
        return {"result": result, "value": lab.observe(result, VALUES)}


def register_original(source: str, goal: str) -> None:
    """Ask where a value is after it was moved."""
    @case(
        f"moving/original/{source}-{goal}",
        UNTOUCHED,
        question=f"Where is a value of the {source} after it was moved to the {goal} and the result was dropped?",
        why="Who expects a move to change the value in place goes on computing on the old device.",
        control=f"moving/to-{goal}/object",
        claims=("D3.4",) if goal == "accelerator" else (),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = _plain(lab, PLACES[source])
        result = lab.attempt.to(x, PLACES[goal])
        lab.do.drop(result)
        return {"result": result, "value": lab.observe(x, VALUES), "home": x}


for _goal, _source in MOVES:
    register_original(_source, _goal)
    register_round_trip(_source, _goal)


@case(
    "moving/to-accelerator/with-dtype", MOVE_CAST,
    question="Are both done when a value of the host is moved to the accelerator and to another dtype in one call?",
    why="One of the two may be dropped in silence, or done in an order that loses digits.",
    control="moving/to-same/with-dtype",  # the same call, with nowhere to go
    claims=("D3.5",), wanted={"role": "accelerator", "from": "host", "dtype": "int32"},
)  # fmt: skip
def _with_dtype(lab: Lab) -> dict[str, Symbol]:
    result = lab.attempt.to_both(_plain(lab, lab.host), lab.accelerator, {"dtype": "int32"})
    return {"result": result, "value": lab.observe(result, VALUES)}


@case(
    "moving/to-accelerator/inference", MOVE,
    question="Does a move to the accelerator work where no gradients are recorded?",
    why="Prediction code moves its inputs inside such a region.",
    control="moving/to-accelerator/object", claims=("D3.28",), wanted={"role": "accelerator", "from": "host"},
)  # fmt: skip
def _inference(lab: Lab) -> dict[str, Symbol]:
    x = _plain(lab, lab.host)
    with lab.scope("inference"):
        result = lab.attempt.to(x, lab.accelerator)
    return {"result": result, "value": lab.observe(result, VALUES)}


# --- to the device that it is on -----------------------------------------------------------------

SAME_WHY = "Whether a needless move costs a copy, and whether a later write is seen through both names, hangs on this."


def _register_same(
    how: str, says: str, make: Make, expected: Expected, ask: Ask, place: Place, claims: tuple[str, ...] = (), goal: Place | None = None
) -> None:  # fmt: skip
    @case(
        f"moving/to-same/{how}",
        ALIAS,
        question=f"What comes back when a value is moved to where it is, {says}: the same object, shared storage, or a copy?",
        why=SAME_WHY,
        control="placement/create/device" if how == "object" else "moving/to-same/object",
        claims=claims,
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = make(lab, place)
        result = ask(lab, x, place)
        value = lab.observe(result, expected)
        # Two names of a device may print differently: the result has to be where one made with the goal's name is.
        home = x if goal is None else _plain(lab, goal)
        return {"result": result, "value": value, "identity": lab.attempt.same(x, result), "home": home}


for _how, (_says, _ask) in ASKS.items():
    _register_same(_how, _says, _plain, VALUES, _ask, Lab.device, ("D1.16",) if _how == "object" else ())
for _how in ("offset-view", "transposed", "shared"):
    _operand = OPERANDS[_how]
    assert _operand.expected is not None
    _register_same(_how, f"being {_operand.says}", _operand.make, _operand.expected, to, Lab.device)


def _to_own(lab: Lab, x: Symbol, _: Place) -> Symbol:
    return lab.attempt.to(x, lab.do.device_of(x))


def _to_alias(lab: Lab, x: Symbol, _: Place) -> Symbol:
    return lab.attempt.to(x, lab.alias)


def _to_own_dtype(lab: Lab, x: Symbol, place: Place) -> Symbol:
    return lab.attempt.to_both(x, place, {"dtype": "float32"})


_register_same("own-device", "named by its own device", _plain, VALUES, _to_own, Lab.device)
_register_same("uncommitted", "having been made without one", OPERANDS["uncommitted"].make, VALUES, _to_own, Lab.device)
_register_same("with-dtype", "and to the dtype it has", _plain, VALUES, _to_own_dtype, Lab.device)
_register_same("to-alias", "under the device's other name", _plain, VALUES, _to_alias, Lab.device, ("D1.18",), Lab.alias)
_register_same(
    "from-alias", "made under its other name", lambda lab, _: _plain(lab, lab.alias), VALUES, to, Lab.device, ("D1.18",), Lab.device
)  # fmt: skip
for _place in SHORTCUTS:
    _register_same(f"{_place}-shortcut", f"by the short way to the {_place}", _plain, VALUES, SHORTCUTS[_place], PLACES[_place], ("D3.6",))

# --- what is shared afterwards -------------------------------------------------------------------

ADDED = [10.0, 20.0, 30.0, 40.0]
WRITTEN = [a + b for a, b in zip(VALUES, ADDED, strict=True)]
#: Name of the move -> where the value is, where it goes, and whether a copy was asked for.
COPIES: dict[str, tuple[str, str, bool]] = {
    "to-same": ("device", "device", False),
    "to-copy": ("device", "device", True),
    "to-accelerator": ("host", "accelerator", False),
    "to-host": ("accelerator", "host", False),
}


def _register_write(written: str, move: str) -> None:
    source, goal, copied = COPIES[move]

    @case(
        f"moving/write-{written}/{move}",
        write_seen(copied=copied),
        question=f"After a move ({move.replace('-', ' ')}), is a write to the {written.replace('-', ' ')} seen in the other?",
        why="A value that is believed to be a copy and is not changes under its owner's hands.",
        control="placement/add-in-place/device-device",
        claims=("D1.17",) if move == "to-host" else (),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = _plain(lab, PLACES[source])
        other_name = lab.do.tail(x, 0) if written == "other-name" else x
        moved = (lab.do.to_copy if copied else lab.do.to)(x, PLACES[goal])
        changed, kept = (moved, x) if written == "moved" else (other_name, moved)
        result = lab.attempt.add_(changed, lab.tensor(ADDED, PLACES[goal if written == "moved" else source]))
        return {
            "result": result,
            "written": lab.observe(changed, WRITTEN),
            "value": lab.observe(kept, WRITTEN),
            "before": lab.observe(kept, VALUES),
        }


for _move in COPIES:
    _register_write("original", _move)
    _register_write("moved", _move)
_register_write("other-name", "to-same")


def _register_buffer(name: str, alignment: str, place: str) -> None:
    copied, waits = name == "buffer-copy", place == "device"

    @case(
        f"moving/{name}/{alignment}/{place}",
        write_seen(copied=copied, by="host"),
        question=f"A value made of {alignment} host memory{', as a copy,' if copied else ''} on the {place}: "
        f"is a later write to that memory seen{', once everything was waited for' if waits else ''}?",
        # A device may read the memory in the background: what is written before it has is seen or not, as it happens.
        why="Input pipelines reuse their buffers; a value over the buffer changes with it, often on some sizes and addresses only.",
        control="placement/create/device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        buffer = lab.do.buffer({"data": VALUES}, alignment)
        result = (lab.attempt.from_buffer_copy if copied else lab.attempt.from_buffer)(buffer, PLACES[place])
        waited = {"waited": lab.attempt.barrier()} if waits else {}
        lab.do.write_buffer(buffer, 9.0)
        seen = lab.observe(result, [9.0] * len(VALUES))
        return {"result": result, **waited, "value": seen, "before": lab.observe(result, VALUES)}


for _alignment in ("aligned", "misaligned"):
    _register_buffer("buffer-waited", _alignment, "device")
    _register_buffer("buffer-copy", _alignment, "device")
    _register_buffer("buffer", _alignment, "host")


# --- read back -----------------------------------------------------------------------------------

READS = {"item": "a Python number", "to_list": "plain lists", "to_numpy": "a NumPy array"}


def _register_read(operation: str, place: str) -> None:
    name = operation.removeprefix("to_")

    @case(
        f"moving/read/{name}/{place}",
        READ,
        question=f"Can a value of the {place} be read as {READS[operation]}?",
        why="Some ways out copy from the accelerator in silence, some refuse, and the difference ends up in every logging line.",
        control="placement/create/device" if place == "host" else f"moving/read/{name}/host",
        claims=("D3.9",) if place == "accelerator" else (),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        one = operation == "item"
        x = lab.tensor(2.5 if one else VALUES, PLACES[place])
        result = getattr(lab.attempt, operation)(x)
        return {"result": result, "value": lab.observe(result, 2.5 if one else VALUES)}


for _operation in READS:
    for _place in ("host", "accelerator"):
        _register_read(_operation, _place)

