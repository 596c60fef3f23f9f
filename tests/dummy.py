"""The dummy: an adapter for the small framework in `tests.fake`, with one device kind for each defect.

`accel` is healthy. Every other kind (see `tests.defects`) is the same framework with one thing broken:
`dummy:ignores-writing` is a backend whose in-place operations do nothing, and the suite has to notice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, ClassVar

from adapters.base import Adapter, NotModelled, role
from tests.defects import KINDS
from tests.fake import DTYPES, FAULTS, Device, Tensor
from tests.fake_modules import Loader, Module, load, member, moved, redirected
from tests.fake_operations import Operations

#: The framework as a user imports it: the state of the kind whose program is running.
t = Operations(())


class Dummy(Adapter):
    """The small framework, healthy or with one defect."""

    framework = "dummy"
    imports = ""
    variables = ("DUMMY_VISIBLE", "DUMMY_WIDE", "DUMMY_DEFAULT")
    environments: ClassVar[dict[str, dict[str, str]]] = {
        "wide-dtypes": {"DUMMY_WIDE": "1"},
        "no-accelerator": {"DUMMY_VISIBLE": "none"},
        "one-accelerator": {"DUMMY_VISIBLE": "0"},
        "reversed-accelerators": {"DUMMY_VISIBLE": "1,0"},
        "default-accelerator": {"DUMMY_DEFAULT": "dev:0"},
        "default-misspelt": {"DUMMY_DEFAULT": "devv"},
        "default-absent": {"DUMMY_DEFAULT": "gpu:0"},
    }
    dtypes: ClassVar[dict[str, str]] = {name: f"DTYPES['{name}']" for name in DTYPES if name not in ("int128", "uint128", "float128")}

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return a version; there is no build."""
        return {"version": "1.0", "build": {}}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return every kind: healthy ones, and one for each defect."""
        return {kind: _roles(min(_shown(), {"host-only": 0, "no-peer": 1}.get(kind, 2))) for kind in KINDS}

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Start a framework of this kind."""
        super().__init__(kind, roles)
        self.untimed = "no work is done, so none can be timed" if kind == "data-less" else ""
        there = ("host", "accelerator", "peer")[: 1 + _shown()]
        self.state = Operations([roles[name]["name"] for name in there if name in roles])

    # --- devices and the life of one program ----------------------------------------------------

    def spelling(self, name: str, spelled: str) -> str:
        """Spell a device as an object or a string, with an index or without."""
        text = self.roles[name]["name"]
        kind = text.partition(":")[0]
        indexed = text if ":" in text else f"{text}:0"
        expression = self.roles[name]["expression"]
        return {"object": expression, "string": repr(text), "indexless": repr(kind), "indexed": repr(indexed)}[spelled]

    def missing(self, name: str, spelled: str) -> str:
        """Spell a device that is not here."""
        kind, index = {"absent": ("gpu", 0), "out-of-range": ("dev", 99), "misspelt": ("devv", 0)}[name]
        return repr(f"{kind}:{index}") if spelled == "string" else f"Device({kind!r}, {index})"

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Switch this kind's defects on, for one program."""
        global t
        t = self.state
        FAULTS.clear()
        FAULTS.update(KINDS[self.kind])
        try:
            yield
        finally:
            FAULTS.clear()

    def scope(self, name: str, *args: Any) -> contextlib.AbstractContextManager[Any]:
        """Return the framework's scoped regions."""
        if name == "default-device":
            return t.default_device(*args)
        if name == "current-device":
            return t.current_device(*args)
        if name == "inference":
            return contextlib.nullcontext()
        return super().scope(name, *args)

    def reset(self) -> None:
        """Put back the default device, and forget what earlier work left behind."""
        self.state.default, self.state.defaulted, self.state.current = None, True, 0
        self.state.late.clear()
        self.state.pending = 0.0

    def barrier(self, values: list[Any]) -> None:  # noqa: ARG002  it waits for the queue
        """Wait for everything."""
        self.state.barrier()

    def poisoned(self, error: BaseException) -> bool:  # noqa: ARG002  whatever fails once the device is lost
        """Say whether the device is lost: it doesn't come back in this process."""
        return self.state.lost

    def clock(self) -> float:
        """Return virtual seconds."""
        return self.state.now

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype and shape."""
        if not isinstance(value, Tensor):
            return {}
        return {"device": value.device.name, "dtype": value.dtype.name, "shape": list(value.shape), "memory": value.memory}

    def dtype_name(self, native: Any) -> str:
        """Return the neutral name of a native dtype."""
        return str(native.name)

    def read(self, value: Any) -> Any:
        """Return the elements, waiting for them."""
        if self.untimed and value.device.kind != "host":
            raise NotModelled("data-less devices hold no values")
        return self.state.read(value)

    def identity_of(self, value: Any) -> Any:
        """Return the storage."""
        return value.storage

    # --- making ---------------------------------------------------------------------------------

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:  # noqa: D102
        return t.tensor(values, dtype, device)

    def tensor_uncommitted(self, values: Any, dtype: Any) -> Any:  # noqa: D102
        return t.tensor(values, dtype, op="tensor_uncommitted")

    def literal(self, values: Any, device: Any) -> Any:  # noqa: D102
        return t.tensor(values, device=device, op="literal")

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:  # noqa: D102
        return t.full(shape, value, dtype, device)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:  # noqa: D102
        return t.ramp(count, start, shape, dtype, device)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:  # noqa: D102
        return t.full(shape, 0, dtype, device, op="zeros")

    def zeros_uncommitted(self, shape: Any) -> Any:  # noqa: D102
        return t.full(shape, 0, op="zeros_uncommitted")

    def zeros_like(self, x: Any) -> Any:  # noqa: D102
        return t.zeros_like(x)

    def from_buffer(self, buffer: Any, device: Any) -> Any:  # noqa: D102
        return t.from_buffer(buffer.memory, DTYPES[buffer.dtype], device)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:  # noqa: D102
        return t.from_buffer(buffer.memory, DTYPES[buffer.dtype], device, copy=True)

    # --- arithmetic -------------------------------------------------------------------------------

    def add(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.arithmetic("add", x, y)

    def sub(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.arithmetic("sub", x, y)

    def mul(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.arithmetic("mul", x, y)

    def div(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.arithmetic("div", x, y)

    def less(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.arithmetic("less", x, y)

    def matmul(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.matmul(x, y)

    def sum(self, x: Any) -> Any:  # noqa: D102
        return t.sum(x)

    def where(self, condition: Any, x: Any, y: Any) -> Any:  # noqa: D102
        return t.where(condition, x, y)

    def cat(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.join("cat", x, y)

    def stack(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.join("stack", x, y)

    def array_equal(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.array_equal(x, y)

    # --- indexing ---------------------------------------------------------------------------------

    def embedding(self, table: Any, ids: Any) -> Any:  # noqa: D102
        return t.rows("embedding", table, ids)

    def index(self, x: Any, ids: Any) -> Any:  # noqa: D102
        return t.rows("index", x, ids)

    def index_select(self, x: Any, ids: Any) -> Any:  # noqa: D102
        return t.rows("index_select", x, ids)

    def gather(self, x: Any, ids: Any) -> Any:  # noqa: D102
        return t.gather(x, ids)

    def mask(self, x: Any, mask: Any) -> Any:  # noqa: D102
        return t.mask(x, mask)

    def item(self, x: Any) -> Any:  # noqa: D102
        return t.item(x)

    # --- views ------------------------------------------------------------------------------------

    def element(self, x: Any, i: int) -> Any:  # noqa: D102
        return t.element(x, i)

    def corner(self, x: Any) -> Any:  # noqa: D102
        return t.corner(x)

    def tail(self, x: Any, start: int) -> Any:  # noqa: D102
        return t.tail(x, start)

    def transpose(self, x: Any) -> Any:  # noqa: D102
        return t.transpose(x)

    def expand(self, x: Any, shape: Any) -> Any:  # noqa: D102
        return t.expand(x, shape)

    def reshape(self, x: Any, shape: Any) -> Any:  # noqa: D102
        return t.reshape(x, shape)

    # --- effects ----------------------------------------------------------------------------------

    def add_(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.add_into("add_", x, x, y)

    def add_out(self, x: Any, y: Any, out: Any) -> Any:  # noqa: D102
        return t.add_into("add_out", out, x, y)

    def copy_(self, x: Any, y: Any) -> Any:  # noqa: D102
        return t.write("copy_", x, y, [x, y])

    def set_tail(self, x: Any, start: int, y: Any) -> Any:  # noqa: D102
        return t.set_tail(x, start, y)

    # --- moving -----------------------------------------------------------------------------------

    def to(self, x: Any, device: Any) -> Any:  # noqa: D102
        return t.move("to", x, device)

    def to_copy(self, x: Any, device: Any) -> Any:  # noqa: D102
        return t.move("to_copy", x, device, copy=True)

    def to_async(self, x: Any, device: Any) -> Any:  # noqa: D102
        return t.move("to_async", x, device, copy=True)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:  # noqa: D102
        return t.move("to_both", x, device, dtype)

    def shard(self, x: Any, first: Any, second: Any) -> Any:  # noqa: D102
        return t.shard(x, first, second)

    def to_memory(self, x: Any, kind: str) -> Any:  # noqa: D102
        return t.move("to_memory", x, memory=kind)

    def cast(self, x: Any, dtype: Any) -> Any:  # noqa: D102
        return t.move("cast", x, dtype=dtype)

    def to_host_shortcut(self, x: Any) -> Any:  # noqa: D102
        return t.move("to_host_shortcut", x, "host")

    def to_accelerator_shortcut(self, x: Any) -> Any:  # noqa: D102
        return t.move("to_accelerator_shortcut", x, "dev")

    def device_of(self, x: Any) -> Any:  # noqa: D102
        return t.device_of(x)

    # --- modules --------------------------------------------------------------------------------

    def linear(self, weight: Any) -> Any:  # noqa: D102
        return Module("weight", weight)

    def linear_uncommitted(self, edge: int) -> Any:  # noqa: D102
        return Module("weight", t.full([edge, edge], 0.5, op="linear_uncommitted"))

    def holder(self, x: Any, kind: str) -> Any:  # noqa: D102
        return Module(kind, x)

    def member(self, module: Any, kind: str) -> Any:  # noqa: D102
        return member(t, module, kind)

    def call(self, module: Any, x: Any) -> Any:  # noqa: D102
        return t.matmul(x, module.kept, op="call")

    def move_module(self, module: Any, device: Any) -> Any:  # noqa: D102
        return moved(t, module, device)

    def loader(self, weight: Any, device: Any) -> Any:  # noqa: D102
        return Loader(weight, device)

    def load(self, loader: Any, edge: int) -> Any:  # noqa: ARG002, D102  the weight has its edges
        return load(t, loader)

    def loader_to(self, loader: Any, device: Any) -> Any:  # noqa: D102
        return redirected(t, loader, device)

    # --- devices as values ----------------------------------------------------------------------

    def parse_device(self, spelling: Any) -> Any:  # noqa: D102
        return t.use(spelling)

    def clone_device(self, device: Any) -> Any:  # noqa: D102
        return Device(device.kind, device.index)

    def ordinal(self, device: Any) -> Any:  # noqa: D102
        return t.ordinal(device)

    def accelerator_count(self) -> Any:  # noqa: D102
        return t.accelerator_count()

    def best_device(self) -> Any:  # noqa: D102
        return t.best_device()

    # --- reading back ---------------------------------------------------------------------------

    def to_list(self, x: Any) -> Any:  # noqa: D102
        return t.to_list("to_list", x)

    def to_numpy(self, x: Any) -> Any:  # noqa: D102
        return t.to_list("to_numpy", x)


def _shown() -> int:
    """Return how many accelerators the environment shows."""
    return {"none": 0, "0": 1}.get(os.environ.get("DUMMY_VISIBLE", ""), 2)


def _roles(accelerators: int) -> dict[str, dict[str, str]]:
    roles = {"host": role("host", "Device('host')", "simulated")}
    if accelerators:
        roles["accelerator"] = role("dev:0", "Device('dev', 0)", "simulated")
        roles["alias"] = role("dev:0", "Device('dev')", "simulated")
    if accelerators > 1:
        roles["peer"] = role("dev:1", "Device('dev', 1)", "simulated")
    return roles
