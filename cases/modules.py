"""Modules: what moves with one, and where the next ones are built.

A module keeps values, some of which its framework was told of. The questions are asked of layers and
containers as small as they come: what a large model does follows from its parts.
"""

from __future__ import annotations

from cases.answers import WORKING
from cases.answers_modules import BUILT, NEXT, NEXT_ANEW, moved_module
from cases.case import case
from cases.lab import Lab, Symbol

#: Symmetric, so that it doesn't matter which way a framework keeps a layer's weight.
WEIGHT = [[2.0, 3.0], [3.0, 5.0]]
INPUT = [[7.0, 11.0], [13.0, 17.0]]
OUTPUT = [[47.0, 76.0], [77.0, 124.0]]
CONTROL = "modules/compute/device"
WHY_MOVE = "Whoever forgets what a move gives back goes on with a module on the old device, or finds that both are on the new one."
WHY_LOADER = "A model is moved by building it again, and the two must not get into each other's way."
#: What a module keeps -> whether its framework was told of it, what it is called, and the claims it answers.
MEMBERS = {
    "parameter": (True, "its parameter", ("D1.14", "D3.7", "D3.8")),
    "buffer": (True, "a buffer that was registered", ("D3.7",)),
    "list": (False, "a value in a plain list", ("D3.7",)),
    "attribute": (False, "a value that is a plain attribute", ("D3.7",)),
}


@case(
    CONTROL, WORKING,
    question="Does a linear layer whose weight is on a device compute with a value on that device?",
    why="Where a module doesn't even compute on one device, its refusals say nothing about moves.",
    control="placement/create/device",
)  # fmt: skip
def _compute(lab: Lab) -> dict[str, Symbol]:
    layer = lab.do.linear(lab.tensor(WEIGHT, lab.device))
    x = lab.tensor(INPUT, lab.device)
    result = lab.attempt.call(layer, x)
    return {"result": result, "value": lab.observe(result, OUTPUT), "home": x}


def _register_move(kind: str, registered: bool, says: str, claims: tuple[str, ...]) -> None:
    @case(
        f"modules/move/{kind}", moved_module(registered=registered),
        question=f"A module moved from the host to the accelerator: where is {says} then, and where that of the module itself?",
        why=WHY_MOVE, control=CONTROL, claims=claims,
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        module = lab.do.holder(lab.tensor(WEIGHT, lab.host), kind)
        result = lab.attempt.move_module(module, lab.accelerator)
        moved = lab.attempt.member(result, kind)
        return {
            "result": result, "moved": moved, "value": lab.observe(moved, WEIGHT),
            "original": lab.attempt.member(module, kind), "identity": lab.attempt.same(module, result),
        }  # fmt: skip


for _kind, (_registered, _says, _claims) in MEMBERS.items():
    _register_move(_kind, _registered, _says, _claims)


@case(
    "modules/loader/built", BUILT,
    question="Is a layer that was built on the host touched when its loader's device becomes the accelerator?",
    why=WHY_LOADER, control=CONTROL, claims=("D1.15",),
)  # fmt: skip
def _built(lab: Lab) -> dict[str, Symbol]:
    loader = lab.do.loader(lab.tensor(WEIGHT, lab.host), lab.host)
    layer = lab.do.load(loader, 2)
    home = lab.do.member(layer, "weight")
    result = lab.attempt.loader_to(loader, lab.accelerator)
    return {"result": result, "home": home, "value": lab.observe(lab.do.member(layer, "weight"), WEIGHT)}


@case(
    "modules/loader/next", NEXT,
    question="Where is the next layer that a loader builds, once its device has become the accelerator?",
    why=WHY_LOADER, control=CONTROL, claims=("D1.15",),
)  # fmt: skip
def _next(lab: Lab) -> dict[str, Symbol]:
    loader = lab.do.loader(lab.tensor(WEIGHT, lab.host), lab.host)
    layer = lab.attempt.load(lab.attempt.loader_to(loader, lab.accelerator), 2)
    result = lab.attempt.member(layer, "weight")
    return {"result": result, "value": lab.observe(result, WEIGHT)}


@case(
    "modules/default-device/next", NEXT_ANEW,
    question="Under a default device that is the accelerator: where is a layer that is made anew, with no device said?",
    why="Layers make their own weights, so that a default device decides for all those which take no device.",
    control=CONTROL, claims=("D1.15", "D3.10"),
)  # fmt: skip
def _anew(lab: Lab) -> dict[str, Symbol]:
    with lab.scope("default-device", lab.accelerator):
        layer = lab.attempt.linear_uncommitted(2)
    return {"result": lab.attempt.member(layer, "weight")}
