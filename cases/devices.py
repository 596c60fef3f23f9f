"""Devices as values, devices that are not there, and devices that nobody named.

The rest of the area `moving`: what a program can ask of a device handle, what it hears when there is
no such device, and where values land when it says none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases.answers import COMPARISON, MISSING_DEVICE, lands, missing_device, without
from cases.answers_moving import COUNT, MADE, ORDINAL
from cases.case import case
from cases.lab import Lab, Place, Symbol
from cases.placement import PLACES
from cases.words import MISSING

VALUES = [2.0, 3.0, 5.0, 7.0]
FLOAT32 = {"dtype": "float32"}
ANYWHERE = lands("host", "accelerator")

Two = Callable[[Lab], tuple[Symbol, Symbol]]


def _value_on(lab: Lab, place: Place) -> Symbol:
    return lab.do.device_of(lab.tensor(VALUES, place))


def _default_of(lab: Lab) -> Symbol:
    return lab.do.device_of(lab.do.tensor_uncommitted({"data": VALUES}, FLOAT32))


# --- equality and ordinals -----------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Two device handles that are compared."""

    says: str
    two: Two
    claims: tuple[str, ...] = ()


COMPARISONS = {
    "same-spelling": Comparison(
        "a device named twice in the same way", lambda lab: (lab.do.name(lab.device), lab.do.name(lab.device)), ("D1.1",)
    ),
    "clone": Comparison("a device handle and its copy", lambda lab: _with_clone(lab, lab.do.name(lab.device)), ("D1.3",)),
    "indexless-indexed": Comparison(
        "a device named without an index and with index 0",
        lambda lab: (lab.do.parse_device(lab.device.as_("indexless")), lab.do.parse_device(lab.device.as_("indexed"))), ("D1.2",),
    ),
    "object-string": Comparison(
        "a device object and its name", lambda lab: (lab.do.name(lab.device), lab.do.name(lab.device.as_("string")))
    ),
    "device-alias": Comparison(
        "two handles for one device", lambda lab: (lab.do.name(lab.device), lab.do.name(lab.alias)), ("D1.2", "D1.3", "D2.1")
    ),
    "host-accelerator": Comparison(
        "the host and the accelerator", lambda lab: (lab.do.name(lab.host), lab.do.name(lab.accelerator))
    ),
    "accelerator-peer": Comparison(
        "two accelerators", lambda lab: (lab.do.name(lab.accelerator), lab.do.name(lab.peer)), ("D3.13",)
    ),
    "accelerator-absent": Comparison(
        "the accelerator and a device that isn't there", lambda lab: (lab.do.name(lab.accelerator), lab.attempt.name(Place("absent")))
    ),
    "value-host": Comparison(
        "a value's device and the host it was asked for on", lambda lab: (_value_on(lab, lab.host), lab.do.name(lab.host)), ("D3.2",)
    ),
    "value-accelerator": Comparison(
        "a value's device and the accelerator it was asked for on",
        lambda lab: (_value_on(lab, lab.accelerator), lab.do.name(lab.accelerator)), ("D3.2",),
    ),
    "default-host": Comparison(
        "the device of a value made without one and the host", lambda lab: (_default_of(lab), lab.do.name(lab.host)), ("D2.1", "D2.3")
    ),
    "default-accelerator": Comparison(
        "the device of a value made without one and the accelerator", lambda lab: (_default_of(lab), lab.do.name(lab.accelerator)),
        ("D2.1", "D2.3"),
    ),
    "value-alias": Comparison(
        "a value's device and the other handle it was asked for with",
        lambda lab: (_value_on(lab, lab.alias), lab.do.name(lab.alias)), ("D3.2",),
    ),
}  # fmt: skip


def _with_clone(lab: Lab, device: Symbol) -> tuple[Symbol, Symbol]:
    return device, lab.do.clone_device(device)


def register_comparison(name: str, comparison: Comparison) -> None:
    """Ask whether two handles are equal."""
    @case(
        f"moving/equality/{name}",
        # Python asks the device either way, since a text knows nothing of devices.
        without(COMPARISON, "asymmetric") if name == "object-string" else COMPARISON,
        question=f"Are {comparison.says} equal, and hashed alike?",
        why="Programs decide by it whether to move a value, and keep caches by device.",
        control="placement/create/device" if name == "same-spelling" else "moving/equality/same-spelling",
        claims=comparison.claims,
    )
    def _(lab: Lab) -> Symbol:
        return lab.attempt.compare(*comparison.two(lab))


for _name, _comparison in COMPARISONS.items():
    register_comparison(_name, _comparison)


def register_ordinal(of: str, place: str) -> None:
    """Ask which ordinal a handle, or a value's device, reports."""
    @case(
        f"moving/ordinal/{of}-{place}",
        ORDINAL,
        question=f"Which ordinal does {'the device of a value made on ' if of == 'value' else ''}the {place} report?",
        why="Ordinals are used to choose a device and to tell two apart; some are none, some are a registry's.",
        control="placement/create/device",
        claims=("D1.4", "D3.1"),
    )
    def _(lab: Lab) -> Symbol:
        device = _value_on(lab, PLACES[place]) if of == "value" else lab.do.name(PLACES[place])
        return lab.attempt.ordinal(device)


for _place in ("host", "accelerator", "alias"):
    register_ordinal("handle", _place)
    register_ordinal("value", _place)


# --- devices that are not there ------------------------------------------------------------------

ABSENT = {"absent": "a device that isn't there", "out-of-range": "an ordinal beyond the last", "misspelt": "a misspelt device"}
MISSING_WHY = "A program that asked for an accelerator and got the host is slow for days before somebody looks."


def _register_missing(name: str, spelled: str, *, move: bool) -> None:
    how = f"{'move' if move else 'create'}-{spelled}"

    @case(
        f"moving/{name}/{how}",
        MISSING_DEVICE,
        question=f"What happens when a value is {'moved to' if move else 'created on'} {ABSENT[name]}, written as {_article(spelled)}?",
        why=MISSING_WHY,
        control="moving/to-same/object" if move else "placement/create/device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        place = Place(name, spelled)
        # Naming it and using it are two steps, so that one can see which of them refuses.
        named = {"named": lab.attempt.name(place)}
        result = lab.attempt.to(lab.tensor(VALUES, lab.host), place) if move else lab.attempt.zeros([4], FLOAT32, place)
        return {**named, "result": result, "value": lab.observe(result, VALUES if move else [0.0] * 4)}


def _article(spelled: str) -> str:
    return "an object" if spelled == "object" else f"a {spelled}"


for _name in MISSING:
    _register_missing(_name, "object", move=False)
    _register_missing(_name, "string", move=False)
    _register_missing(_name, "object", move=True)


# A build can know a kind of device of which none can be seen: another error than an unknown kind's.


@case(
    "moving/hidden/host", MADE,
    question="Can values be made on the host while the accelerators are hidden?",
    why="Hiding the accelerators is how a program is kept off them; it must still run.",
    control=None, environment="no-accelerator",
)  # fmt: skip
def _hidden_host(lab: Lab) -> dict[str, Symbol]:
    result = lab.attempt.tensor({"data": VALUES}, FLOAT32, lab.host)
    return {"result": result, "value": lab.observe(result, VALUES)}


@case(
    "moving/hidden/create", missing_device("host"),
    question="What happens when a value is created on an accelerator that is hidden from the process?",
    why=MISSING_WHY, control="moving/hidden/host", environment="no-accelerator",
)  # fmt: skip
def _hidden_create(lab: Lab) -> dict[str, Symbol]:
    absent = Place("absent")
    named = lab.attempt.name(absent)
    result = lab.attempt.zeros([4], FLOAT32, absent)
    return {"named": named, "result": result, "value": lab.observe(result, [0.0] * 4)}


@case(
    "moving/hidden/count", COUNT,
    question="How many accelerators are counted while they are hidden?",
    why="Availability is asked at run time on machines of both kinds: it has to be an answer, never an exception.",
    control="moving/hidden/host", environment="no-accelerator", claims=("D3.3",),
)  # fmt: skip
def _hidden_count(lab: Lab) -> Symbol:
    return lab.attempt.accelerator_count()


@case(
    "moving/hidden/best-device", MADE,
    question="Can a value be made on the best device there is, while the accelerators are hidden?",
    why="One line chooses the device for a whole program; it must choose one that can be used.",
    control="moving/hidden/host", environment="no-accelerator", claims=("D1.6",),
)  # fmt: skip
def _hidden_best(lab: Lab) -> dict[str, Symbol]:
    result = lab.attempt.zeros([4], FLOAT32, lab.do.best_device())
    return {"result": result, "value": lab.observe(result, [0.0] * 4)}


# --- devices that nobody named -------------------------------------------------------------------

Create = Callable[[Lab, Symbol], tuple[Symbol, list[float]]]
ZEROS = [0.0] * 4


def _zeros(lab: Lab, _: Symbol) -> tuple[Symbol, list[float]]:
    return lab.attempt.zeros_uncommitted([4]), ZEROS


#: What is created, as the question says it, and how; the symbol is a value of the host.
CREATIONS: dict[str, tuple[str, Create]] = {
    "zeros": ("zeros", _zeros),
    "tensor": ("a tensor of numbers", lambda lab, _: (lab.attempt.tensor_uncommitted({"data": VALUES}, FLOAT32), VALUES)),
    "zeros-like": ("zeros like a value of the host", lambda lab, x: (lab.attempt.zeros_like(x), ZEROS)),
    "literal": ("numbers put on the host by name", lambda lab, _: (lab.attempt.literal({"data": VALUES}, lab.host), VALUES)),
}


def _register_default(name: str, says: str, create: Create) -> None:
    @case(
        f"moving/default-device/{name}",
        ANYWHERE,
        question=f"Where does {says} land while the accelerator is the default device?",
        why="What obeys a default and what doesn't differs between creation functions, and decides what mixes later.",
        control="placement/create/device",
        claims=("D3.11",) if name == "zeros-like" else (),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        x = lab.tensor(VALUES, lab.host)
        with lab.scope("default-device", lab.accelerator):
            result, expected = create(lab, x)
        return {"result": result, "value": lab.observe(result, expected)}


def _register_plain(name: str, says: str, create: Create) -> None:
    @case(
        f"moving/no-device/{name}",
        ANYWHERE,
        question=f"Where does {says} land when no device is said, while other values are on the accelerator?",
        why="Code that names no device works until it meets a value of the accelerator.",
        control="placement/create/device",
        claims=("D3.10", "D2.3"),
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        result, expected = create(lab, lab.tensor(VALUES, lab.accelerator))
        return {"result": result, "value": lab.observe(result, expected)}


for _name, (_says, _create) in CREATIONS.items():
    _register_default(_name, _says, _create)
for _name in ("zeros", "tensor"):
    _register_plain(_name, *CREATIONS[_name])


@case(
    "moving/no-device/zeros-like", ANYWHERE,
    question="Where do zeros like a value of the accelerator land?",
    why="Buffers are made like the values that they go with; made elsewhere they are refused at the first use.",
    control="placement/create/device", claims=("D3.11",),
)  # fmt: skip
def _like(lab: Lab) -> dict[str, Symbol]:
    result = lab.attempt.zeros_like(lab.tensor(VALUES, lab.accelerator))
    return {"result": result, "value": lab.observe(result, ZEROS)}


@case(
    "moving/default-device/afterwards", ANYWHERE,
    question="Where do zeros land after a default-device region has ended?",
    why="A default that leaks out of its region moves the rest of the program.",
    control="moving/default-device/zeros",
)  # fmt: skip
def _afterwards(lab: Lab) -> dict[str, Symbol]:
    with lab.scope("default-device", lab.accelerator):
        lab.do.zeros_uncommitted([4])
    result = lab.attempt.zeros_uncommitted([4])
    return {"result": result, "value": lab.observe(result, ZEROS)}


@case(
    "moving/no-device/first", ANYWHERE,
    question="Where does the very first value of a process land when no device is said?",
    why="The first use starts a runtime, and starting it may choose another default than later uses see.",
    # Any value made before in the same process would have started it already.
    control="placement/create/device", fresh=True, claims=("D2.3",),
)  # fmt: skip
def _first(lab: Lab) -> dict[str, Symbol]:
    result = lab.attempt.zeros_uncommitted([4])
    return {"result": result, "value": lab.observe(result, ZEROS)}
