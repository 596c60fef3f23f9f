"""What an error's text names: real texts of several frameworks, read by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cases import catalogue
from cases.errors import NAMES, devices_named, operation_named
from cases.reading import Reading
from cases.words import OPERATIONS

ROLES = {"host": {"name": "cpu"}, "accelerator": {"name": "cuda:0"}, "alias": {"name": "cuda"}}
LISTS = "Expected one of cpu, cuda, ipu, xpu, meta device type at start of device string: "


def test_every_operation_has_names() -> None:
    assert NAMES.keys() == OPERATIONS.keys()


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("add", '"add_stub" not implemented for \'UInt16\''),
        ("add", "Only numeric dtypes are allowed in __radd__"),
        ("add_", "unsupported operand type(s) for +=: 'A' and 'B'"),
        ("add", "ufunc 'add' did not contain a loop"),
        ("add", "Got argument x of add with shape float32[4]"),
        ("add", "add: operands are on host and on dev:0"),
        ("matmul", '"addmm_impl_cpu_" not implemented for \'Bool\''),
        ("matmul", "when checking argument for argument mat2 in method wrapper_CUDA_mm"),
        ("matmul", "unsupported operand type S2 in op dot"),
        ("div", "Got argument x1 of true_divide"),
        ("index_select", "argument indices of _take with shape int32[4]"),
        ("where", "Inputs to `where` must all use the same device"),
        ("mask", "Array indexing is only allowed when all indexing arrays are on the same device."),
        ("array_equal", "aten::equal: attempted to run this operator with Meta tensors"),
        ("to_numpy", "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first."),
        ("sum", '"sum_cpu" not implemented for \'ComplexHalf\''),
        ("to_memory", "cannot pin 'MetaFloatType' only dense CPU tensors can be pinned"),
    ],
)
def test_a_text_names_the_operation(operation: str, text: str) -> None:
    assert operation_named(operation, text)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("array_equal", "Arrays from two different devices can not be combined."),
        ("to", "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"),
        ("set_tail", "mismatched settings: self.device != value.device"),
        ("add", "in order to use this operator you'll need to add a fake impl"),
        ("add", "Add the model to the device first"),
        ("add", "address 0x7f is in use"),
        ("add_out", "Attempting to copy from device cpu to device meta, but cross-device copies are not allowed!"),
        ("index", "when checking argument in method wrapper_CUDA__index_select"),
        ("stack", "concat inputs must all be on the same device"),
        ("sub", "can't do that - see the manual"),
        ("item", "one item of the list is not a tensor"),
        ("time", "time is over"),
    ],
)
def test_a_text_does_not_name_the_operation(operation: str, text: str) -> None:
    assert not operation_named(operation, text)


def named(case: str, text: str, spelled: dict[str, str] | None = None) -> str:
    """Say which devices a text names, of a case's question."""
    observation: dict[str, Any] = {"steps": {}, **({"spelled": spelled} if spelled else {})}
    return devices_named(Reading(catalogue()[case].program, observation, {}), text, {"roles": ROLES})


@pytest.mark.parametrize(
    ("case", "text", "says"),
    [
        ("placement/add/host-accelerator", "found at least two devices, cpu and cuda:0!", "all devices"),
        ("placement/add/host-accelerator", "expected cuda:0", "some devices"),
        ("placement/add/host-accelerator", "expected cuda:01 or mycpu", "no device"),
        ("placement/add/host-accelerator", "can't convert cuda:0 to numpy, call Tensor.cpu() first", "some devices"),
        ("moving/equality/device-alias", "no such device: cuda:0", "all devices"),
    ],
)  # fmt: skip
def test_which_of_the_questions_devices_a_text_names(case: str, text: str, says: str) -> None:
    assert named(case, text) == says


@pytest.mark.parametrize(
    ("expression", "text", "says"),
    [
        ("torch.device('cudau')", LISTS + "cudau", "all devices"),
        ("torch.device('cudau')", LISTS + "cudauu", "no device"),
        ("'cuda:99'", "Unsupported device: cuda:99. Only 'cpu' is accepted.", "all devices"),
        ("'cuda:99'", "CUDA error: invalid device ordinal", "no device"),
        ("torch.device('cuda')", "Torch not compiled with CUDA enabled", "all devices"),
        ("torch.device('cuda')", "Found no NVIDIA driver on your system", "no device"),
        ("jax.devices('gpu')[0]", "Unknown backend: 'gpu' requested. Platforms present are: cpu", "all devices"),
        ("jax.devices('cpu')[99]", "list index out of range", "no device"),
        ("jax.devices('cpu')[99]", "Unknown backend. Platforms present are: cpu", "no device"),
        ("jax.devices('cpu')[99]", "cpu has no device 99", "all devices"),
        ("Device::new_cuda(99)", "invalid device ordinal 99", "all devices"),
        ("nowhere()", "nowhere", "no device"),
    ],
)
def test_a_question_about_a_device_that_is_not_there_is_about_that_one(expression: str, text: str, says: str) -> None:
    for case in ("moving/misspelt/create-object", "moving/misspelt/move-object"):
        assert named(case, text, {"misspelt/object": expression}) == says


def test_a_worker_that_does_not_say_how_it_wrote_a_device_leaves_it_open() -> None:
    assert named("moving/absent/move-object", LISTS + "cpuu") == "unknown"
