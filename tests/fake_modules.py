"""The modules of the small framework: what keeps a value, and what builds layers of a weight."""

from __future__ import annotations

from typing import Any

from tests.fake import FAULTS, Device, Tensor
from tests.fake_operations import Operations


class Module:
    """What keeps one value: as a layer's weight, a registered parameter or buffer, in a plain list, as a plain attribute."""

    def __init__(self, kind: str, kept: Tensor) -> None:
        """Take how the value is kept, and the value."""
        self.kind = kind
        self.kept = kept

    def __str__(self) -> str:
        return "a module"


class Loader:
    """What builds modules of a weight, on its own device."""

    def __init__(self, weight: Tensor, device: Device) -> None:
        """Take the weight and the device."""
        self.weight = weight
        self.device = device

    def __str__(self) -> str:
        return "a loader"


def member(t: Operations, module: Module, kind: str) -> Tensor:
    """Return what a module keeps."""
    assert kind == module.kind
    kept = module.kept
    return t.view("member", kept, kept.shape, kept.offset, kept.strides)


def moved(t: Operations, module: Module, device: Any) -> Module:
    """Move what was registered with a module, in place, and return the module."""
    t.plan("move_module", [], t.use(device))
    kept = module.kept
    if module.kind in ("weight", "parameter", "buffer") or "modules-take-everything" in FAULTS:
        kept = t.move("move_module", kept, device)
    if "modules-move-as-copies" in FAULTS:
        return Module(module.kind, kept)
    module.kept = kept
    return Module(module.kind, kept) if "modules-come-back-anew" in FAULTS else module


def load(t: Operations, loader: Loader) -> Module:
    """Build a layer of a loader's weight, on the loader's device."""
    return Module("weight", t.move("load", loader.weight, loader.device))


def redirected(t: Operations, loader: Loader, device: Any) -> Loader:
    """Return a loader with another device; the weight goes there at once."""
    return Loader(t.move("loader_to", loader.weight, device), device)
