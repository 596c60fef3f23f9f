"""Values that are spread over two accelerators, and what meets them on one. Parts of the areas `placement` and `moving`.

A sharded value is on several devices at once, so that the question which one decides has another answer:
the frameworks that know such values let them join only what is spread alike, or what nobody placed.
"""

from __future__ import annotations

from cases.answers import GARBAGE, MOVE, NEUTRAL, RAISES, WORKS, Vocabulary, refused_or_wrong
from cases.answers_moving import READ
from cases.case import case
from cases.lab import Lab, Symbol
from cases.placement import PLACES
from cases.reading import Reading

VALUES = [2.0, 3.0, 5.0, 7.0]
OTHERS = [11.0, 13.0, 17.0, 19.0]
SUM = [a + b for a, b in zip(VALUES, OTHERS, strict=True)]
WHY = "Models that are spread over devices meet inputs that are not; a hidden gather costs memory where there is none to spare."
CONTROL = "placement/sharded/create"
#: What meets a sharded value, as the question says it.
SINGLE = {
    "accelerator": "of the first of them", "peer": "of the second of them", "host": "of the host", "uncommitted": "that nobody placed",
}  # fmt: skip


def _decide(reading: Reading) -> str:
    word = refused_or_wrong(reading)
    there = str(reading.value("result").get("device")).split()
    wanted = {reading.value(mark).get("device") for mark in ("first", "second")}
    return word or ("spread" if len(there) > 1 and set(there) == wanted else "gathered")


#: Whether a result is spread; marks `first` and `second` are values on the devices that share it.
SPREAD = Vocabulary(
    {
        **RAISES, **GARBAGE,
        "spread": (WORKS, "the right value, spread over both devices"),
        "gathered": (NEUTRAL, "the right value, and not on both devices"),
    },
    _decide,
)  # fmt: skip


def _sharded(lab: Lab, values: list[float]) -> tuple[Symbol, dict[str, Symbol]]:
    """Make a sharded value, and one on each of its devices to tell where it is."""
    x = lab.tensor(values, lab.accelerator)
    return lab.do.shard(x, lab.accelerator, lab.peer), {"first": x, "second": lab.tensor(OTHERS, lab.peer)}


@case(
    CONTROL, SPREAD,
    question="Can a value be spread over two accelerators, and is it then the value that it was?",
    why="Without this no other question about sharded values means anything.",
    control="placement/create/device",
)  # fmt: skip
def _create(lab: Lab) -> dict[str, Symbol]:
    x = lab.tensor(VALUES, lab.accelerator)
    result = lab.attempt.shard(x, lab.accelerator, lab.peer)
    return {"result": result, "value": lab.observe(result, VALUES), "first": x, "second": lab.tensor(OTHERS, lab.peer)}


@case(
    "placement/sharded/add-sharded", SPREAD,
    question="add of two values that are spread alike over two accelerators: is the result spread as they are?",
    why=WHY, control=CONTROL,
)  # fmt: skip
def _alike(lab: Lab) -> dict[str, Symbol]:
    x, marks = _sharded(lab, VALUES)
    y, _ = _sharded(lab, OTHERS)
    result = lab.attempt.add(x, y)
    return {"result": result, "value": lab.observe(result, SUM), **marks}


def _register_single(name: str, side: str) -> None:
    @case(
        f"placement/sharded/add-{name}/{side}", SPREAD,
        question=f"add of a value {SINGLE[name]} on the {side} of one that is spread over two accelerators: is it refused, or where is "
        "the result?",
        why=WHY, control="placement/sharded/add-sharded",
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        x, marks = _sharded(lab, VALUES)
        one = lab.tensor(OTHERS, lab.host, commitment="uncommitted") if name == "uncommitted" else lab.tensor(OTHERS, PLACES[name])
        result = lab.attempt.add(*((one, x) if side == "left" else (x, one)))
        return {"result": result, "value": lab.observe(result, SUM), **marks}


for _name in SINGLE:
    for _side in ("left", "right"):
        _register_single(_name, _side)


def _register_gather(place: str) -> None:
    @case(
        f"moving/sharded/to-{place}", MOVE,
        question=f"Does a value that is spread over two accelerators arrive whole when it is moved to the {place}?",
        why="Saving and printing gather what is spread; a part of it looks like a value too.",
        control=CONTROL, wanted={"role": place},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        x, _ = _sharded(lab, VALUES)
        result = lab.attempt.to(x, PLACES[place])
        return {"result": result, "value": lab.observe(result, VALUES)}


for _place in ("accelerator", "peer", "host"):
    _register_gather(_place)


@case(
    "moving/sharded/read", READ,
    question="Can a value that is spread over two accelerators be read as a NumPy array?",
    why="Some ways out gather in silence, some read a part, and some refuse.",
    control=CONTROL,
)  # fmt: skip
def _read(lab: Lab) -> dict[str, Symbol]:
    x, _ = _sharded(lab, VALUES)
    result = lab.attempt.to_numpy(x)
    return {"result": result, "value": lab.observe(result, VALUES)}
