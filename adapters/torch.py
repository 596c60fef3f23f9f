"""PyTorch: cpu, cuda, mps, any vendor's device type, meta and FakeTensor (worker side)."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar, Iterator

from .base import Adapter, NotModelled, NotOffered, role

if TYPE_CHECKING:
    import torch

#: What a build says when a fake operation reaches for hardware, a driver or a kernel that it lacks.
_BUILD_SPEAKING = (
    "Found no NVIDIA driver",
    "not linked with support for mps",
    "Torch not compiled with CUDA enabled",
    "PyTorch is not linked with support for",
    "Cannot access accelerator device when none is available",
    "no NVIDIA GPU",
    "No CUDA GPUs are available",
    "CUDA driver",
    "CUDA error",  # a real device of that ordinal was looked for
)
#: What FakeTensor says of what it cannot fake: memory that isn't its own, operations nobody wrote.
_FAKE_SPEAKING = ("Please convert all Tensors to FakeTensors", "NYI:", "is not supported for tensor subclasses")


class Torch(Adapter):
    """PyTorch 2.0 on."""

    framework = "torch"
    imports = "import torch"
    variables = (
        "CUDA_VISIBLE_DEVICES",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_ENABLE_MPS_FALLBACK",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "TORCH_LOGS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
    )
    environments: ClassVar[dict[str, dict[str, str]]] = {"no-accelerator": {"CUDA_VISIBLE_DEVICES": ""}}
    dtypes: ClassVar[dict[str, str]] = {
        **{
            name: f"torch.{name}"
            for name in (
                "bool",
                "int8",
                "int16",
                "int32",
                "int64",
                "uint8",
                "uint16",
                "uint32",
                "uint64",
                "float16",
                "bfloat16",
                "float32",
                "float64",
                "complex64",
                "complex128",
                "float8_e4m3fn",
                "float8_e4m3fnuz",
                "float8_e5m2",
                "float8_e5m2fnuz",
                "float8_e8m0fnu",
            )
        },
        "int1": "torch.int1",
        "int2": "torch.int2",
        "int4": "torch.int4",
        "uint1": "torch.uint1",
        "uint2": "torch.uint2",
        "uint4": "torch.uint4",
        "complex32": "torch.complex32",
        "float4_e2m1fn": "torch.float4_e2m1fn_x2",
    }

    @classmethod
    def start(cls) -> None:
        """Import PyTorch, and let it warn each time: what it says once, only the first question would hear."""
        super().start()
        torch.set_warn_always(True)

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return the version, and which CUDA, ROCm and cuDNN this build was made for."""
        build = {"cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None), "debug": torch.version.debug}
        if torch.cuda.is_available():
            build["gpu"] = torch.cuda.get_device_name(0)
            build["capability"] = ".".join(map(str, torch.cuda.get_device_capability(0)))
        return {"version": torch.__version__, "build": {k: str(v) for k, v in build.items() if v is not None}}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return the host, the data-less devices, and each accelerator or why it is not here."""
        cpu, fake = role("cpu", "torch.device('cpu')"), role("cpu", "torch.device('cpu')", "simulated")
        kinds: dict[str, Any] = {
            "cpu": {"host": cpu, "alias": role("cpu", "torch.device('cpu:0')")},
            "meta": {"host": cpu, "accelerator": role("meta", "torch.device('meta')", "simulated")},
            "fake-cuda": {"host": fake, **_accelerator("cuda", 2, "simulated")},
            "fake-mps": {"host": fake, **_accelerator("mps", 1, "simulated")},
            "cuda": "no CUDA device: torch.cuda.is_available() is False",
            "mps": "no MPS device: torch.backends.mps.is_available() is False",
        }
        if torch.cuda.is_available():
            kinds["cuda"] = {"host": cpu, **_accelerator("cuda", torch.cuda.device_count())}
        if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
            kinds["mps"] = {"host": cpu, **_accelerator("mps", 1)}
        other = _other_accelerator()
        if other and other not in kinds:
            kinds[other] = {"host": cpu, **_accelerator(other, torch.accelerator.device_count())}
        return kinds

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Remember whether this kind does any work, and prepare FakeTensor's mode if asked for."""
        super().__init__(kind, roles)
        self.fake = kind.startswith("fake-")
        self.untimed = "no work is done, so none can be timed" if self.fake or kind == "meta" else ""

    def spelling(self, name: str, spelled: str) -> str:
        """Spell a device as a string or an object, with an index or without."""
        text = self.roles[name]["expression"][len("torch.device('") : -2]
        kind = text.partition(":")[0]
        if spelled == "string":
            return repr(text)
        if spelled == "indexless":
            return repr(kind)
        if spelled == "indexed":
            if kind == "meta":
                return "'meta:0'"
            return repr(text if ":" in text else text + ":0")
        return super().spelling(name, spelled)

    def missing(self, name: str, spelled: str) -> str:
        """Spell a device that is not here."""
        kind = self.kind.replace("fake-", "")
        if self.fake and name != "misspelt":
            raise NotModelled("FakeTensor makes any device without looking for hardware")
        # Where the accelerators are hidden, this is the hidden one.
        absent = next(k for k in ("cuda", "xpu", "mps") if not _here(k))
        text = {"absent": absent, "out-of-range": f"{kind}:99", "misspelt": kind + "u"}[name]
        return repr(text) if spelled == "string" else f"torch.device({text!r})"

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Put a program that asks a fake device into FakeTensor's mode."""
        if not self.fake:
            yield
            return
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            yield

    def scope(self, name: str, *args: Any) -> Any:
        """Return PyTorch's scoped regions."""
        if name == "default-device":
            return self.default_device(*args)
        if name == "inference":
            return torch.inference_mode()
        return super().scope(name, *args)

    def default_device(self, device: Any) -> Any:
        """Enter a default device: a torch.device is a context manager."""
        return torch.device(device)

    def reset(self) -> None:
        """Put back default device, default dtype, gradient mode and seed."""
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        if not self.fake:
            torch.manual_seed(0)

    def warm(self) -> None:
        """FakeTensor's first operation imports much."""
        with self.around():
            torch.ones(2, device=self.device("accelerator")) + 1

    def barrier(self, values: list[Any]) -> None:
        """Synchronise the accelerator; the host computes when called."""
        for name in ("accelerator", "peer"):
            # One that is hidden from this process has no queue, and synchronising it would raise.
            if name in self.roles and not self.untimed and _here(self.kind):
                self._synchronize(self.device(name))

    def _synchronize(self, device: Any) -> None:
        """Wait for the queued work of one accelerator."""
        if self.kind == "cuda":
            torch.cuda.synchronize(device)
        elif self.kind == "mps":
            torch.mps.synchronize()
        else:
            try:
                torch.accelerator.synchronize(device)
            except RuntimeError as error:
                if "support synchroniz" not in str(error):
                    raise
                self.untimed = "this backend can't be synchronised"

    def reinterpret(self, error: Exception) -> Exception:
        """Tell a simulation's build and driver errors from the framework's refusals."""
        text = str(error)
        if self.fake and (
            any(sign in text for sign in _BUILD_SPEAKING + _FAKE_SPEAKING)
            or type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException")
            or (isinstance(error, NotImplementedError) and "Could not run" in text)
        ):
            return NotModelled(text.partition("\n")[0] or type(error).__name__)
        return error

    def poisoned(self, error: BaseException) -> bool:
        """Say whether the CUDA context is lost: by a device-side assert and its kin."""
        return not self.fake and ("CUDA error" in str(error) or type(error).__name__ == "AcceleratorError")

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
            raise NotModelled(f"{'FakeTensor' if self.fake else 'meta'} holds no values")
        flat = value.detach().to("cpu").reshape(-1)
        if flat.dtype.itemsize < 4 and flat.dtype.is_floating_point:  # tolist of the narrowest needs a wider type
            flat = flat.to(torch.float32)
        return flat.tolist()

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
            raise NotOffered(f"torch has no memory kind {kind}")
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
        raise NotOffered(f"torch tensors have no {kind}()")

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
            raise NotModelled("a simulated device is never found by looking for hardware")
        if not hasattr(torch, "accelerator"):
            raise NotOffered("torch.accelerator came with 2.6")

    # --- reading back ---------------------------------------------------------------------------

    def to_list(self, x: Any) -> Any:
        return x.tolist()

    def to_numpy(self, x: Any) -> Any:
        """Give the data to NumPy, where that is installed."""
        if importlib.util.find_spec("numpy") is None:
            raise NotOffered("NumPy is not installed beside torch")
        return x.numpy()


def _accelerator(kind: str, count: int, evidence: str = "measured") -> dict[str, dict[str, str]]:
    roles = {
        "accelerator": role(f"{kind}:0", f"torch.device('{kind}:0')", evidence),
        "alias": role(kind, f"torch.device('{kind}')", evidence),
    }
    if count > 1:
        roles["peer"] = role(f"{kind}:1", f"torch.device('{kind}:1')", evidence)
    return roles


def _other_accelerator() -> str | None:
    """Return a vendor's device type, if one is really there."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None or not accelerator.is_available():
        return None
    return str(accelerator.current_accelerator().type)


def _here(kind: str) -> bool:
    if kind == "mps":
        return bool(torch.backends.mps.is_available())
    module = getattr(torch, kind, None)
    return bool(module is not None and module.is_available())
