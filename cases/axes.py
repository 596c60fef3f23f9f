"""The axes of an operand beside its place: commitment, memory kind, and the handle it was made with.

A value can be on the host and yet go where the other operand is, because nobody put it there: it was
made without a device, or under a default one. Or it is of the same device and of another memory, or
was made with another handle for the very same device, or was moved there first. All are added to a
plain value of the accelerator, or joined with one, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases.answers import ALIAS, WORKING, Vocabulary, placed
from cases.answers_moving import PINNED
from cases.case import case
from cases.lab import Lab, Symbol
from cases.placement import PLACES

MINE = [2.0, 3.0, 5.0, 7.0]
OTHERS = [11.0, 13.0, 17.0, 19.0]


@dataclass(frozen=True)
class Operand:
    """An operand on one of those axes, and where the plain one is that it is added to."""

    name: str
    says: str
    make: Callable[[Lab], Symbol]
    other: str
    answers: Vocabulary
    why: str
    control: str
    claims: tuple[str, ...] = ()
    operation: str = "add"


def _scoped(place: str) -> Callable[[Lab], Symbol]:
    return lambda lab: lab.tensor(MINE, PLACES[place], commitment="scoped")


COMMITMENT = "Values that nobody placed may follow the other operand where placed ones are refused: the same sum, two answers."
HANDLES = "Two handles for one device look the same in a log and may be refused as two devices."
MOVED = "Whoever meets a refusal moves one operand to where the other is; after that nothing may be left of where it came from."
MEMORY = "Pinned memory is host memory, even where it was asked for on behalf of an accelerator."

OPERANDS = (
    Operand(
        "scoped/device-device", "a value made under a default device", _scoped("device"), "device", WORKING, COMMITMENT,
        "placement/add/device-device", ("D2.4",),
    ),
    Operand(
        "scoped/host-accelerator", "a value made with the host as default", _scoped("host"), "accelerator",
        placed("host", "accelerator"), COMMITMENT, "moving/scoped/device-device/",
    ),
    Operand(
        "scoped/accelerator-host", "a value made with the accelerator as default", _scoped("accelerator"), "host",
        placed("accelerator", "host"), COMMITMENT, "moving/scoped/device-device/",
    ),
    Operand(
        "scoped/peer-accelerator", "a value made with the peer as default", _scoped("peer"), "accelerator",
        placed("peer", "accelerator"), COMMITMENT, "moving/scoped/device-device/",
    ),
    Operand(
        "uncommitted/any-accelerator", "a value made without a device",
        lambda lab: lab.tensor(MINE, lab.host, commitment="uncommitted"), "accelerator",
        placed("host", "accelerator"), COMMITMENT, "placement/add/device-device", ("D2.2",),
    ),
    Operand(
        "pinned/host-accelerator", "a host value in pinned memory", lambda lab: lab.tensor(MINE, lab.host, memory="pinned-host"),
        "accelerator", placed("host", "accelerator"), MEMORY, "moving/pinned/host",
    ),
    Operand(
        "alias/alias-device", "a value made with another handle of the device", lambda lab: lab.tensor(MINE, lab.alias), "device",
        WORKING, HANDLES, "placement/add/device-device", ("D1.2", "D1.5", "D2.2", "D2.9", "D2.10"),
    ),
    Operand(
        "alias-cat/alias-device", "a value made with another handle of the device", lambda lab: lab.tensor(MINE, lab.alias), "device",
        WORKING, HANDLES, "placement/cat/device-device", ("D1.5", "D2.8", "D2.9"), "cat",
    ),
    Operand(
        "alias-moved/alias-device", "a value made with another handle of the device and then moved to it",
        lambda lab: lab.attempt.to(lab.tensor(MINE, lab.alias), lab.device), "device", WORKING, MOVED, "placement/add/device-device",
        ("D1.18", "D2.7"),
    ),
    Operand(
        "moved/host-accelerator", "a value of the host that was moved to the accelerator",
        lambda lab: lab.attempt.to(lab.tensor(MINE, lab.host), lab.accelerator), "accelerator", WORKING, MOVED,
        "moving/to-accelerator/object", ("D2.7",),
    ),
)  # fmt: skip


def _register(operand: Operand, side: str) -> None:
    @case(
        f"moving/{operand.name}/{side}",
        operand.answers,
        question=f"{operand.operation} with {operand.says} on the {side} of a value put on the {operand.other}: "
        "is it refused, or where is the result?",
        why=operand.why,
        control=operand.control + side if operand.control.endswith("/") else operand.control,
        claims=operand.claims,
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        mine, other = operand.make(lab), lab.tensor(OTHERS, PLACES[operand.other])
        pair = (mine, other) if side == "left" else (other, mine)
        left, right = (MINE, OTHERS) if side == "left" else (OTHERS, MINE)
        expected = left + right if operand.operation == "cat" else [a + b for a, b in zip(left, right, strict=True)]
        ask = getattr(lab.attempt, operand.operation)
        result, again = ask(*pair), ask(*pair)
        return {"result": result, "value": lab.observe(result, expected), "again": lab.observe(again, expected), "home": other}


for _operand in OPERANDS:
    for _side in ("left", "right"):
        _register(_operand, _side)


# --- pinned memory -------------------------------------------------------------------------------


def _register_pin(place: str) -> None:
    @case(
        f"moving/pinned/{place}",
        PINNED,
        question=f"What comes back when a value of the {place} is moved to pinned host memory?",
        why="Pinned memory stays host memory of the same device; some refuse it where there is no accelerator to pin it for.",
        control="placement/create/device" if place == "host" else "moving/pinned/host",
        claims=("D3.17",),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor(MINE, PLACES[place])
        result = lab.attempt.to_memory(x, "pinned-host")
        return {"result": result, "value": lab.observe(result, MINE), "home": x}


_register_pin("host")
_register_pin("accelerator")


@case(
    "moving/pinned/again", ALIAS,
    question="What comes back when a pinned value is pinned again: the same object, shared storage, or a copy?",
    why="Pinning is slow, and a loader that pins what is pinned already should cost nothing.",
    control="moving/pinned/host",
)  # fmt: skip
def _pinned_again(lab: Lab) -> dict[str, Symbol]:
    x = lab.tensor(MINE, lab.host, memory="pinned-host")
    result = lab.attempt.to_memory(x, "pinned-host")
    return {"result": result, "value": lab.observe(result, MINE), "identity": lab.attempt.same(x, result), "home": x}
