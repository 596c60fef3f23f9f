"""PyTorch's own answers to some of the suite's questions: run it alone, it needs PyTorch and nothing else.

Each function asks one question in PyTorch's own API and prints one JSON line: the facts, and the
word that they come to. Meta and fake tensors hold no values, so of them only the place is judged.
Arguments are the questions to ask; without any, all are asked. What releases said is kept in `releases.jsonl`.
"""

from __future__ import annotations

import array
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

Facts = dict[str, Any]
QUESTIONS: list[tuple[str, str, Callable[[], Facts]]] = []
#: Distinct, and neither zero nor one.
FOUR = [2.5, 3.5, 5.5, 7.5]
SIDE = 256


def question(target: str, case: str) -> Callable[[Callable[[], Facts]], Callable[[], Facts]]:
    """Keep a function under the target and the case that it answers."""

    def keep(ask: Callable[[], Facts]) -> Callable[[], Facts]:
        QUESTIONS.append((target, case, ask))
        return ask

    return keep


def told(compute: Callable[[], Any], expected: Any, word: Callable[[Any], str]) -> Facts:
    """Compute; an error is one answer, a wrong value another, and else the word that the result comes to."""
    try:
        result = compute()
    except Exception as error:
        return {"answer": "raises", "error": type(error).__name__}
    facts: Facts = {"dtype": str(result.dtype).removeprefix("torch.")}
    if result.is_meta or isinstance(result, FakeTensor):
        return {**facts, "answer": word(result), "value": "not observable"}
    right = torch.equal(result.to(torch.complex128), torch.as_tensor(expected).to(torch.complex128).expand(result.shape))
    return {**facts, "answer": word(result) if right else "garbage", "value": "right" if right else "wrong"}


def place(result: Any) -> str:
    """Say where a result is: all targets here have one host and one other kind of device."""
    return "moves-to-host" if result.device.type == "cpu" else "moves-to-accelerator"


def identity(before: Any, after: Any) -> str:
    """Say what two names have in common."""
    if before is after:
        return "same-object"
    return "shared-storage" if before.untyped_storage().data_ptr() == after.untyped_storage().data_ptr() else "copy"


def kept(asked: torch.dtype) -> Callable[[Any], str]:
    """Compare the dtype that came out with the one that went in, by width; a truth is the narrowest."""

    def width(dtype: torch.dtype) -> int:
        return 0 if dtype == torch.bool else dtype.itemsize

    return lambda r: "works" if r.dtype == asked else "widens" if width(r.dtype) > width(asked) else "narrows-silently"


# --- the host alone ------------------------------------------------------------------------------


@question("torch:cpu", "moving/to-same/object")
def to_where_it_is() -> Facts:
    x = torch.tensor(FOUR)
    return told(lambda: x.to(torch.device("cpu")), FOUR, lambda y: identity(x, y))


@question("torch:cpu", "moving/to-same/copy")
def to_where_it_is_as_a_copy() -> Facts:
    x = torch.tensor(FOUR)
    return told(lambda: x.to(torch.device("cpu"), copy=True), FOUR, lambda y: identity(x, y))


@question("torch:cpu", "moving/write-original/to-same")
def write_after_a_move_to_where_it_is() -> Facts:
    x = torch.tensor(FOUR)
    moved = x.to("cpu")
    x += 10
    return {"answer": "visible" if moved.tolist() == [v + 10 for v in FOUR] else "invisible" if moved.tolist() == FOUR else "garbage"}


@question("torch:cpu", "moving/buffer/aligned/host")
def write_to_the_memory_below() -> Facts:
    memory = array.array("f", FOUR)
    x = torch.frombuffer(memory, dtype=torch.float32)
    memory[0] = 9.0
    return {"answer": "visible" if x.tolist() == [9.0, *FOUR[1:]] else "invisible" if x.tolist() == FOUR else "garbage"}


@question("torch:cpu", "moving/equality/device-alias")
def without_index_against_index_0() -> Facts:
    one, other = torch.device("cpu"), torch.device("cpu:0")
    equal = (one == other, other == one)
    if equal[0] != equal[1]:
        return {"answer": "asymmetric"}
    return {"answer": "unequal" if not equal[0] else "equal" if hash(one) == hash(other) else "equal-other-hash"}


@question("torch:cpu", "moving/misspelt/create-string")
def a_device_that_no_one_knows() -> Facts:
    return told(lambda: torch.zeros(2, device="cpuu"), 0.0, lambda _: "accepted")


@question("torch:cpu", "scalars/python-float/add/right")
def a_python_float_beside_float32() -> Facts:
    wanted = [v + 2.5 for v in FOUR]
    return told(lambda: torch.tensor(FOUR) + 2.5, wanted, lambda y: "keeps-dtype" if y.dtype == torch.float32 else "other-dtype")


@question("torch:cpu", "scalars/python-float-on-int32/mul/right")
def a_python_float_beside_int32() -> Facts:
    # Python's own floats have 64 bits.
    words = {torch.float64: "takes-scalar-dtype", torch.int32: "truncates"}
    return told(lambda: torch.tensor([2, 3, 5], dtype=torch.int32) * 2.5, [5.0, 7.5, 12.5], lambda y: words.get(y.dtype, "other-dtype"))


@question("torch:cpu", "scalars/zero-dim-float64-on-float32/device-device/left")
def a_0_dim_float64_beside_float32() -> Facts:
    words = {torch.float64: "takes-scalar-dtype", torch.float32: "keeps-dtype"}
    return told(lambda: torch.tensor(2.0, dtype=torch.float64) * torch.tensor(FOUR), [2 * v for v in FOUR], lambda y: words[y.dtype])


@question("torch:cpu", "dtypes/int32/sum")
def sum_of_int32() -> Facts:
    return told(lambda: torch.tensor([[2, -3], [5, 7]], dtype=torch.int32).sum(), 11, kept(torch.int32))


@question("torch:cpu", "dtypes/uint16/add")
def sum_of_two_uint16() -> Facts:
    left, right = torch.tensor([2, 3], dtype=torch.uint16), torch.tensor([5, 9], dtype=torch.uint16)
    return told(lambda: left + right, [7, 12], kept(torch.uint16))


@question("torch:cpu", "dtypes/float8_e4m3fn/add")
def sum_of_two_float8() -> Facts:
    left, right = (torch.tensor(v).to(torch.float8_e4m3fn) for v in ([2.0, -3.0], [3.0, 5.0]))
    return told(lambda: left + right, [5.0, 2.0], kept(torch.float8_e4m3fn))


@question("torch:cpu", "dtypes/bool/matmul")
def product_of_truths() -> Facts:
    left, right = torch.tensor([[True, False], [True, True]]), torch.tensor([[True, True], [False, True]])
    return told(lambda: left @ right, [[True, True], [True, True]], kept(torch.bool))


@question("torch:cpu", "dtypes/float8_e8m0fnu/create")
def a_tensor_of_exponents() -> Facts:
    dtype = getattr(torch, "float8_e8m0fnu", None)
    if dtype is None:
        return {"answer": "not-offered"}
    return told(lambda: torch.tensor([2.0, 4.0, 8.0], dtype=dtype), [2.0, 4.0, 8.0], lambda _: "works")


@question("torch:cpu", "dtypes/literal/int")
def whole_numbers_without_a_dtype() -> Facts:
    return told(lambda: torch.tensor([2, -3, 5], device="cpu"), [2, -3, 5], lambda y: str(y.dtype).removeprefix("torch."))


def finished(parts: list[float]) -> str:
    """Say what the calls did, by the part of the time after which they returned."""
    return "asynchronous" if max(parts) <= 0.5 else "synchronous" if min(parts) >= 0.8 else "inconclusive"


@question("torch:cpu", "time/loop/add")
def sums_in_a_loop() -> Facts:
    """Nothing is there to wait for, so the last element is read to be sure that the work is done."""
    x = torch.full((2048, 2048), 3.0)
    for _ in range(5):
        parts = []
        for _ in range(4):
            value, start = x, time.perf_counter()
            for _ in range(20):
                value = value + x
            returned = time.perf_counter() - start
            value[-1, -1].item()
            parts.append(returned / (time.perf_counter() - start))
        if finished(parts[1:]) != "inconclusive":
            break
    return {"answer": finished(parts[1:]), "parts": parts}


# --- the meta device -----------------------------------------------------------------------------


@question("torch:meta", "placement/add/host-accelerator")
def host_plus_meta() -> Facts:
    return told(lambda: torch.full((SIDE, SIDE), 2.0) + torch.full((SIDE, SIDE), 3.0, device="meta"), 5.0, place)


@question("torch:meta", "placement/matmul/host-accelerator")
def host_times_meta() -> Facts:
    return told(lambda: torch.full((SIDE, SIDE), 2.0) @ torch.full((SIDE, SIDE), 3.0, device="meta"), 6.0 * SIDE, place)


@question("torch:meta", "placement/copy/host-accelerator")
def meta_copied_into_host() -> Facts:
    x, source = torch.tensor(FOUR), torch.tensor([1.5] * 4, device="meta")
    return told(lambda: x.copy_(source), 1.5, lambda _: "writes")


@question("torch:meta", "scalars/zero-dim/host-accelerator/left")
def a_0_dim_host_value_beside_meta() -> Facts:
    return told(lambda: torch.tensor(2.5) * torch.tensor(FOUR, device="meta"), [2.5 * v for v in FOUR], place)


@question("torch:meta", "moving/to-host/object")
def from_meta_to_the_host() -> Facts:
    x = torch.tensor(FOUR, device="meta")
    return told(lambda: x.to(torch.device("cpu")), FOUR, lambda y: "moves" if y.device.type == "cpu" else "stays")


@question("torch:meta", "moving/read/item/accelerator")
def a_number_of_a_meta_tensor() -> Facts:
    return told(lambda: torch.as_tensor(torch.tensor(2.5, device="meta").item()), 2.5, lambda _: "reads")


@question("torch:meta", "moving/default-device/zeros")
def zeros_where_meta_is_the_default() -> Facts:
    with torch.device("meta"):
        return told(lambda: torch.zeros(4), 0.0, lambda y: "on-host" if y.device.type == "cpu" else "on-accelerator")


@question("torch:meta", "moving/default-device/zeros-like")
def zeros_like_a_host_value_where_meta_is_the_default() -> Facts:
    x = torch.tensor(FOUR, device="cpu")
    with torch.device("meta"):
        made = torch.zeros_like(x)
    return {"answer": "on-host" if made.device.type == "cpu" else "on-accelerator"}


# --- CUDA and MPS without the hardware -----------------------------------------------------------


def fake_full(kind: str, compute: Callable[[Any, Any], Any]) -> Facts:
    """Compute with a matrix of the host and one of the device."""
    with FakeTensorMode():
        host, there = torch.full((SIDE, SIDE), 2.0), torch.full((SIDE, SIDE), 3.0, device=kind)
        return told(lambda: compute(host, there), None, place)


def fake_ids(kind: str, compute: Callable[[Any, Any], Any]) -> Facts:
    """Compute with a table on one device and ids on another."""
    with FakeTensorMode():
        table = torch.full((SIDE, SIDE), 2.0)
        ids = torch.full((4,), 3, dtype=torch.int64, device=kind)
        return told(lambda: compute(table, ids), None, place)


@question("torch:fake-cuda", "placement/add/accelerator-host")
def cuda_plus_host() -> Facts:
    return fake_full("cuda:0", lambda host, there: there + host)


@question("torch:fake-cuda", "placement/index/host-accelerator")
def host_indexed_by_cuda_ids() -> Facts:
    return fake_ids("cuda:0", lambda table, ids: table[ids])


@question("torch:fake-cuda", "placement/embedding/host-accelerator")
def a_host_table_and_cuda_ids() -> Facts:
    return fake_ids("cuda:0", lambda table, ids: torch.nn.functional.embedding(ids, table))


@question("torch:fake-cuda", "scalars/one-element/host-accelerator/left")
def one_host_element_beside_cuda() -> Facts:
    with FakeTensorMode():
        one, many = torch.full((1,), 2.5), torch.full((SIDE,), 3.0, device="cuda:0")
        return told(lambda: one * many, None, place)


@question("torch:fake-cuda", "moving/to-same/indexless")
def cuda_0_moved_to_cuda() -> Facts:
    with FakeTensorMode():
        x = torch.full((4,), 2.5, device="cuda:0")
        try:
            return {"answer": "same-object" if x.to("cuda") is x else "copy"}
        except RuntimeError as error:
            # It asks the driver which device is the current one.
            return {"answer": "not-modelled" if "CUDA driver" in str(error) else "raises"}


@question("torch:fake-cuda", "moving/to-host/indexed")
def cuda_moved_to_cpu_0() -> Facts:
    """Look whether it may stand beside what is on the host: eager PyTorch takes `cpu:0` for `cpu`, a fake takes it for another device."""
    with FakeTensorMode():
        host, there = torch.full((4,), 2.5), torch.full((4,), 3.5, device="cuda:0")
        try:
            _ = there.to("cpu:0") + host
        except RuntimeError:
            return {"answer": "moves-elsewhere"}
        return {"answer": "works"}


@question("torch:cpu", "moving/to-same/indexed")
def host_moved_to_cpu_0() -> Facts:
    x = torch.tensor(FOUR)
    return told(lambda: x.to("cpu:0"), FOUR, lambda y: identity(x, y))


@question("torch:fake-mps", "placement/add/accelerator-host")
def mps_plus_host() -> Facts:
    return fake_full("mps", lambda host, there: there + host)


@question("torch:fake-mps", "scalars/zero-dim/host-accelerator/right")
def mps_beside_a_0_dim_host_value() -> Facts:
    with FakeTensorMode():
        scalar, many = torch.full((), 2.5), torch.full((SIDE,), 3.0, device="mps")
        return told(lambda: many * scalar, None, place)


# --- modules -------------------------------------------------------------------------------------


class Keeper(torch.nn.Module):  # type: ignore[misc]  # PyTorch isn't read by the type checker
    """A module that keeps tensors in every way that there is."""

    def __init__(self) -> None:
        """Keep them."""
        super().__init__()
        self.parameter = torch.nn.Parameter(torch.tensor(FOUR))
        self.register_buffer("buffer", torch.tensor(FOUR))
        self.list = [torch.tensor(FOUR)]
        self.attribute = torch.tensor(FOUR)


@question("torch:cpu", "modules/compute/device")
def a_layer_of_a_known_weight() -> Facts:
    layer = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
        return told(lambda: layer(torch.tensor([[5.0, 7.0]])), [[31.0]], lambda _: "works")


def moved(name: str) -> Facts:
    """Move a module to meta, and say which module has the member there."""
    before = Keeper()
    after = before.to("meta")
    one, other = ((m.list[0] if name == "list" else getattr(m, name)) for m in (before, after))
    if not other.is_meta:
        return {"answer": "stays"}
    return {"answer": "moves-copy" if not one.is_meta else "moves-itself" if before is after else "moves-both"}


for _name in ("parameter", "buffer", "list", "attribute"):
    question("torch:meta", f"modules/move/{_name}")(partial(moved, _name))


@question("torch:meta", "modules/default-device/next")
def a_layer_under_a_default_device() -> Facts:
    torch.set_default_device("meta")
    try:
        weight = torch.nn.Linear(3, 4).weight
    finally:
        torch.set_default_device(None)
    return {"answer": "on-accelerator" if weight.is_meta else "on-host", "dtype": str(weight.dtype).removeprefix("torch.")}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    version = torch.__version__.partition("+")[0]  # whatever it was built for
    for target, case, ask in [one for one in QUESTIONS if one[1] in (sys.argv[1:] or [one[1]])]:
        print(json.dumps({"version": version, "target": target, "case": case, **ask()}), flush=True)
