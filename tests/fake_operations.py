"""The operations of the small framework, each a few lines over the runtime."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tests.fake import DTYPES, FAULTS, JUNK, Cells, Device, Dtype, Ramp, RefusedError, Storage, Tensor, flat, packed, promote, shape_of
from tests.fake_runtime import Plan, Runtime

#: How host memory holds a dtype.
_FORMATS = {"float32": "f", "float64": "d", "int64": "q", "uint64": "Q", "complex64": "ff", "complex128": "dd"}
FLOAT32, FLOAT64, BOOL, INT64 = (DTYPES[name] for name in ("float32", "float64", "bool", "int64"))


class Operations(Runtime):
    """What a user of the small framework calls."""

    # --- making ---------------------------------------------------------------------------------

    def where_to(self, device: Any) -> Device:
        """Return the device to create on: the one that was said, or the default."""
        if device is None or ("default-device-overrides" in FAULTS and self.default is not None):
            return self.fallback()
        return self.use(device)

    def tensor(self, values: Any, dtype: Dtype | None = None, device: Any = None, op: str = "tensor") -> Tensor:
        """Make a tensor of nested lists; without a dtype the one of plain Python numbers."""
        numbers = list(flat(values))
        plan = self.plan(op, [], self.where_to(device))
        constant = numbers[0] if len(numbers) == 1 else None
        return self.finish(plan, shape_of(values), dtype or _default(numbers), numbers.__getitem__, constant)

    def full(self, shape: Sequence[int], value: Any, dtype: Dtype = FLOAT32, device: Any = None, op: str = "full") -> Tensor:
        """Fill a shape with one value."""
        plan = self.plan(op, [], self.where_to(device))
        return self.finish(plan, shape, dtype, lambda _: value, value)

    def ramp(self, count: int, start: int, shape: Sequence[int], dtype: Dtype, device: Any) -> Tensor:
        """Count upwards."""
        assert count == math.prod(shape)
        return self.finish(self.plan("ramp", [], self.use(device)), shape, dtype, Ramp(start))

    def zeros_like(self, x: Tensor) -> Tensor:
        """Make zeros where another tensor is."""
        device = self.fallback() if "like-ignores-operand" in FAULTS else x.device
        return self.finish(self.plan("zeros_like", [], device), x.shape, x.dtype, lambda _: 0, 0)

    def from_buffer(self, memory: memoryview, dtype: Dtype, device: Any, copy: bool = False) -> Tensor:
        """Make a tensor of host memory; it is copied at once."""
        plan = self.plan("from_buffer_copy" if copy else "from_buffer", [], self.use(device))
        aliased = "ignores-copy-requests" in FAULTS or ("aliases-host-memory" in FAULTS and not copy)
        source = memory if aliased else memory.tobytes()
        width = dtype.bits // 8

        def cell(i: int) -> Any:
            found = struct.unpack_from(_FORMATS[dtype.name], source, width * i)
            return complex(*found) if len(found) == 2 else found[0]

        return self.finish(plan, [len(memory) // width], dtype, cell)

    # --- elements -------------------------------------------------------------------------------

    def elementwise(self, op: str, function: Callable[..., Any], *operands: Any, dtype: Dtype | None = None) -> Tensor:
        """Apply a function of numbers to tensors and scalars, broadcast to one shape."""
        plan = self.plan(op, operands)
        tensors = [x for x in operands if isinstance(x, Tensor)]
        shape = _broadcast([t.shape for t in tensors])
        constants = [x.storage.constant if isinstance(x, Tensor) else x for x in operands]
        if None not in constants:
            return self.finish(plan, shape, dtype or self.result_dtype(operands), lambda _: None, function(*constants))
        cells = [self.expanded(x, shape).cells() if isinstance(x, Tensor) else _always(x) for x in operands]
        return self.finish(plan, shape, dtype or self.result_dtype(operands), lambda i: function(*(c(i) for c in cells)))

    def result_dtype(self, operands: Sequence[Any]) -> Dtype:
        """Return the dtype of a result: scalars and 0-dim values are weak."""
        if "promotes-to-widest" in FAULTS:
            return DTYPES["complex128"]
        strong = [x.dtype for x in operands if isinstance(x, Tensor) and x.shape != ()]
        weak = [x for x in operands if not isinstance(x, Tensor) or x.shape == ()]
        if not strong:
            strong = [x.dtype for x in operands if isinstance(x, Tensor)]
        found = strong[0]
        for other in strong[1:]:
            found = promote(found, other)
        if not weak or "casts-scalars-first" in FAULTS:
            return found
        dtypes = [x.dtype if isinstance(x, Tensor) else _default([x]) for x in weak]
        if "promotes-by-scalar" in FAULTS:
            return FLOAT64 if isinstance(weak[-1], float) else dtypes[-1]
        higher = [d for d in dtypes if promote(found, d).category != found.category]
        return higher[0] if higher else found

    def arithmetic(self, op: str, x: Any, y: Any) -> Tensor:
        """Add, subtract, multiply, divide or compare."""
        function: Callable[..., Any] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}.get(
            op, operator.lt
        )
        return self.elementwise(op, function, x, y, dtype=BOOL if op == "less" else None)

    def where(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Choose by a condition."""
        return self.elementwise("where", lambda c, a, b: a if c else b, condition, x, y, dtype=promote(x.dtype, y.dtype))

    def array_equal(self, x: Tensor, y: Tensor) -> Tensor:
        """Say whether two tensors are equal, as a 0-dim tensor."""
        if "compares-memory" in FAULTS:
            return self.finish(Plan(x.device), (), BOOL, lambda _: x.storage is y.storage)
        plan = self.plan("array_equal", [x, y])
        one, other, count = x.cells(), y.cells(), x.count
        same = x.shape == y.shape
        return self.finish(plan, (), BOOL, lambda _: same and (one == other or all(one(i) == other(i) for i in range(count))))

    def matmul(self, x: Tensor, y: Tensor, op: str = "matmul") -> Tensor:
        """Multiply two matrices."""
        self.strike()
        plan = self.plan(op, [x, y])
        rows, inner, columns = x.shape[0], x.shape[1], y.shape[1]
        dtype, cost = promote(x.dtype, y.dtype), 2 * rows * inner * columns
        one, other = x.cells(), y.cells()
        constant = None
        if x.storage.constant is not None and y.storage.constant is not None:
            constant = inner * x.storage.constant * y.storage.constant

        def cell(i: int) -> Any:
            row, column = divmod(i, columns)
            return sum(one(row * inner + k) * other(k * columns + column) for k in range(inner))

        return self.finish(plan, (rows, columns), dtype, cell, constant, cost=cost)

    def sum(self, x: Tensor) -> Tensor:
        """Sum all elements."""
        cells, count = x.cells(), x.count
        constant = None if x.storage.constant is None else x.storage.constant * count
        dtype = INT64 if x.dtype.category == "bool" else x.dtype
        return self.finish(self.plan("sum", [x]), (), dtype, lambda _: sum(cells(i) for i in range(count)), constant, cost=count)

    def join(self, op: str, x: Tensor, y: Tensor) -> Tensor:
        """Concatenate or stack two tensors."""
        plan = self.plan(op, [x, y])
        one, other, count = x.cells(), y.cells(), x.count
        shape = (2, *x.shape) if op == "stack" else (x.shape[0] + y.shape[0], *x.shape[1:])
        return self.finish(plan, shape, promote(x.dtype, y.dtype), lambda i: one(i) if i < count else other(i - count))

    def rows(self, op: str, x: Tensor, ids: Tensor) -> Tensor:
        """Return rows by ids."""
        plan = self.plan(op, [x, ids])
        if ids.dtype.category not in ("int", "uint"):
            raise RefusedError(f"{op}: ids are {ids.dtype.name}, not integers")
        cells, which, width = x.cells(), ids.cells(), math.prod(x.shape[1:])
        return self.finish(plan, (*ids.shape, *x.shape[1:]), x.dtype, lambda i: cells(int(which(i // width)) * width + i % width))

    def gather(self, x: Tensor, ids: Tensor) -> Tensor:
        """Return elements by ids along the first axis."""
        plan = self.plan("gather", [x, ids])
        if ids.dtype.category not in ("int", "uint"):
            raise RefusedError(f"gather: ids are {ids.dtype.name}, not integers")
        cells, which, width = x.cells(), ids.cells(), x.shape[1]
        return self.finish(plan, ids.shape, x.dtype, lambda i: cells(int(which(i)) * width + i % width))

    def mask(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the rows where a mask holds; how many those are is read at once."""
        plan = self.plan("mask", [x, mask])
        holds = mask.cells()
        chosen = [i for i in range(mask.count) if holds(i)]
        cells, width = x.cells(), math.prod(x.shape[1:])
        return self.finish(plan, (len(chosen), *x.shape[1:]), x.dtype, lambda i: cells(chosen[i // width] * width + i % width))

    def item(self, x: Tensor) -> Any:
        """Return the number of one element, waiting for it."""
        return self.read(self.finish(self.plan("item", [x]), (), x.dtype, x.cells(), x.storage.constant))[0]

    def to_list(self, op: str, x: Tensor) -> list[Any]:
        """Return plain numbers on the host, waiting for them."""
        elements = self.read(self.finish(self.plan(op, [x]), x.shape, x.dtype, x.cells(), x.storage.constant))
        return list(elements)

    def ordinal(self, device: Device) -> int | None:
        """Return a device's ordinal; the host has none."""
        if "hides-ordinals" in FAULTS:
            raise RefusedError("a device can't be asked for its ordinal")
        if "reports-registry-ids" in FAULTS:
            return 4294968391
        if "numbers-all-alike" in FAULTS:
            return 0
        if device.kind == "host":
            return 0 if "numbers-the-host" in FAULTS else None
        return None if "reports-no-ordinal" in FAULTS else device.index

    def accelerator_count(self) -> int:
        """Return how many accelerators can be used."""
        if "counting-raises" in FAULTS:
            raise RefusedError("no driver to ask")
        if "counts-none" in FAULTS:
            return 0
        return 2 if "counts-hidden-devices" in FAULTS else len(self.present - {"host"})

    def best_device(self) -> Device:
        """Return the first accelerator where there is one, else the host."""
        return Device("dev", 0) if self.accelerator_count() else Device("host")

    def device_of(self, x: Tensor) -> Device:
        """Return where a value is, as a handle of its own."""
        return Device(x.device.kind, x.device.index)

    # --- views ----------------------------------------------------------------------------------

    def view(self, op: str, x: Tensor, shape: Sequence[int], offset: int, strides: Sequence[int]) -> Tensor:
        """Look at a tensor's storage otherwise."""
        if "views-lose-offset" in FAULTS:
            offset = 0
        plan = self.plan(op, [x])
        seen = Tensor(x.storage, shape, x.dtype, x.device, offset, strides, x.memory)
        if plan.garbled or plan.error or plan.device.name != x.device.name or "views-copy" in FAULTS:
            return self.finish(plan, shape, x.dtype, seen.cells(), x.storage.constant)
        return seen

    def element(self, x: Tensor, i: int) -> Tensor:
        """Return x[i]."""
        return self.view("element", x, x.shape[1:], x.offset + i * x.strides[0], x.strides[1:])

    def corner(self, x: Tensor) -> Tensor:
        """Return x[0, 0]."""
        return self.view("corner", x, (), x.offset, ())

    def tail(self, x: Tensor, start: int) -> Tensor:
        """Return x[start:]."""
        return self.view("tail", x, (x.shape[0] - start, *x.shape[1:]), x.offset + start * x.strides[0], x.strides)

    def transpose(self, x: Tensor) -> Tensor:
        """Swap the axes."""
        return self.view("transpose", x, x.shape[::-1], x.offset, x.strides[::-1])

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Repeat along axes of one element."""
        wide = self.expanded(x, shape)
        return self.view("expand", x, shape, x.offset, wide.strides)

    def expanded(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Return a view that repeats, as broadcasting makes it."""
        missing = len(shape) - len(x.shape)
        wider = [edge == 1 and shape[missing + axis] != 1 for axis, edge in enumerate(x.shape)]
        kept = [0 if wider[axis] else stride for axis, stride in enumerate(x.strides)]
        return Tensor(x.storage, shape, x.dtype, x.device, x.offset, [0] * missing + kept, x.memory)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Give another shape; what isn't packed is copied."""
        if x.strides == packed(x.shape):
            return self.view("reshape", x, shape, x.offset, packed(shape))
        return self.finish(self.plan("reshape", [x]), shape, x.dtype, x.cells())

    # --- effects --------------------------------------------------------------------------------

    def write(self, op: str, target: Tensor, value: Tensor | Cells, operands: Sequence[Any]) -> Tensor:
        """Write a value over a tensor's elements and return the tensor."""
        if "ignores-writing" in FAULTS:
            return target
        plan = self.plan(op, operands)
        cells = self.expanded(value, target.shape).cells() if isinstance(value, Tensor) else value
        if plan.device.name != target.device.name and FAULTS & {"lands-on-next-writing", "lands-on-previous-writing"}:
            return self.finish(plan, target.shape, target.dtype, cells)
        made = self.finish(plan._replace(device=target.device), target.shape, target.dtype, cells)
        if "writes-to-copies" in FAULTS:
            copy = Storage(target.storage.cells)
            target = Tensor(copy, target.shape, target.dtype, target.device, target.offset, target.strides)
        _store(target, made)
        return target

    def add_into(self, op: str, out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Add two tensors into a third, which may be the first."""
        one, other = (self.expanded(operand, out.shape).cells() for operand in (x, y))
        return self.write(op, out, lambda i: one(i) + other(i), [out, y] if out is x else [out, x, y])

    def set_tail(self, x: Tensor, start: int, y: Tensor) -> Tensor:
        """Assign to x[start:] and return x."""
        target = Tensor(x.storage, (x.shape[0] - start, *x.shape[1:]), x.dtype, x.device, x.offset + start * x.strides[0], x.strides)
        written = self.write("set_tail", target, y, [x, y])
        if "writes-to-copies" in FAULTS:
            return Tensor(written.storage, x.shape, x.dtype, x.device, x.offset, x.strides)
        return x if written is target else written

    # --- moving ---------------------------------------------------------------------------------

    def move(
        self, op: str, x: Tensor, device: Any = None, dtype: Dtype | None = None, *, copy: bool = False, memory: str = "device",
    ) -> Tensor:  # fmt: skip
        """Bring a value to a device, a dtype or a memory kind; nothing happens where it is so already."""
        place = self.use(device) if device is not None else x.device
        plan = self.plan(op, [x], place)
        wanted = x.dtype if dtype is None or ("ignores-dtype-on-move" in FAULTS and op == "to_both") else dtype
        if FAULTS & {f"ignores-{plan.family}", f"ignores-moves-to-{'host' if place.kind == 'host' else 'accelerators'}"}:
            return x
        if op == "to_memory" and x.memory == memory and "refuses-pinning-twice" in FAULTS:
            raise RefusedError(f"only dense pageable tensors can be pinned, not one in {memory} memory")
        copy = copy and "ignores-copy-requests" not in FAULTS
        there = (plan.device.name, wanted, memory) == (x.device.name, x.dtype, x.memory)
        if there and not copy and not plan.garbled and plan.error is None and not FAULTS & {"copies-on-same-to", "clobbers-originals"}:
            if "rewraps-on-same-to" in FAULTS:
                return Tensor(x.storage, x.shape, x.dtype, x.device, x.offset, x.strides, x.memory)
            return x
        cells, constant = x.cells(), x.storage.constant
        moved = self.finish(plan, x.shape, wanted, cells, constant, memory=memory)
        if "aliases-across-devices" in FAULTS and wanted is x.dtype:
            moved.storage, moved.offset, moved.strides = x.storage, x.offset, x.strides
        if "moves-originals" in FAULTS:
            x.device, x.storage, x.offset, x.strides = moved.device, moved.storage, 0, packed(x.shape)
            return x
        if "clobbers-originals" in FAULTS:
            junk = x.dtype.cast(JUNK)
            x.storage.cells, x.storage.constant = _always(junk), junk
        return moved


def _default(numbers: Sequence[Any]) -> Dtype:
    for kind, dtype in ((complex, DTYPES["complex64"]), (float, FLOAT64 if "literals-are-wide" in FAULTS else FLOAT32)):
        if any(isinstance(n, kind) for n in numbers):
            return dtype
    return BOOL if numbers and all(isinstance(n, bool) for n in numbers) else INT64


def _always(value: Any) -> Cells:
    return lambda _: value


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(max(edges) if 0 not in edges else 0 for edges in zip(*padded))  # noqa: B905  Python 3.9


def _store(target: Tensor, made: Tensor) -> None:
    old, new, storage = target.storage.cells, made.storage.cells, target.storage
    storage.error = storage.error or made.storage.error
    storage.constant = None
    if target.strides == packed(target.shape):
        first, count = target.offset, target.count
        storage.cells = lambda p: new(p - first) if first <= p < first + count else old(p)
        return
    position = target.positions()
    where = {position(i): i for i in range(target.count)}
    storage.cells = lambda p: new(where[p]) if p in where else old(p)
