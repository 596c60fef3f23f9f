"""The words of the case language: roles, spellings, operations, scopes, each in one line."""

from __future__ import annotations

from collections.abc import Mapping

#: Roles that a device can play in a program; `device` is the accelerator where there is one.
ROLES = ("host", "accelerator", "peer", "alias", "device")
#: Devices that are not there, to be refused.
MISSING = ("absent", "out-of-range", "misspelt")
#: How a device is written.
SPELLINGS = ("object", "string", "indexed", "indexless")
#: The operations that adapters know, and what each is, in one line.
OPERATIONS: Mapping[str, str] = {
    "tensor": "make a tensor of values, dtype and device",
    "tensor_uncommitted": "make a tensor of values and dtype, no device said",
    "literal": "make a tensor of plain Python numbers on a device, no dtype said",
    "full": "fill a shape with one value",
    "ramp": "count upwards from a start",
    "zeros": "zeros of a shape, dtype and device",
    "zeros_uncommitted": "zeros of a shape, no device said",
    "zeros_like": "zeros like another tensor",
    "from_buffer": "make a tensor of host memory, copying or not as the framework likes",
    "from_buffer_copy": "make a tensor of host memory, asking for a copy",
    "to_memory": "move to a memory kind of the same device",
    "add": "sum", "sub": "difference", "mul": "product", "div": "quotient", "less": "comparison",
    "matmul": "matrix product", "sum": "sum of all elements", "where": "choose by a condition",
    "cat": "concatenate", "stack": "stack", "array_equal": "equality of whole values",
    "add_out": "sum into an output given by the caller",
    "embedding": "rows of a table by ids", "index": "x[ids]", "index_select": "rows by a function",
    "gather": "elements by ids", "mask": "x[mask]", "item": "a Python number of one element",
    "element": "x[i], a view of lower rank", "tail": "x[start:], a view with an offset", "transpose": "a view with other strides",
    "expand": "a view that repeats", "reshape": "another shape",
    "add_": "in-place sum", "set_tail": "slice assignment x[start:] = y", "copy_": "copy into",
    "to": "move to a device", "to_copy": "move to a device, asking for a copy", "to_both": "move to a device and a dtype at once",
    "shard": "spread over two devices",
    "to_async": "move by the call that need not wait: the ordinary one, where there is no other",
    "cast": "change the dtype", "to_host_shortcut": "the framework's short way to the host",
    "to_accelerator_shortcut": "the framework's short way to the accelerator",
    "device_of": "the device that a tensor says it is on",
    "parse_device": "make a device of its spelling", "clone_device": "copy a device handle",
    "ordinal": "the ordinal that a device reports", "accelerator_count": "how many accelerators there are",
    "best_device": "an accelerator if there is one, else the host",
    "linear": "a linear layer with a weight, without a bias", "linear_uncommitted": "a linear layer made anew, no device said",
    "holder": "a module that keeps a value: as a parameter, a buffer, in a list, as an attribute",
    "member": "what a module keeps", "call": "what a module computes", "move_module": "move a module to a device",
    "loader": "what builds modules of a weight on its device", "load": "the next layer of a loader",
    "loader_to": "the loader with another device",
    "to_list": "plain Python numbers of a tensor", "to_numpy": "a NumPy array of a tensor",
}  # fmt: skip
#: The interpreter's own operations: looking, waiting, forgetting, and the world outside.
LOOKS: Mapping[str, str] = {
    "observe": "read a value; this waits for it",
    "barrier": "wait for everything that was queued",
    "drop": "forget a value",
    "same": "same object, shared storage, or neither",
    "compare": "compare two devices as values",
    "name": "name a device, anew each time",
    "buffer": "make host memory with an alignment",
    "write_buffer": "write to host memory",
    "time": "time a loop: returned against synchronised",
}
#: Operations that change one of their operands.
EFFECTS = frozenset({"add_", "set_tail", "copy_", "add_out", "write_buffer", "drop"})
#: Operations that need a role without naming a device.
IMPLIED: Mapping[str, str] = {"to_host_shortcut": "host", "to_accelerator_shortcut": "accelerator"}
#: Scoped regions.
SCOPES: Mapping[str, str] = {
    "default-device": "creation without a device obeys it",
    "current-device": "an accelerator without an index means this one",
    "inference": "no gradients are recorded",
}
