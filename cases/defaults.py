"""The default device where the environment chooses it, well or badly. The rest of the area `moving`.

A value whose maker named no device meets one of a device that was named: that is how a program comes
to have two devices although everybody meant the same hardware. A variable can make the two agree, or
name a device that nobody knows. What becomes of the default without one is asked in `cases.devices`.
"""

from __future__ import annotations

from cases.answers import COMPARISON, MISSING_DEVICE, WORKING, lands
from cases.answers_moving import MADE
from cases.case import case
from cases.lab import Lab, Symbol
from cases.placement import PLACES

VALUES = [2.0, 3.0, 5.0, 7.0]
OTHERS = [11.0, 13.0, 17.0, 19.0]
SUM = [a + b for a, b in zip(VALUES, OTHERS, strict=True)]
ZEROS = [0.0] * 4
FLOAT32 = {"dtype": "float32"}
NAMED_WHY = "A default that can't be changed in the source, or in a library, is changed from outside: then both have to be one device."
WRONG_WHY = "A misspelt setting that falls back in silence runs on the wrong device; one that fails late fails far from its cause."


def _default(lab: Lab) -> Symbol:
    return lab.do.tensor_uncommitted({"data": VALUES}, FLOAT32)


# --- a variable that names the accelerator --------------------------------------------------------


@case(
    "moving/default-named/equals-accelerator", COMPARISON,
    question="Where the environment names the accelerator as default: is the device of a value made without one equal to it?",
    why=NAMED_WHY, control="moving/default-named/accelerator", environment="default-accelerator", claims=("D2.5",),
)  # fmt: skip
def _equal(lab: Lab) -> Symbol:
    return lab.attempt.compare(lab.do.device_of(_default(lab)), lab.do.name(lab.accelerator))


@case(
    "moving/default-named/create", lands("host", "accelerator"),
    question="Where the environment names the accelerator as default: where does a value land that is made without a device?",
    why=NAMED_WHY, control="moving/default-named/accelerator", environment="default-accelerator", claims=("D2.3", "D2.5"),
)  # fmt: skip
def _create(lab: Lab) -> dict[str, Symbol]:
    # Named too, so that where there is no accelerator nothing is asked.
    lab.do.name(lab.accelerator)
    result = lab.attempt.zeros_uncommitted([4])
    return {"result": result, "value": lab.observe(result, ZEROS)}


def _register_sum(side: str) -> None:
    @case(
        f"moving/default-named/add/{side}", WORKING,
        question=f"Where the environment names the accelerator as default: what comes of a value made without a device on the {side} of "
        "one that was put on the accelerator?",
        why=NAMED_WHY, control="moving/default-named/accelerator", environment="default-accelerator", claims=("D2.5",),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        mine, other = _default(lab), lab.tensor(OTHERS, lab.accelerator)
        result = lab.attempt.add(*((mine, other) if side == "left" else (other, mine)))
        return {"result": result, "value": lab.observe(result, SUM), "home": other}


for _side in ("left", "right"):
    _register_sum(_side)

# --- a variable that names none, and values whose device is named all the same ---------------------


def _register_explicit(name: str, environment: str, place: str, says: str) -> None:
    @case(
        f"moving/default-{name}/{place}", MADE,
        question=f"Can a value be made on the {place}, by name, while the environment's default is {says}?",
        why="A setting for the default must leave alone those who say where their values go.",
        control=None, environment=environment, claims=("D2.6",) if place == "host" else (),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        result = lab.attempt.tensor({"data": VALUES}, FLOAT32, PLACES[place])
        return {"result": result, "value": lab.observe(result, VALUES)}


def _register_wrong(name: str, environment: str, says: str) -> None:
    @case(
        f"moving/default-{name}/create", MISSING_DEVICE,
        question=f"What happens when a value is created without a device and the environment's default is {says}?",
        why=WRONG_WHY, control=f"moving/default-{name}/host", environment=environment, claims=("D2.6",),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        result = lab.attempt.zeros_uncommitted([4])
        return {"result": result, "value": lab.observe(result, ZEROS)}


_register_explicit("named", "default-accelerator", "accelerator", "the accelerator")
for _name, _says in {"misspelt": "one that nobody knows", "absent": "one that this build lacks"}.items():
    _register_explicit(_name, f"default-{_name}", "host", _says)
    _register_wrong(_name, f"default-{_name}", _says)
