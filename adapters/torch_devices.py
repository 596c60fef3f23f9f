"""PyTorch's devices: cpu, cuda, mps, any vendor's device type, meta and FakeTensor (worker side).

What changes with a new kind of device, a new build or a new simulation stands here; the operations are in `torch`.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, AbstractSet, Any, ClassVar, Iterator

from .base import GPU_SHARE, Adapter, NotModelled, role

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
#: Operations and scopes about which FakeTensor must not remember earlier programs, nor later ones these.
_TOUCHY = frozenset((
    "linear", "linear_uncommitted", "holder", "move_module", "current-device", "default-device", "inference",
))  # fmt: skip
_IDLE = "no work is done, so none can be timed: ask torch:cpu or a device that is here"


class TorchDevices(Adapter):
    """Which devices there are, how each is written, and what surrounds a program on it."""

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
    examples: ClassVar[dict[str, dict[str, str]]] = {
        "cpu": {"host": "torch.device('cpu')", "alias": "torch.device('cpu:0')"},
        "meta": {"host": "torch.device('cpu')", "accelerator": "torch.device('meta')"},
        "fake-cuda": {
            "host": "torch.device('cpu')", "accelerator": "torch.device('cuda:0')", "alias": "torch.device('cuda')",
            "peer": "torch.device('cuda:1')",
        },
    }  # fmt: skip
    environments: ClassVar[dict[str, dict[str, str]]] = {"no-accelerator": {"CUDA_VISIBLE_DEVICES": ""}}
    environments_of: ClassVar[dict[str, dict[str, dict[str, str]]]] = {
        "cuda": {"one-accelerator": {"CUDA_VISIBLE_DEVICES": "0"}, "reversed-accelerators": {"CUDA_VISIBLE_DEVICES": "1,0"}}
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
            "cuda": _why_no_cuda(),
            "mps": "no MPS device: it takes macOS 12.3 or later on Apple silicon, and a PyTorch built for that",
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
        self.touchy = False
        self.untimed = _IDLE if self.fake or kind == "meta" else ""

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
            raise NotModelled("FakeTensor makes any device without looking for hardware: ask torch:cpu or a device that is here")
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
        if name == "current-device" and self.kind in ("cuda", "fake-cuda"):
            return self.current_device(*args)
        if name == "inference":
            return torch.inference_mode()
        return super().scope(name, *args)

    def default_device(self, device: Any) -> Any:
        """Enter a default device: a torch.device is a context manager."""
        return torch.device(device)

    def current_device(self, device: Any) -> Any:
        """Enter a region in which an accelerator without an index means this one."""
        return torch.cuda.device(device)

    def reset(self) -> None:
        """Put back default device, default dtype, gradient mode and seed."""
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        if not self.fake:
            # Where only the host draws numbers the seed of its generator is enough; all others' would be noted, each with a stack.
            (torch.default_generator if self.kind in ("cpu", "meta") else torch).manual_seed(0)
        elif self.touchy:
            self._forget()

    def prepare(self, operations: AbstractSet[str]) -> None:
        """Let FakeTensor forget what it remembers, where that would make another answer of this program or of the next.

        It remembers where calls' results are by their words, which mean another device under another current one. And what it
        remembers is made otherwise than what it doesn't: a parameter made anew can't be swapped, a remembered one can.
        """
        self.touchy = self.fake and bool(operations & _TOUCHY)
        if self.touchy:
            self._forget()

    def _forget(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        if hasattr(FakeTensorMode, "cache_clear"):
            FakeTensorMode.cache_clear()

    def warm(self) -> None:
        """Do FakeTensor's first operation, which imports much; of the target's GPUs limit what is allocated, unless the user has.

        The limit starts CUDA on them, so it is left until somebody asks about them: the end of each such program synchronises them all.
        """
        if self.fake:
            with self.around():
                torch.ones(2, device=self.device("accelerator")) + 1
            self._forget()  # what it remembers of this is not for the questions
        own = (os.environ.get(name, "") for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"))
        if self.kind != "cuda" or any("per_process_memory_fraction" in settings for settings in own):
            return
        for name in ("accelerator", "peer"):
            if name in self.roles:
                torch.cuda.set_per_process_memory_fraction(GPU_SHARE, self.device(name))

    def barrier(self, values: list[Any]) -> None:
        """Synchronise the accelerator; the host computes when called."""
        for name in ("accelerator", "peer"):
            # One that is hidden from this process has no queue, and synchronising it would raise.
            if name in self.roles and not self.untimed and _here(self.kind) and self._shown(name):
                self._synchronize(self.device(name))

    def _shown(self, name: str) -> bool:
        """Say whether the environment shows an accelerator that the target has elsewhere."""
        count = getattr(getattr(torch, self.kind, None), "device_count", None)
        return count is None or bool((torch.device(self.device(name)).index or 0) < count())

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
                self.untimed = "this backend can't be synchronised: it needs what torch.accelerator.synchronize asks for"

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


def _accelerator(kind: str, count: int, evidence: str = "measured") -> dict[str, dict[str, str]]:
    roles = {
        "accelerator": role(f"{kind}:0", f"torch.device('{kind}:0')", evidence),
        "alias": role(kind, f"torch.device('{kind}')", evidence),
    }
    if count > 1:
        roles["peer"] = role(f"{kind}:1", f"torch.device('{kind}:1')", evidence)
    return roles


def _why_no_cuda() -> str:
    """Tell a build that knows no GPU from a machine that shows none."""
    made = f"ROCm {torch.version.hip}" if getattr(torch.version, "hip", None) else torch.version.cuda and f"CUDA {torch.version.cuda}"
    if not made:
        return "no CUDA device: this PyTorch is built without CUDA; install a build with it, see https://pytorch.org/get-started/locally/"
    tool, hides = ("rocm-smi", "HIP_VISIBLE_DEVICES") if made.startswith("ROCm") else ("nvidia-smi", "CUDA_VISIBLE_DEVICES")
    return f"no CUDA device: this PyTorch, built for {made}, sees none; look whether {tool} lists one and {hides} hides it"


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
