"""The dummy: an adapter for the small framework in `tests.fake`, with one device kind for each defect.

`accel` is healthy. Every other kind is the same framework with one thing broken: a fault of an
operation or of the runtime that knows nothing of cases and answers. So `dummy:ignores-writing`
is a backend whose in-place operations do nothing, and the suite has to notice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, ClassVar

from adapters.base import Adapter, NotModelled, role
from tests.fake import DTYPES, FAULTS, Device, Tensor
from tests.fake_operations import Operations
from tests.fake_runtime import EFFECTS, FAMILIES

#: Faults of one place, by the name of the device kind that has them: the families, operations and
#: scopes that they strike, and what is broken.
SINGLE: dict[str, tuple[str, str]] = {
    "moves-to-first": ("computing writing", "mixed operands go to the first one's device"),
    "moves-to-last": ("computing writing", "mixed operands go to the last one's device"),
    "loses-errors": ("computing writing", "mixed operands are noticed, the error is lost and the result never written"),
    "checks-late": ("computing writing uploading literals filling moving", "devices are looked at when the work runs and not at the call"),
    "scalars-are-no-exception": ("computing writing", "a 0-dim host value mixes with nothing"),
    "one-element-is-scalar": ("computing writing", "any host value of one element counts as a scalar"),
    "scalars-from-anywhere": ("computing writing", "a 0-dim value counts as a scalar on every device"),
    "promotes-by-scalar": ("computing", "a scalar's dtype wins"),
    "casts-scalars-first": ("computing", "a scalar is cast to the tensor's dtype before it is used"),
    "promotes-to-widest": ("computing", "every result is complex128"),
    "compares-memory": ("array_equal", "equality of values compares their storage"),
    "views-lose-offset": ("viewing", "a view starts where its storage does"),
    "views-copy": ("viewing", "a view has storage of its own"),
    "copies-on-same-to": ("moving pinning casting", "moving to the same device copies"),
    "rewraps-on-same-to": ("moving pinning casting", "moving to the same device makes a new object over the same storage"),
    "ignores-copy-requests": ("to_copy from_buffer_copy", "a copy that was asked for is not made"),
    "aliases-host-memory": ("from_buffer", "host memory is used in place where no copy is asked for"),
    "ignores-dtype-on-move": ("to_both", "a move to device and dtype forgets the dtype"),
    "ignores-moves-to-host": ("moving pinning casting", "a move to the host does nothing"),
    "ignores-moves-to-accelerators": ("moving pinning casting", "a move to an accelerator does nothing"),
    "refuses-pinning-twice": ("pinning", "what is pinned can't be pinned again"),
    "aliases-across-devices": ("moving pinning casting", "a move shares storage with the original, as unified memory does"),
    "moves-originals": ("moving pinning casting", "a move takes the original along"),
    "clobbers-originals": ("moving pinning casting", "a move hands the original's memory out again"),
    "narrows-wide": ("uploading literals defaulting filling likening computing moving casting looking", "the accelerator holds 64-bit dtypes as 32-bit ones, without a word"),
    "refuses-wide": ("uploading literals defaulting filling likening computing moving casting looking", "the accelerator has no 64-bit dtypes"),
    "literals-are-wide": ("literals computing", "floats without a dtype are float64"),
    "defaults-to-accelerator": ("defaulting default-device", "creation without a device goes to the accelerator"),
    "ignores-default-device": ("defaulting default-device", "a default device changes nothing"),
    "default-device-overrides": ("default-device", "a default device wins over the one that is said"),
    "loses-default-device": ("defaulting default-device", "once a default device's region ends there is no default any more"),
    "like-ignores-operand": ("likening", "zeros_like goes to the default device"),
    "accepts-absent-devices": ("uploading literals filling moving parse_device", "any device name is believed"),
    "absent-becomes-host": ("uploading literals filling moving parse_device", "a device that isn't there is the host"),
    "absent-becomes-first": ("uploading literals filling moving parse_device", "a device that isn't there is the first accelerator"),
    "devices-not-comparable": ("compare", "comparing devices raises"),
    "devices-compare-handles": ("compare", "two handles of one device are unequal"),
    "devices-equal-names": ("compare", "a device is equal to the text that it prints as"),
    "devices-all-equal": ("compare", "all devices are equal"),
    "devices-compare-one-way": ("compare", "an older handle equals a younger one and not the other way round"),
    "devices-hash-handles": ("compare", "equal handles have hashes of their own"),
    "hides-ordinals": ("ordinal", "a device can't be asked for its ordinal"),
    "reports-no-ordinal": ("ordinal", "no device has an ordinal"),
    "numbers-the-host": ("ordinal", "the host has the ordinal 0"),
    "reports-registry-ids": ("ordinal", "a device reports a registry's number as its ordinal"),
    "counting-raises": ("accelerator_count best_device", "asking how many accelerators there are raises"),
    "counts-hidden-devices": ("accelerator_count best_device", "accelerators that are hidden are counted all the same"),
    "blocks": ("time", "calls return when their work is done"),
    "half-blocks": ("time", "calls return when most of their work is done"),
    "reads-without-waiting": ("time looking observe", "reading doesn't wait for the queue"),
    "leaks-default-device": ("default-device matmul", "a default device outlives its scope; a matrix product sets one"),
    "leaks-environment": ("matmul", "a matrix product changes the environment"),
    # A matrix product ends or stops the process, or floods its output.
    "dies": ("matmul", "a matrix product ends in a segmentation fault"),
    "aborts": ("matmul", "a matrix product calls abort"),
    "exits": ("matmul", "a matrix product ends the process with status 0"),
    "hangs": ("matmul", "a matrix product never returns"),
    "prints-rubbish": ("matmul", "a matrix product floods standard output and standard error"),
    "poisons-device": ("matmul", "a matrix product loses the device for this process"),
}
#: Faults that a user meets together only.
COMBINED = (
    ("ignores-copy-requests", "rewraps-on-same-to"),
    ("reads-without-waiting", "fails-late-looking"),
    ("devices-equal-names", "devices-hash-handles"),
    ("devices-all-equal", "devices-hash-handles"),
)
#: Kinds that end or stop the process they run in, or spoil it for what follows.
DANGEROUS = frozenset({"dies", "aborts", "exits", "hangs", "prints-rubbish", "poisons-device"})
HEALTHY = ("accel", "no-peer", "host-only", "data-less")
#: Device kind -> the faults that are switched on.
KINDS: dict[str, frozenset[str]] = {
    **{kind: frozenset() for kind in HEALTHY},
    **{f"{effect}-{family}": frozenset({f"{effect}-{family}"}) for effect, families in EFFECTS.items() for family in families},
    **{fault: frozenset({fault}) for fault in SINGLE},
    **{"+".join(faults): frozenset(faults) for faults in COMBINED},
    "refuses-everything": frozenset(f"refuses-{family}" for family in FAMILIES),
}


def struck(kind: str) -> frozenset[str]:
    """Return the operations and scopes that may behave otherwise than a healthy framework's."""
    words = {w for fault in KINDS[kind] for w in (SINGLE[fault][0].split() if fault in SINGLE else [_family(fault)])}
    return frozenset(name for word in words for name in FAMILIES.get(word, (word,)))


def _family(fault: str) -> str:
    return fault.rpartition("-")[2]


#: The framework as a user imports it: the state of the kind whose program is running.
t = Operations(())


class Dummy(Adapter):
    """The small framework, healthy or with one defect."""

    framework = "dummy"
    imports = ""
    variables = ("DUMMY_VISIBLE", "DUMMY_WIDE")
    environments: ClassVar[dict[str, dict[str, str]]] = {"wide-dtypes": {"DUMMY_WIDE": "1"}, "no-accelerator": {"DUMMY_VISIBLE": "none"}}
    dtypes: ClassVar[dict[str, str]] = {name: f"DTYPES['{name}']" for name in DTYPES}

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return a version; there is no build."""
        return {"version": "1.0", "build": {}}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return every kind: healthy ones, and one for each defect."""
        hidden = os.environ.get("DUMMY_VISIBLE") == "none"
        return {kind: _roles(0 if hidden else {"host-only": 0, "no-peer": 1}.get(kind, 2)) for kind in KINDS}

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Start a framework of this kind."""
        super().__init__(kind, roles)
        self.computes = kind != "data-less"
        self.state = Operations([roles[name]["name"] for name in ("host", "accelerator", "peer") if name in roles])

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
        if name == "inference":
            return contextlib.nullcontext()
        return super().scope(name, *args)

    def reset(self) -> None:
        """Put back the default device, and forget what earlier work left behind."""
        self.state.default, self.state.defaulted = None, True
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
        if not self.computes and value.device.kind != "host":
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

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:  # noqa: D102
        return t.move("to_both", x, device, dtype)

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


def _roles(accelerators: int) -> dict[str, dict[str, str]]:
    roles = {"host": role("host", "Device('host')", "simulated")}
    if accelerators:
        roles["accelerator"] = role("dev:0", "Device('dev', 0)", "simulated")
        roles["alias"] = role("dev:0", "Device('dev')", "simulated")
    if accelerators > 1:
        roles["peer"] = role("dev:1", "Device('dev', 1)", "simulated")
    return roles
