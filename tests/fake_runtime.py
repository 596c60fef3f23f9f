"""The runtime of the small framework: operations, the queue, and where each defect strikes.

Defects come in two sorts. Those of a whole *family* of operations are named by effect and family:
`refuses-moving`, `fails-late-computing`, `garbles-writing`, `lands-on-next-casting`. The others are
single faults, listed in `defects.SINGLE`. Times are virtual: work has a cost, and only waiting passes it.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.fake import (
    DTYPES,
    FAULTS,
    JUNK,
    NARROWED,
    WIDENED,
    Cells,
    Device,
    DeviceError,
    Dtype,
    Elements,
    Held,
    LateError,
    RefusedError,
    Spread,
    Storage,
    Tensor,
)  # fmt: skip

#: The families, and the operations of each.
FAMILIES: dict[str, tuple[str, ...]] = {
    "uploading": ("tensor", "from_buffer", "from_buffer_copy"),
    "literals": ("literal",),
    "defaulting": ("tensor_uncommitted", "zeros_uncommitted", "linear_uncommitted"),
    "filling": ("full", "ramp", "zeros"),
    "likening": ("zeros_like",),
    "computing": (
        "add", "sub", "mul", "div", "less", "matmul", "sum", "where", "cat", "stack", "array_equal", "embedding", "index",
        "index_select", "gather", "mask", "call",
    ),
    "viewing": ("element", "tail", "transpose", "expand", "reshape", "corner", "member"),
    "writing": ("add_", "set_tail", "copy_", "add_out"),
    "moving": ("to", "to_copy", "to_async", "to_both", "to_host_shortcut", "to_accelerator_shortcut", "move_module", "loader_to"),
    "loading": ("load",),
    "sharding": ("shard",),
    "pinning": ("to_memory",),
    "casting": ("cast",),
    "looking": ("item", "to_list", "to_numpy"),
}  # fmt: skip
FAMILY = {operation: family for family, operations in FAMILIES.items() for operation in operations}
_ALL = tuple(FAMILIES)
_MADE = tuple(f for f in FAMILIES if f != "looking")
_TYPED = ("uploading", "literals", "computing", "moving", "casting")
#: What can be wrong with a whole family, and the families that it can be wrong with.
EFFECTS: dict[str, tuple[str, ...]] = {
    "refuses": _ALL,
    "fails-late": _ALL,
    "garbles": _ALL,
    "lands-on-next": _MADE,
    "lands-on-previous": _MADE,
    "ignores": ("writing", "moving", "pinning", "casting"),
    "narrows": _TYPED,
    "narrows-with-warning": _TYPED,
    "widens": _TYPED,
}
#: The devices in the order of `lands-on-next`, which goes round.
ROUND = ("host", "dev:0", "dev:1")
#: Seconds for one elementary step of work, and for putting work on the queue.
STEP, DISPATCH = 1e-9, 1e-6
#: Seconds for loading a kernel, and for making one more buffer of a queue.
LOAD, ALLOCATE = 1e-2, 1e-3


class Plan(NamedTuple):
    """Where an operation will run, and what is already wrong with it."""

    device: Device
    family: str = ""
    error: Exception | None = None
    garbled: bool = False


class Runtime:
    """The state of one process of the framework."""

    def __init__(self, present: Sequence[str]) -> None:
        """Take the names of the devices that are there."""
        self.present = set(present)
        self.now = 0.0
        self.pending = 0.0
        self.late: list[Exception] = []
        self.default: Device | None = None
        #: False once the default device was lost with the region that changed it.
        self.defaulted = True
        #: The accelerator that is meant where no index is said.
        self.current = 0
        self.lost = False
        self.loaded: set[str] = set()
        self.queued = self.deepest = 0

    # --- devices --------------------------------------------------------------------------------

    def use(self, device: Device | str) -> Device:
        """Return the device to work on. Raises DeviceError where it isn't there."""
        if isinstance(device, str):
            kind, _, index = device.partition(":")
            device = Device(kind, int(index) if index and "current-device-overrides" not in FAULTS else self.current)
        if device.name in self.present or FAULTS & {"accepts-absent-devices", "checks-late"}:
            return device
        if "absent-becomes-host" in FAULTS:
            return Device("host")
        if "absent-becomes-first" in FAULTS:
            return Device("dev", 0)
        raise DeviceError(f"no device {device}; there are {', '.join(sorted(self.present))}")

    def fallback(self) -> Device:
        """Return where creation goes when nobody says."""
        if not self.defaulted:
            raise RefusedError("no default device is set")
        if "defaults-to-accelerator" in FAULTS and "dev:0" in self.present:
            return Device("dev", 0)
        if "ignores-default-device" in FAULTS:
            return Device("host")
        return self.default or self.use(os.environ.get("DUMMY_DEFAULT", "host"))

    @contextlib.contextmanager
    def default_device(self, device: Device | str) -> Iterator[None]:
        """Create on this device inside, where none is said."""
        before, self.default = self.default, self.use(device)
        try:
            yield
        finally:
            if "leaks-default-device" not in FAULTS:
                self.default = before
            self.defaulted = "loses-default-device" not in FAULTS

    @contextlib.contextmanager
    def current_device(self, device: Device | str) -> Iterator[None]:
        """Mean this accelerator inside, where one is named without an index."""
        before, self.current = self.current, 0 if "ignores-current-device" in FAULTS else self.use(device).index or 0
        try:
            yield
        finally:
            if "leaks-current-device" not in FAULTS:
                self.current = before

    # --- the life of one operation --------------------------------------------------------------

    def plan(self, op: str, operands: Sequence[Any], device: Device | None = None) -> Plan:
        """Decide where an operation runs. Raises RefusedError, and DeviceError for mixed operands."""
        family = FAMILY[op]
        tensors = [x for x in operands if isinstance(x, Tensor)]
        if self.lost:
            raise LateError(f"{op}: the device is lost")
        if "warms-up" in FAULTS and op not in self.loaded:
            self.loaded.add(op)
            self.now += LOAD
        if device is None:
            device = tensors[0].device
        error = next((t.storage.error for t in tensors if t.storage.error), None)
        if FAULTS & {f"refuses-{family}", f"refuses-{op}"}:
            raise RefusedError(f"{op} is not implemented on {device}")
        if f"fails-late-{family}" in FAULTS:
            error = LateError(f"{op} failed on {device}")
        if f"garbles-{family}" in FAULTS:
            return Plan(device, family, error, garbled=True)
        for effect, step in (("lands-on-next", 1), ("lands-on-previous", -1)):
            if f"{effect}-{family}" in FAULTS:
                name = ROUND[(ROUND.index(device.name.split()[0]) + step) % 3]
                return Plan(self.use(name) if name in self.present else device, family, error)
        return self._placed(op, tensors, Plan(device, family, error))

    def _placed(self, op: str, tensors: list[Tensor], plan: Plan) -> Plan:
        if len(tensors) < 2 or "moves-to-first" in FAULTS:
            return plan
        if "moves-to-last" in FAULTS:
            return plan._replace(device=tensors[-1].device)
        bound = [t for t in tensors if not self._scalar(t)] or [t for t in tensors if t.device.kind != "host"] or tensors
        plan = plan._replace(device=bound[0].device)
        other = next((t for t in bound if t.device.name != plan.device.name), None)
        if other is None or op in ("copy_", "set_tail"):
            return plan
        problem = DeviceError(f"{op}: operands are on {plan.device} and on {other.device}; move one of them first")
        if "loses-errors" in FAULTS:
            return plan._replace(garbled=True)
        if "checks-late" in FAULTS:
            return plan._replace(error=plan.error or problem)
        raise problem

    def _scalar(self, value: Tensor) -> bool:
        if "scalars-are-no-exception" in FAULTS:
            return False
        if "one-element-is-scalar" in FAULTS:
            return value.count == 1 and value.device.kind == "host"
        if "scalars-from-anywhere" in FAULTS:
            return value.shape == ()
        return value.shape == () and value.device.kind == "host"

    def finish(
        self, plan: Plan, shape: Sequence[int], dtype: Dtype, cells: Cells, constant: Any = None, *, cost: int = 0,
        memory: str = "device",
    ) -> Tensor:  # fmt: skip
        """Queue the work and return its value-to-be."""
        device, error = plan.device, plan.error
        dtype = self.held(dtype, device, plan.family)
        if plan.garbled:
            constant = JUNK
        if device.name not in self.present and "checks-late" in FAULTS:
            error = error or DeviceError(f"no device {device}")
        if constant is not None:
            constant = dtype.cast(constant)
            made: Cells = lambda _: constant  # noqa: E731
        else:
            made = Held(cells, dtype)
        self.work(device, (cost or math.prod(shape)) * STEP, error)
        return Tensor(Storage(made, constant, error), shape, dtype, device, memory=memory)

    def shard(self, x: Tensor, first: Any, second: Any) -> Tensor:
        """Spread a value over two devices."""
        plan = self.plan("shard", [x], Spread(self.use(first), self.use(second)))
        return self.finish(plan, x.shape, x.dtype, x.cells(), x.storage.constant)

    def held(self, dtype: Dtype, device: Device, family: str) -> Dtype:
        """Return the dtype that a result has, for the one that it should have."""
        narrow = DTYPES[NARROWED.get(dtype.name, dtype.name)]
        if dtype.name in ("int64", "uint64", "float64", "complex128") and device.kind != "host":
            if "refuses-wide" in FAULTS:
                raise RefusedError(f"{device} has no {dtype.name}; use {narrow.name}")
            if "narrows-wide" in FAULTS and "DUMMY_WIDE" not in os.environ:
                return narrow
        if f"widens-{family}" in FAULTS:
            return DTYPES[WIDENED.get(dtype.name, dtype.name)]
        if f"narrows-with-warning-{family}" in FAULTS:
            warnings.warn(f"{dtype.name} is not available on {device}: {narrow.name} is used", stacklevel=2)
        return narrow if FAULTS & {f"narrows-{family}", f"narrows-with-warning-{family}"} else dtype

    def work(self, device: Device, seconds: float, error: Exception | None) -> None:
        """Put work on a device's queue; the host works when called."""
        self.now += DISPATCH
        self.queued += 1
        if "allocates-queues" in FAULTS and self.queued > self.deepest:
            self.deepest = self.queued
            self.now += ALLOCATE
        if error is not None and error not in self.late:
            self.late.append(error)
        if device.kind == "host" or "blocks" in FAULTS:
            self.now += seconds
        elif "half-blocks" in FAULTS:
            self.now += seconds * 0.65
            self.pending += seconds * 0.35
        else:
            self.pending += seconds

    def wait(self) -> None:
        """Pass the time that queued work takes."""
        self.now += self.pending
        self.pending, self.queued = 0.0, 0

    def barrier(self) -> None:
        """Wait for everything. Raises the first late error."""
        self.wait()
        late, self.late = self.late, []
        if late:
            raise late[0]

    def read(self, value: Tensor) -> Elements:
        """Return the elements, waiting for them. Raises the error of the work behind them."""
        error = value.storage.error
        if "reads-without-waiting" not in FAULTS:
            self.wait()
            if error is not None:
                self.late = [e for e in self.late if e is not error]
                raise error
        junk = value.dtype.cast(JUNK)
        return Elements(value.cells() if error is None else lambda _: junk, value.count)

    def strike(self) -> None:
        """Do what a broken kernel or driver does to the process: see `defects.SINGLE`."""
        if "dies" in FAULTS:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "aborts" in FAULTS:
            os.abort()
        if "exits" in FAULTS:
            os._exit(0)
        if "hangs" in FAULTS:
            time.sleep(86400)
        if "prints-rubbish" in FAULTS:
            for stream in (1, 2):
                os.write(stream, b'{"type": "observation", "id": 1}\n\xff\x00 half a line' * 4096)
            sys.stdout.write("rubbish\n")
        if "leaks-default-device" in FAULTS:
            self.default = Device("dev", 0)
        if "leaks-environment" in FAULTS:
            os.environ["DUMMY_VISIBLE"] = "nothing"
        if "poisons-device" in FAULTS:
            self.lost = True
