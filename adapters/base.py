"""What every Python adapter is made of (worker side: standard library only, Python 3.9 on).

An adapter is a class whose methods are the neutral operations, one native expression each where
possible: it doubles as a phrase book, and a cell's reproducer is made from those very expressions.
A method that is absent is an operation that the framework does not offer.

Devices and dtypes reach the methods as native objects. They are made from the *expressions* that
the adapter names, evaluated in the adapter's own module, so that what is shown is what ran.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import platform
import re
import sys
from typing import AbstractSet, Any, ClassVar, Iterator

#: Values of at most this many elements are read whole; of larger ones, spread positions.
WHOLE = 64
#: Devices that are not there, to be refused.
MISSING = ("absent", "out-of-range", "misspelt")
#: The part of a GPU's memory that one worker allocates at most, where its framework can be told so: whoever else works there keeps
#: half of it while two frameworks are asked.
GPU_SHARE = 0.25
#: Where Linux tells the version of NVIDIA's driver.
_DRIVER = "/proc/driver/nvidia/version"


class NotOffered(Exception):
    """The framework has no such concept; the message says which."""


class NotModelled(Exception):
    """A simulation cannot express the question; the message says why."""


class Unavailable(Exception):
    """The framework, or one of its devices, cannot be used here; the message says why and what to do."""


def role(name: str, expression: str, evidence: str = "measured", mention: str = "") -> dict[str, str]:
    """Describe a device role: what the framework prints it as, how it is written, how it is known.

    `mention` is how error texts write the device, where that is not its name.
    """
    return {"name": name, "expression": expression, "evidence": evidence, **({"mention": mention} if mention else {})}


class Adapter:
    """One framework on one kind of device. A worker keeps one instance for each kind."""

    #: The name in selectors (`torch` in `torch:cpu`).
    framework: ClassVar[str] = ""
    #: Lines that a reproducer starts with; also executed here, in the adapter's module.
    imports: ClassVar[str] = ""
    #: Neutral dtype name -> native expression, tried at start; what fails is not offered.
    dtypes: ClassVar[dict[str, str]] = {}
    #: Environment variables that change answers, recorded in the header.
    variables: ClassVar[tuple[str, ...]] = ()
    #: The environment name of a case -> variables (see `cases.case.ENVIRONMENTS`).
    environments: ClassVar[dict[str, dict[str, str]]] = {}
    #: The same for one kind of device alone; one whose variables somebody has set is not offered.
    environments_of: ClassVar[dict[str, dict[str, dict[str, str]]]] = {}
    #: Device kinds that are on every machine, preferred ones first, and how their roles are written: for code that is
    #: shown before anything ran.
    examples: ClassVar[dict[str, dict[str, str]]] = {}
    #: Why nothing can be timed on this kind of device; "" where it can.
    untimed: str = ""
    #: What a warning of the framework about the suite's own doing contains; it is no answer.
    chatter: ClassVar[str] = ""

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Take the device kind (`cpu` in `torch:cpu`) and its roles, as `kinds` described them."""
        self.kind = kind
        self.roles = roles
        self._natives: dict[str, Any] = {}

    # --- the framework as a whole -------------------------------------------------------------

    @classmethod
    def start(cls) -> None:
        """Import the framework into the adapter's modules: its own and its bases'. Raises whatever the import raises."""
        for module in cls._modules():
            exec(cls.imports, vars(module))  # noqa: S102  the adapter's own constant

    @classmethod
    def _modules(cls) -> list[Any]:
        bases = [base for base in cls.__mro__ if issubclass(base, Adapter) and base is not Adapter]
        return list(dict.fromkeys(sys.modules[base.__module__] for base in bases))

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return the version and the facts about the build that may change an answer."""
        # The first module that the adapter imports is the framework, whatever its distribution is called.
        module = importlib.import_module(cls.imports.split()[1].partition(".")[0])
        return {"version": str(getattr(module, "__version__", "unknown")), "build": {}}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return device kind -> its roles (see `role`), or a sentence why there is none here."""
        raise NotImplementedError

    @classmethod
    def offered_dtypes(cls) -> list[str]:
        """Return the neutral dtypes whose native expression means something in this version."""
        return [name for name in cls.dtypes if cls._has(cls.dtypes[name])]

    @classmethod
    def _has(cls, expression: str) -> bool:
        try:
            cls.evaluate(expression)
        except Exception:
            return False
        return True

    @classmethod
    def evaluate(cls, expression: str) -> Any:
        """Evaluate a native expression that the adapter itself names."""
        names = collections.ChainMap(*(vars(module) for module in cls._modules()))
        return eval(expression, {"__name__": cls.__module__}, names)  # noqa: S307  never from the wire

    # --- devices and dtypes -------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        """Return the role behind `device` (the accelerator where there is one, else the host)."""
        if name == "device":
            return "accelerator" if "accelerator" in self.roles else "host"
        return name

    def expression(self, name: str, spelled: str = "object") -> str:
        """Return how a device is written natively. Raises NotOffered where it cannot be."""
        name = self.resolve(name)
        if name in MISSING:
            return self.missing(name, spelled)
        if name not in self.roles:
            raise NotOffered(f"no {name} device here")
        return self.spelling(name, spelled)

    def spelling(self, name: str, spelled: str) -> str:
        """Return a role's expression in a spelling: `object`, `string`, `indexed`, `indexless`."""
        if spelled == "object":
            return self.roles[name]["expression"]
        raise NotOffered(f"{self.framework} has no {spelled} spelling of a device")

    def missing(self, name: str, spelled: str) -> str:
        """Return the expression of a device that is not here: absent, out-of-range or misspelt."""
        raise NotOffered(f"{self.framework} can't name a device that is {name}")

    def device(self, name: str, spelled: str = "object") -> Any:
        """Return a native device. Raises what the framework raises for a device it refuses."""
        key = f"{name}/{spelled}"
        if key not in self._natives:
            self._natives[key] = self.name_device(name, spelled)
        return self._natives[key]

    def name_device(self, name: str, spelled: str = "object") -> Any:
        """Name a native device anew: two names of one device are two handles where a framework makes two."""
        return self.evaluate(self.expression(name, spelled))

    def role_of(self, name: str) -> str | None:
        """Return the role of a device by what the framework prints it as.

        Another spelling of the same device is none of them unless the framework takes it for the same: FakeTensor
        prints `cpu:0`, and refuses it beside `cpu`.
        """
        for known in ("host", "accelerator", "peer"):
            if known in self.roles and self.roles[known]["name"] == name:
                return known
        return None

    def dtype(self, name: str) -> Any:
        """Return a native dtype. Raises NotOffered where the framework has none of that name."""
        key = f"dtype/{name}"
        if key not in self._natives:
            if name not in self.dtypes or not self._has(self.dtypes[name]):
                raise NotOffered(f"{self.framework} has no dtype {name}")
            self._natives[key] = self.evaluate(self.dtypes[name])
        return self._natives[key]

    def dtype_name(self, native: Any) -> str:
        """Return the neutral name of a native dtype."""
        return str(native).rpartition(".")[2]

    # --- the life of one program ----------------------------------------------------------------

    def prepare(self, operations: AbstractSet[str]) -> None:
        """Make ready for a program of these operations and scopes."""

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Surround a whole program (a simulation's mode)."""
        yield

    def scope(self, name: str, *args: Any) -> contextlib.AbstractContextManager[Any]:
        """Return a framework's scoped region: `default-device` (device), `current-device` (device), `inference`."""
        raise NotOffered(f"{self.framework} has no {name} scope")

    def reset(self) -> None:
        """Put back the framework's global state, so that no program changes the next."""

    def warm(self) -> None:
        """Do the first, slow operation of a simulation before anybody waits for it."""

    def barrier(self, values: list[Any]) -> None:
        """Wait for queued work, raising late errors. Some frameworks wait for values, not devices."""

    def reinterpret(self, error: Exception) -> Exception:
        """Return NotModelled for a simulation's own failure; other errors are the framework's."""
        return error

    def poisoned(self, error: BaseException) -> bool:
        """Say whether the device cannot be used in this process any more after this error."""
        return False

    def clock(self) -> float:
        """Return seconds on the host's clock."""
        import time

        return time.perf_counter()

    # --- looking --------------------------------------------------------------------------------

    def describe(self, value: Any) -> dict[str, Any]:
        """Return device, dtype and shape of a tensor without waiting for it; {} for anything else."""
        raise NotImplementedError

    def metadata(self, x: Any) -> Any:
        """Return what a user would print of a result to see where it is; scripts that the suite shows print it so."""
        raise NotOffered(f"{self.framework} prints no metadata")

    def read(self, value: Any) -> Any:
        """Return a tensor's elements as a flat sequence on the host. Waits for the value."""
        raise NotImplementedError

    def identity_of(self, value: Any) -> Any:
        """Return something that is equal for two tensors exactly when they share storage, or None."""
        return None


class HostBuffer:
    """Host memory with a stated alignment: whether a put may alias it depends on that."""

    #: Neutral dtype -> how the standard library packs it; complex numbers are pairs of floats.
    _CODES: ClassVar[dict[str, str]] = {"float32": "f", "float64": "d", "int64": "q", "uint64": "Q", "complex128": "d"}

    def __init__(self, values: list[Any], alignment: str, dtype: str = "float32") -> None:
        """Place values on a 64-byte boundary (`aligned`) or 4 bytes past one (`misaligned`)."""
        import ctypes

        #: The neutral name, which is also NumPy's.
        self.dtype = dtype
        data = self._packed(values)
        self._block = ctypes.create_string_buffer(len(data) + 128)
        start = -ctypes.addressof(self._block) % 64 + (0 if alignment == "aligned" else 4)
        self.memory = memoryview(self._block).cast("B")[start : start + len(data)]
        self.memory[:] = data

    def __str__(self) -> str:
        return "host memory"

    def write(self, value: float) -> None:
        """Overwrite every element, as a host program that reuses its buffer does."""
        one = self._packed([value])
        self.memory[:] = one * (len(self.memory) // len(one))

    def _packed(self, values: list[Any]) -> bytes:
        import array

        if self.dtype.startswith("complex"):
            values = [part for v in values for part in (complex(v).real, complex(v).imag)]
        return array.array(self._CODES[self.dtype], values).tobytes()


def positions(count: int) -> list[int]:
    """Return the positions that are read of a value with so many elements: all, or 16 spread ones."""
    if count <= WHOLE:
        return list(range(count))
    return sorted({0, count - 1, *((7919 * i * i + 4099 * i) % count for i in range(1, 15))})


def machine() -> dict[str, str]:
    """Return what is recorded about the interpreter and the machine; no name and no path."""
    found = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "release": platform.release(),
        "cores": str(os.cpu_count()),
    }
    try:
        with open(_DRIVER, encoding="utf-8", errors="replace") as file:
            version = re.search(r"\b\d+(\.\d+)+\b", file.readline())
    except OSError:
        return found
    return {**found, "driver": version.group()} if version else found
