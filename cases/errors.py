"""What the text of an error says: which devices it names, and whether it names the operation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cases.reading import Reading

#: Operation -> the names by which a text may mean it: a user who wrote the operation recognises these.
#: What a framework builds it of is no name for it: `stack` is not named by a text that speaks of `concat`.
NAMES: Mapping[str, str] = {
    "tensor": "tensor array asarray", "tensor_uncommitted": "tensor array asarray", "literal": "tensor array asarray",
    "full": "full fill", "ramp": "arange iota", "zeros": "zeros", "zeros_uncommitted": "zeros", "zeros_like": "zeros_like",
    "from_buffer": "frombuffer from_buffer asarray", "from_buffer_copy": "frombuffer from_buffer asarray",
    "to_memory": "pin pin_memory pinned memory_kind",
    "add": "add addition + +=", "add_": "add addition + +=", "add_out": "add addition + +=",
    "sub": "sub subtract subtraction -", "mul": "mul multiply multiplication *", "div": "div divide division true_divide truediv /",
    "less": "less lt less_than <", "matmul": "matmul mm bmm addmm dot dot_general gemm @", "sum": "sum reduce_sum",
    "where": "where select select_n", "cat": "cat concat concatenate concatenation", "stack": "stack",
    "array_equal": "equal array_equal eq ==",
    "embedding": "embedding", "index": "index indexing getitem gather take", "index_select": "index_select take",
    "gather": "gather take_along_axis", "mask": "mask indexing getitem masked_select", "item": "item",
    "element": "index indexing getitem select", "tail": "slice slicing getitem", "transpose": "transpose permute",
    "expand": "expand broadcast_to broadcast_in_dim", "reshape": "reshape view",
    "set_tail": "setitem scatter dynamic_update_slice set assignment", "copy_": "copy copyto",
    "to": "to copy to_device to_copy device_put move", "to_copy": "to copy to_device to_copy device_put asarray move",
    "to_async": "to copy to_device to_copy device_put move", "shard": "shard device_put distribute",
    "to_both": "to copy to_device to_copy device_put asarray astype move convert convert_element_type",
    "cast": "cast to astype convert conversion convert_element_type", "to_host_shortcut": "cpu to copy to_copy move",
    "to_accelerator_shortcut": "cuda to copy to_copy move",
    "device_of": "device", "parse_device": "device", "clone_device": "device", "ordinal": "index id ordinal",
    "accelerator_count": "device_count count", "best_device": "devices current_accelerator",
    "linear": "linear", "linear_uncommitted": "linear", "holder": "module register_buffer register_parameter", "member": "getattr",
    "call": "linear forward", "move_module": "to to_device to_copy copy move", "loader": "from_tensors", "load": "linear get",
    "loader_to": "set_device",
    "to_list": "tolist to_list", "to_numpy": "numpy asarray dlpack from_dlpack",
}  # fmt: skip
#: Names that are words of plain English too: they count where the text marks them as code.
_PLAIN = frozenset((
    "tensor", "array", "full", "fill", "add", "addition", "less", "sum", "where", "select", "cat", "stack", "equal", "index",
    "gather", "take", "mask", "item", "view", "expand", "set", "to", "slice", "device", "id", "cpu", "cuda", "count", "devices",
    "move", "linear", "module", "get", "forward",
))  # fmt: skip
#: What compiled kernels and their callers put around an operation's name: `wrapper_CUDA_mm`, `add_stub`, `sum_cpu`.
_AROUND = frozenset(("wrapper", "stub", "kernel", "impl", "out", "cpu", "cuda", "mps", "jit"))
_BEFORE = re.compile(r"(?:[`'\"(.]|::|\b(?:of|in|op|operator|operation|function|ufunc|method|for) )\Z")
_AFTER = re.compile(r"[(:`'\"]")


def devices_named(reading: Reading, text: str, target: Mapping[str, Any]) -> str:
    """Say how many of the question's devices the text of an error names: all, some, none.

    A question about a device that isn't there is about that one alone: texts that list what there is
    name the others whatever was asked.
    """
    if reading.asks_missing():
        asked = set(reading.spelled.values())
        if not asked:
            return "unknown"
        return "all devices" if all(_says(text, expression) for expression in asked) else "no device"
    roles = target["roles"]
    fallback = "accelerator" if "accelerator" in roles else "host"
    used = {fallback if role == "device" else role for role in reading.program.roles}
    named = [role for role in used if role in roles and (_names(text, roles[role]) or (role == "alias" and _names(text, roles[fallback])))]
    return "all devices" if used and len(named) == len(used) else "some devices" if named else "no device"


def operation_named(operation: str, text: str) -> bool:
    """Say whether the text of an error names the operation that was asked, by a whole word."""
    names = NAMES.get(operation, "").split()
    symbols = [name for name in names if not name.isidentifier()]
    if any(re.search(rf"(?:\bfor |['\"`(]){re.escape(symbol)}[:'\"`)]", text) for symbol in symbols):
        return True
    return any(word in names and (marked or word not in _PLAIN) for word, marked in _words(text))


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the identifiers of a text, without what is put around them, and whether they are marked as code."""
    for found in re.finditer(r"\w+", text):
        parts = [part for part in found[0].lower().split("_") if part]
        kept = [part for part in parts if part not in _AROUND] or parts
        marked = bool(_BEFORE.search(text, 0, found.start()) or _AFTER.match(text, found.end()))
        marked = marked or (found.start() == 0 and found[0].islower())  # no sentence, which would begin with a capital
        marked = marked or len(kept) < len(parts) or found[0].strip("_") != found[0]
        yield "_".join(kept), marked
        if found[0].startswith("__") and kept[0][:1] in "ri":  # __radd__, __iadd__
            yield "_".join(kept)[1:], True


def _says(text: str, expression: str) -> bool:
    """Say whether a text has all that tells a device in its expression: quoted words, and an ordinal other than the first."""
    quoted = re.findall(r"(['\"])(.*?)\1", expression)
    ordinals = re.findall(r"\b[1-9]\d*\b", re.sub(r"(['\"]).*?\1", "", expression))
    words = [*(word for _, word in quoted), *ordinals]
    return bool(words) and all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.I) for word in words)


def _names(text: str, role: Mapping[str, str]) -> bool:
    name, mention = role["name"], role.get("mention")
    # What follows a dot is somebody's method: `Tensor.cpu()` is no word on where anything is.
    return bool(mention and mention in text) or re.search(rf"(?<![\w:.]){re.escape(name)}(?![\w:])", text, re.I) is not None
