"""Values made of host memory that is written afterwards: whose memory is it then? The rest of the area `moving`."""

from __future__ import annotations

from cases.answers_moving import write_seen
from cases.case import case
from cases.devices import VALUES
from cases.lab import Lab, Symbol
from cases.placement import PLACES

#: A buffer whose transfer takes a while holds the values so often (64 MiB of float32), and so many small ones are handed over behind it.
LARGE, BEHIND = 2**22, 8


def _register_buffer(name: str, alignment: str, place: str) -> None:
    copied, waits = name == "buffer-copy", name == "buffer-waited"
    # Memory that is read late is mostly read before anybody writes to it, unless the way there is busy.
    busy = place == "device" and not waits

    @case(
        f"moving/{name}/{alignment}/{place}",
        write_seen(copied=copied, by="host"),
        question=f"A value made of {alignment} host memory{', as a copy,' if copied else ''} on the {place}"
        f"{', behind a large one' if busy else ''}: "
        f"is a later write to that memory seen{', once everything was waited for' if waits else ''}?",
        why="Input pipelines reuse their buffers; a value over the buffer, or one that is filled from it later, changes with it.",
        control="placement/create/device",
    )
    def _(lab: Lab) -> dict[str, Symbol]:
        make = lab.attempt.from_buffer_copy if copied else lab.attempt.from_buffer
        values: list[Symbol] = []
        marks: dict[str, Symbol] = {}
        for n in range(1 + BEHIND if busy else 1):
            if n == 1:  # by the first one's device: where that couldn't be made, nothing more is tried
                make(lab.do.buffer({"data": VALUES}, alignment, "float32", LARGE), lab.do.device_of(values[0]))
            buffer = lab.do.buffer({"data": VALUES}, alignment)
            values.append(make(buffer, PLACES[place] if n == 0 else lab.do.device_of(values[0])))
            if waits:
                marks["waited"] = lab.attempt.barrier()
            lab.do.write_buffer(buffer, 9.0)
        for n, value in enumerate(values):  # after the last one was handed over: to look is to wait
            marks |= {f"value{n or ''}": lab.observe(value, [9.0] * len(VALUES)), f"before{n or ''}": lab.observe(value, VALUES)}
        return {"result": values[0], **marks}


for _alignment in ("aligned", "misaligned"):
    for _name in ("buffer", "buffer-copy", "buffer-waited"):
        _register_buffer(_name, _alignment, "device")
    _register_buffer("buffer", _alignment, "host")
