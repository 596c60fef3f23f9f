"""The dummy's second version: its defects, and changes that no fault of the small framework makes.

It binds results to their device, multiplies in another precision, is a real device where the first was simulated, refuses with
an error of another class, spoils an operand when it refuses, or is a simulation that has no words for a difference.
`SECOND_MACHINE` makes it run on a machine of another class.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from adapters.base import NotModelled
from tests.dummy import Dummy
from tests.fake import Tensor

OWN = ("commits", "rounds", "measures", "renames", "spoils", "unmodels")
if MACHINE := os.environ.get("SECOND_MACHINE"):
    platform.machine = lambda: str(MACHINE)


class Second(Dummy):
    """Version 2.0."""

    @classmethod
    def identity(cls) -> dict[str, Any]:
        """Return the version."""
        return {"version": "2.0", "build": {}}

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return the dummy's kinds and its own."""
        found = super().kinds()
        real = {name: {**facts, "evidence": "measured"} for name, facts in found["accel"].items()}
        return {**found, **dict.fromkeys(OWN, found["accel"]), "measures": real}

    def __init__(self, kind: str, roles: dict[str, dict[str, str]]) -> None:
        """Start a framework of this kind."""
        super().__init__("accel" if kind in OWN else kind, roles)
        self._own = kind

    def describe(self, value: Any) -> dict[str, Any]:
        """Return what the first does, and whether a value is bound to its device."""
        found = super().describe(value)
        return {**found, "committed": self._own == "commits"} if found and self._own in ("accel", "commits") else found

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum, or refuse as this kind does."""
        try:
            return super().add(x, y)
        except Exception as error:
            if self._own == "renames":
                raise LookupError(str(error)) from error
            if self._own == "spoils":
                x.storage.cells, x.storage.constant = lambda _: 99.0, 99.0
            raise

    def sub(self, x: Any, y: Any) -> Any:
        """Return the difference, where it is modelled."""
        if self._own == "unmodels":
            raise NotModelled("this version says nothing of differences")
        return super().sub(x, y)

    def read(self, value: Any) -> Any:
        """Return the elements, of floats by half a percent off where it rounds."""
        found = super().read(value)
        rounds = self._own == "rounds" and isinstance(value, Tensor) and value.dtype.name == "float32"
        return [element * 1.005 for element in found] if rounds else found
