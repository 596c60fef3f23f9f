"""An adapter of somebody's, read and never run, and steps to write in its code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.reproducer import Reproducer
from adapters.source import class_of, module

ADAPTER = '''
from __future__ import annotations
import math
from .sibling import shared
from adapters.base import Adapter, NotOffered, NotModelled

_LIMIT = 3

class Base(Adapter):
    def inherited(self, x):
        return lib.base(x, self.kind)

class Mine(Base):
    """An adapter."""
    framework = "lib"
    imports = "import lib"
    dtypes = {**{name: f"lib.{name}" for name in ("float32", "bool")}, "int4": "lib.i4"}
    environments = {"wide-dtypes": {"LIB_WIDE": "1"}}
    computes = True
    examples = {"flat": {"host": "lib.Device('flat')"}, "gpu": {"host": "lib.Device('cpu')", "accelerator": "lib.Device('gpu:0')"}}

    def __init__(self, kind, roles):
        super().__init__(kind, roles)
        self.fake = kind.startswith("fake-")
        self.plain = kind.replace("fake-", "")
        self.untimed = "nothing is computed" if kind == "lazy" else ""
        self.session = lib.session()

    def spelling(self, name, spelled):
        text = self.roles[name]["expression"][len("lib.Device('") : -2]
        if spelled == "string":
            return repr(text)
        return super().spelling(name, spelled)

    def missing(self, name, spelled):
        here = _probe()
        return {"absent": f"lib.Device({here!r})", "misspelt": f"lib.Device({self.kind + 'u'!r})"}[name]

    def around(self):
        if not self.fake:
            yield
            return
        import lib.fake
        with lib.fake.Mode():
            yield

    def scope(self, name, *args):
        if name == "default-device":
            return self.default(*args)
        return super().scope(name, *args)

    def default(self, device):
        return lib.default(device)

    def barrier(self, values):
        if self.computes and "accelerator" in self.roles:
            for name in ("accelerator", "peer"):
                if name in self.roles:
                    lib.wait(self.device(name))
        lib.block(values)

    def identity_of(self, value):
        return value.address

    def full(self, shape, value, dtype, device):
        return lib.full(shape, value, dtype=dtype, device=device)

    def add(self, x, y):
        return x + y

    def power(self, x, n):
        """Raise."""
        return x ** n

    def metadata(self, x):
        return x.place, x.kind

    def corner(self, x):
        return x[0, 0]

    def item(self, x):
        return x.item()

    def attribute(self, x):
        return x.T

    def add_(self, x, y):
        x += y
        return x

    def set_tail(self, x, start, y):
        x[start:] = y
        return x

    def shortcut(self, x):
        if self.plain == "gpu":
            return x.gpu()
        raise NotOffered(f"no {self.plain}()")

    def guarded(self, x, kind):
        if kind != "pinned":
            raise NotOffered(f"no memory kind {kind}")
        if not lib.has_pinned():
            raise NotOffered("too old")
        return x.pin()

    def helped(self, x):
        return _helper(x, self.kind)

    def chosen(self, x):
        """Look at the value."""
        if x.ndim > _LIMIT:
            return _deep(x)
        return x.flat

    def chosen_by_name(self, x):
        if self.name_of(x) == "bool":
            return bool(x)
        return float(x)

    def name_of(self, x):
        return str(x.dtype).rpartition(".")[2]

    def looped(self, x):
        while True:
            self.session.step(x)

    def suppressed(self, x):
        with math.suppress(Exception):
            return x.fast
        return x.slow

    def entered(self, x, device):
        with lib.default(device):
            y = lib.copy(x)
            return y

    def undecided(self, x):
        if lib.ready() and self.computes:
            lib.go(x)
        return x

    def short_circuit(self, x):
        return x.far if self.kind == "far" and lib.unknown() else x.near

    def dynamic(self, device):
        getattr(lib, device.type).sync(*([device] if self.kind != "mps" else []))

    def cast(self, buffer):
        return lib.view(buffer.memory, self.dtype(buffer.dtype))

class _Before20:
    """What was written otherwise before 2.0."""
    def add(self, x, y):
        return lib.add(x, y)
    power = add

def _helper(x, kind):
    return lib.helped(x, kind)

def _deep(x):
    return math.prod(x.shape)
'''
ROLES = {
    "host": {"name": "cpu", "expression": "lib.Device('cpu')", "evidence": "measured"},
    "accelerator": {"name": "gpu:0", "expression": "lib.Device('gpu:0')", "evidence": "measured"},
}


def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a way to make the phrase book of the adapter above, for a fixture."""
    (tmp_path / "somebodys").mkdir()
    (tmp_path / "somebodys" / "__init__.py").write_text("")
    (tmp_path / "somebodys" / "adapter.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(tmp_path)
    class_of.cache_clear()
    module.cache_clear()

    def make(kind: str = "gpu", version: str = "2.1", **more: Any) -> Reproducer:
        target = {"target": f"lib:{kind}", "framework": "lib", "device": kind, "version": version, "roles": ROLES, "environment": {}}
        return Reproducer.of({**target, "adapter": "somebodys.adapter:Mine", **more})

    yield make
    class_of.cache_clear()
    module.cache_clear()


def step(op: str, *args: Any, **kw: Any) -> dict[str, Any]:
    return {"id": "s9", "op": op, "args": list(args)} | ({"kw": kw} if kw else {})


def code(book: Reproducer, *steps: dict[str, Any]) -> str:
    return "\n".join(line.code for line in book.lines({"steps": list(steps)}))


REF, OTHER = {"ref": "s1"}, {"ref": "s2"}
HOST = {"device": "host", "spelled": "object"}
FULL = step("full", [2, 2], 3.0, {"dtype": "float32"}, {"device": "device"})
