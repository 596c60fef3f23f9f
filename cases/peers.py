"""Two accelerators: moves between them, and which of them is meant when none is said. The rest of the area `moving`.

A copy between two accelerators takes another path than one to the host, and where that path is
broken it holds something else, without a word: so large values are moved too, twice. An accelerator that is
named without an index is the one that is current, which a region can change.
"""

from __future__ import annotations

from cases.answers import MISSING_DEVICE, MOVE, WORKING, lands
from cases.answers_moving import COUNTED, MADE
from cases.case import case
from cases.devices import FLOAT32, VALUES, ZEROS, Comparison, register_comparison, register_ordinal
from cases.lab import Lab, Numbers, Place, Symbol
from cases.moving import ASKS, OPERANDS, PLAIN, STRIDED, register_move, register_original, register_round_trip, to
from cases.placement import COUNT, PLACES, SHAPE, sentinel

WAYS = {"to-peer": ("peer", "accelerator"), "from-peer": ("accelerator", "peer")}
PATH_WHY = "Copies between two accelerators take a path of their own; where a bridge or a driver breaks it, they hold something else."

# --- moves between them --------------------------------------------------------------------------


def _register_large(name: str, goal: str, source: str) -> None:
    @case(
        f"moving/{name}/large", MOVE,
        question=f"Does a large value of the {source} arrive whole when it is moved to the {goal}, twice?",
        why=PATH_WHY, control=f"moving/{name}/object", claims=("D3.13",), wanted={"role": goal, "from": source},
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        x = lab.ramp(SHAPE, PLACES[source], start=2)
        sentinel(lab, PLACES[goal])
        expected = Numbers(COUNT, lambda i: 2.0 + i)
        result = lab.attempt.to(x, PLACES[goal])
        value = lab.observe(result, expected)
        return {"result": result, "value": value, "again": lab.observe(lab.attempt.to(x, PLACES[goal]), expected)}


for _name, (_goal, _source) in WAYS.items():
    for _how, (_says, _ask) in ASKS.items():
        if (_name, _how) == ("to-peer", "indexless"):
            continue  # no name without an index means the second one
        register_move(_name, _goal, _source, _how, _says, PLAIN, _ask, ("D3.13",))
    for _how in STRIDED:
        register_move(_name, _goal, _source, _how, "as it is", OPERANDS[_how], to)
    _register_large(_name, _goal, _source)
register_original("accelerator", "peer")
register_round_trip("accelerator", "peer")
register_comparison("value-peer", Comparison(
    "a value's device and the peer it was asked for on",
    lambda lab: (lab.do.device_of(lab.tensor(VALUES, lab.peer)), lab.do.name(lab.peer)), ("D3.2", "D3.13"),
))  # fmt: skip
register_ordinal("handle", "peer")
register_ordinal("value", "peer")

# --- the one that is meant -----------------------------------------------------------------------

ONE_OF_TWO = lands("accelerator", "peer")
CURRENT_WHY = "Libraries change the current accelerator for a while; code that names none, or no index, then works on another one."


def _register_current(name: str, says: str, place: Place) -> None:
    @case(
        f"moving/current-device/{name}", ONE_OF_TWO,
        question=f"Where are zeros created on the accelerator, named {says}, while the peer is the current one?",
        why=CURRENT_WHY, control="placement/create/device", claims=("D3.1", "D3.14"),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        with lab.scope("current-device", lab.peer):
            result = lab.attempt.zeros([4], FLOAT32, place)
        return {"result": result, "value": lab.observe(result, ZEROS)}


_register_current("indexless", "without an index", Lab.accelerator.as_("indexless"))
_register_current("indexed", "with its index", Lab.accelerator.as_("indexed"))


@case(
    "moving/current-device/shortcut", ONE_OF_TWO,
    question="Where does a value of the host arrive by the short way to the accelerator, while the peer is the current one?",
    why=CURRENT_WHY, control="moving/to-accelerator/shortcut", claims=("D3.6",),
)  # fmt: skip
def _shortcut(lab: Lab) -> dict[str, Symbol]:
    x = lab.tensor(VALUES, lab.host)
    with lab.scope("current-device", lab.peer):
        result = lab.attempt.to_accelerator_shortcut(x)
    return {"result": result, "value": lab.observe(result, VALUES)}


@case(
    "moving/current-device/operation", WORKING,
    question="Is a value of the accelerator added to itself where it is, while the peer is the current one?",
    why="An operation follows its operands, whatever is current; a kernel launched elsewhere reads memory that it can't see.",
    control="placement/add/device-device",
)  # fmt: skip
def _operation(lab: Lab) -> dict[str, Symbol]:
    x = lab.tensor(VALUES, lab.accelerator)
    with lab.scope("current-device", lab.peer):
        result = lab.attempt.add(x, x)
    return {"result": result, "value": lab.observe(result, [2 * value for value in VALUES]), "home": x}


@case(
    "moving/current-device/afterwards", ONE_OF_TWO,
    question="Where are zeros created on the accelerator, named without an index, after the peer was the current one?",
    why="A current accelerator that outlives its region moves the rest of the program.",
    control="moving/current-device/indexless",
)  # fmt: skip
def _afterwards(lab: Lab) -> dict[str, Symbol]:
    # Named in the same way inside: what a name came to there may be remembered.
    with lab.scope("current-device", lab.peer):
        lab.attempt.zeros([4], FLOAT32, lab.accelerator.as_("indexless"))
    result = lab.attempt.zeros([4], FLOAT32, lab.accelerator.as_("indexless"))
    return {"result": result, "value": lab.observe(result, ZEROS)}


@case(
    "moving/default-device/peer", ONE_OF_TWO,
    question="Where do zeros land while the peer is the default device?",
    why="A default has to reach the accelerator that it names, not the first of its kind.",
    control="moving/default-device/zeros", claims=("D3.10",),
)  # fmt: skip
def _default(lab: Lab) -> dict[str, Symbol]:
    # Named too, so that it is asked only where there is another one that could be meant.
    lab.do.name(lab.accelerator)
    with lab.scope("default-device", lab.peer):
        result = lab.attempt.zeros_uncommitted([4])
    return {"result": result, "value": lab.observe(result, ZEROS)}


# --- those that a variable shows -----------------------------------------------------------------

VISIBLE_WHY = "A variable chooses a machine's accelerators for a program, which numbers them anew: names from elsewhere mean others then."


@case(
    "moving/one-visible/count", COUNTED,
    question="How many accelerators are counted where the environment shows the first alone?",
    why=VISIBLE_WHY, control="moving/one-visible/create", environment="one-accelerator", claims=("D3.14",),
)  # fmt: skip
def _one_count(lab: Lab) -> Symbol:
    # Named, so that where there is no accelerator nothing is asked.
    lab.do.name(lab.accelerator)
    return lab.attempt.accelerator_count()


@case(
    "moving/one-visible/peer", MISSING_DEVICE,
    question="What happens when a value is created on the second accelerator where the environment shows the first alone?",
    why=VISIBLE_WHY, control="moving/one-visible/create", environment="one-accelerator", claims=("D3.14",),
)  # fmt: skip
def _one_peer(lab: Lab) -> dict[str, Symbol]:
    lab.do.name(lab.accelerator)
    named = lab.attempt.name(lab.peer)
    result = lab.attempt.zeros([4], FLOAT32, lab.peer)
    return {"named": named, "result": result, "value": lab.observe(result, ZEROS)}


@case(
    "moving/reversed/to-peer", MOVE,
    question="Does a value of the first accelerator arrive on the second where the environment shows the two the other way round?",
    why=VISIBLE_WHY, control="moving/reversed/create", environment="reversed-accelerators", claims=("D3.14",),
    wanted={"role": "peer", "from": "accelerator"},
)  # fmt: skip
def _reversed(lab: Lab) -> dict[str, Symbol]:
    x = lab.tensor(VALUES, lab.accelerator)
    result = lab.attempt.to(x, lab.peer)
    return {"result": result, "value": lab.observe(result, VALUES)}


def _register_shown(name: str, environment: str, says: str) -> None:
    @case(
        f"moving/{name}/create", MADE,
        question=f"Can a value be made on the first accelerator where the environment shows {says}?",
        why=VISIBLE_WHY, control=None, environment=environment, claims=("D3.14",),
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        lab.do.name(lab.accelerator if environment == "one-accelerator" else lab.peer)
        result = lab.attempt.tensor({"data": VALUES}, FLOAT32, lab.accelerator)
        return {"result": result, "value": lab.observe(result, VALUES)}


_register_shown("one-visible", "one-accelerator", "that one alone")
_register_shown("reversed", "reversed-accelerators", "the two the other way round")
