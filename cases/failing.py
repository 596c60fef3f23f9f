"""What fails in the hardware: an index beyond the end, a value beyond all memory. Parts of the areas `time` and `moving`.

An accelerator looks at an index in the kernel, when the call has long returned: its error surfaces at a later call that did
nothing wrong, and may cost the process. What still works afterwards is told by the facets.
"""

from __future__ import annotations

from cases.answers import NEUTRAL, RAISES, Vocabulary, refused
from cases.case import case
from cases.lab import Lab, Symbol
from cases.placement import SHAPE
from cases.reading import Reading

#: Elements along each of two axes: a pebibyte of float32, which no device has.
EDGE = 2**24


def _decide(reading: Reading) -> str:
    return refused(reading) or "no-error"


UNNOTICED = Vocabulary({**RAISES, "no-error": (NEUTRAL, "some value comes back, and no error ever")}, _decide)


def _register_beyond(place: str) -> None:
    @case(
        f"time/beyond-end/{place}", UNNOTICED,
        question=f"When is an index beyond the end of a value of the {place} noticed: at the call, where something waits, or never?",
        why="An error that surfaces late is blamed on an innocent line; one that is never noticed trains a model on something else.",
        control="placement/index-select/device-device",
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        on = lab.host if place == "host" else lab.accelerator
        x = lab.ramp(SHAPE, on)
        result = lab.attempt.index_select(x, lab.tensor([1, 999_999], on, "int64"))
        return {"result": result, "value": lab.observe(result)}


def _register_too_large(place: str) -> None:
    @case(
        f"moving/too-large/{place}", UNNOTICED,
        question=f"What happens when zeros are created on the {place} that no memory could hold?",
        why="Running out of memory is the commonest failure on an accelerator; a program can only recover from an error that it can catch.",
        control="placement/create/device",
    )  # fmt: skip
    def _(lab: Lab) -> dict[str, Symbol]:
        result = lab.attempt.zeros([EDGE, EDGE], {"dtype": "float32"}, lab.host if place == "host" else lab.accelerator)
        return {"result": result, "waited": lab.attempt.barrier()}


for _place in ("host", "accelerator"):
    _register_beyond(_place)
    _register_too_large(_place)
