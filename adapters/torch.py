"""PyTorch: its operations and dtypes in its own words (worker side)."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar

from .base import WHOLE, NotModelled, NotOffered
from .torch_devices import TorchDevices

if TYPE_CHECKING:
    import torch


class Torch(TorchDevices):
    """PyTorch 2.0 on."""

    dtypes: ClassVar[dict[str, str]] = {
        **{
            name: f"torch.{name}"
            for name in (
                "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
                "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                "float8_e8m0fnu", "int1", "int2", "int4", "uint1", "uint2", "uint4", "complex32",
            )
        },
        "float4_e2m1fn": "torch.float4_e2m1fn_x2",
    }  # fmt: skip

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype and shape."""
        if not isinstance(value, torch.Tensor):
            return {}
        # Asking starts CUDA, so only where it is started or the question's own.
        may = not self.fake and (self.kind not in ("cpu", "meta") or torch.cuda.is_initialized())
        pinned = bool(may and value.device.type == "cpu" and value.is_pinned())
        return {
            "device": str(value.device),
            "dtype": self.dtype_name(value.dtype),
            "shape": list(value.shape),
            "memory": "pinned-host" if pinned else "device",
        }

    def dtype_name(self, native: Any) -> str:
        """Return the neutral name of a native dtype."""
        return str(native)[len("torch.") :].replace("float4_e2m1fn_x2", "float4_e2m1fn")

    def read(self, value: Any) -> Any:
        """Return the elements; data-less tensors have none."""
        if value.device.type == "meta" or self.fake:
            raise NotModelled(f"{'FakeTensor' if self.fake else 'meta'} holds no values: ask torch:cpu or a device that is here")
        flat = value.detach().to("cpu").reshape(-1)
        if flat.element_size() < 4 and flat.dtype.is_floating_point:  # tolist of the narrowest needs a wider type
            flat = flat.to(torch.float32)
        # Of a large one only some elements are looked at.
        return flat.tolist() if flat.numel() <= WHOLE else flat

    def metadata(self, x: Any) -> Any:
        return x.device, x.dtype

    def identity_of(self, value: Any) -> Any:
        """Return the storage's identity: it also exists where there is no memory behind it."""
        return value.untyped_storage()._cdata

    # --- creation -------------------------------------------------------------------------------

    def tensor(self, values: Any, dtype: Any, device: Any) -> Any:
        return torch.tensor(values, dtype=dtype, device=device)

    def tensor_uncommitted(self, values: Any, dtype: Any) -> Any:
        return torch.tensor(values, dtype=dtype)

    def literal(self, values: Any, device: Any) -> Any:
        return torch.tensor(values, device=device)

    def full(self, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
        return torch.full(shape, value, dtype=dtype, device=device)

    def ramp(self, count: int, start: int, shape: Any, dtype: Any, device: Any) -> Any:
        return torch.arange(start, start + count, dtype=dtype, device=device).reshape(shape)

    def zeros(self, shape: Any, dtype: Any, device: Any) -> Any:
        return torch.zeros(shape, dtype=dtype, device=device)

    def zeros_uncommitted(self, shape: Any) -> Any:
        return torch.zeros(shape)

    def zeros_like(self, x: Any) -> Any:
        return torch.zeros_like(x)

    def from_buffer(self, buffer: Any, device: Any) -> Any:
        return torch.frombuffer(buffer.memory, dtype=self.dtype(buffer.dtype)).to(device)

    def from_buffer_copy(self, buffer: Any, device: Any) -> Any:
        return torch.frombuffer(buffer.memory, dtype=self.dtype(buffer.dtype)).to(device, copy=True)

    def to_memory(self, x: Any, kind: str) -> Any:
        """Move a host tensor to pinned memory."""
        if kind != "pinned-host":
            raise NotOffered(f"torch has no memory kind {kind}, only pinned-host")
        return x.pin_memory()

    # --- arithmetic -----------------------------------------------------------------------------

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def sub(self, x: Any, y: Any) -> Any:
        return x - y

    def mul(self, x: Any, y: Any) -> Any:
        return x * y

    def div(self, x: Any, y: Any) -> Any:
        return x / y

    def less(self, x: Any, y: Any) -> Any:
        return x < y

    def matmul(self, x: Any, y: Any) -> Any:
        return x @ y

    def sum(self, x: Any) -> Any:
        return x.sum()

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return torch.where(condition, x, y)

    def cat(self, x: Any, y: Any) -> Any:
        return torch.cat([x, y])

    def stack(self, x: Any, y: Any) -> Any:
        return torch.stack([x, y])

    def array_equal(self, x: Any, y: Any) -> Any:
        return torch.equal(x, y)

    def add_out(self, x: Any, y: Any, out: Any) -> Any:
        return torch.add(x, y, out=out)

    # --- indexing -------------------------------------------------------------------------------

    def embedding(self, table: Any, ids: Any) -> Any:
        return torch.nn.functional.embedding(ids, table)

    def index(self, x: Any, ids: Any) -> Any:
        return x[ids]

    def index_select(self, x: Any, ids: Any) -> Any:
        return torch.index_select(x, 0, ids)

    def gather(self, x: Any, ids: Any) -> Any:
        return torch.gather(x, 0, ids)

    def mask(self, x: Any, mask: Any) -> Any:
        return x[mask]

    def corner(self, x: Any) -> Any:
        return x[0, 0]

    def item(self, x: Any) -> Any:
        return x.item()

    # --- layouts --------------------------------------------------------------------------------

    def element(self, x: Any, i: int) -> Any:
        return x[i]

    def tail(self, x: Any, start: int) -> Any:
        return x[start:]

    def transpose(self, x: Any) -> Any:
        return x.T

    def expand(self, x: Any, shape: Any) -> Any:
        return x.expand(shape)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    # --- effects --------------------------------------------------------------------------------

    def add_(self, x: Any, y: Any) -> Any:
        return x.add_(y)

    def set_tail(self, x: Any, start: int, y: Any) -> Any:
        x[start:] = y
        return x

    def copy_(self, x: Any, y: Any) -> Any:
        return x.copy_(y)

    # --- moving ---------------------------------------------------------------------------------

    def to(self, x: Any, device: Any) -> Any:
        return x.to(device)

    def to_copy(self, x: Any, device: Any) -> Any:
        return x.to(device, copy=True)

    def to_async(self, x: Any, device: Any) -> Any:
        return x.to(device, non_blocking=True)

    def to_both(self, x: Any, device: Any, dtype: Any) -> Any:
        return x.to(device=device, dtype=dtype)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype)

    def to_host_shortcut(self, x: Any) -> Any:
        return x.cpu()

    def to_accelerator_shortcut(self, x: Any) -> Any:
        """Move by the device type's own method."""
        kind = self.kind.replace("fake-", "")
        if kind == "cuda":
            return x.cuda()
        raise NotOffered(f"torch tensors have no {kind}(), only to({kind!r})")

    # --- modules --------------------------------------------------------------------------------

    # No parameter asks for gradients: recording them on a device that FakeTensor makes up ends the process.
    def linear(self, weight: Any) -> Any:
        layer = torch.nn.Linear(*weight.shape, bias=False)
        layer.weight = torch.nn.Parameter(weight, requires_grad=False)
        return layer

    def linear_uncommitted(self, edge: int) -> Any:
        return torch.nn.Linear(edge, edge, bias=False)

    def holder(self, x: Any, kind: str) -> Any:
        module = torch.nn.Module()
        if kind == "buffer":
            module.register_buffer("kept", x)
        elif kind == "parameter":
            module.kept = torch.nn.Parameter(x, requires_grad=False)
        elif kind == "list":
            module.kept = [x]
        else:
            module.kept = x
        return module

    def member(self, module: Any, kind: str) -> Any:
        if kind == "weight":
            return module.weight
        if kind == "list":
            return module.kept[0]
        return module.kept

    def call(self, module: Any, x: Any) -> Any:
        return module(x)

    def move_module(self, module: Any, device: Any) -> Any:
        return module.to(device)

    # --- devices as values ----------------------------------------------------------------------

    def device_of(self, x: Any) -> Any:
        return x.device

    def parse_device(self, spelling: Any) -> Any:
        return torch.device(spelling)

    def clone_device(self, device: Any) -> Any:
        return torch.device(device)

    def ordinal(self, device: Any) -> Any:
        return device.index

    def accelerator_count(self) -> Any:
        """Count what can be used here."""
        self._looks_for_hardware()
        return torch.accelerator.device_count()

    def best_device(self) -> Any:
        """Choose as programs do."""
        self._looks_for_hardware()
        return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")

    def _looks_for_hardware(self) -> None:
        if self.untimed:
            raise NotModelled("a simulated device is never found by looking for hardware: ask torch:cpu or a device that is here")
        if not hasattr(torch, "accelerator"):
            raise NotOffered("torch.accelerator came with 2.6: ask a later torch")

    # --- reading back ---------------------------------------------------------------------------

    def to_list(self, x: Any) -> Any:
        return x.tolist()

    def to_numpy(self, x: Any) -> Any:
        """Give the data to NumPy, where that is installed."""
        if importlib.util.find_spec("numpy") is None:
            raise NotOffered("NumPy is not installed beside torch: python -m pip install numpy")
        return x.numpy()
