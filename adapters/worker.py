"""The worker's main loop: JSON lines over standard input and output (worker side).

`serve` is called by the boot code (see `adapters.process`) with private copies of the descriptors:
whatever the framework prints on standard output or error can't break the protocol, and the
worker ends when its input does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import traceback
from typing import Any

from .base import MISSING, Adapter, Unavailable, machine
from .interpret import clean, run

PROTOCOL = 1
#: The framework's adapter, when it is one of the suite's own.
ADAPTERS = {
    "torch": "adapters.torch:Torch",
    "jax": "adapters.jax:Jax",
    "numpy": "adapters.numpy:Numpy",
    "array-api-strict": "adapters.array_api_strict:ArrayApiStrict",
}


def load(path: str) -> type[Adapter]:
    """Return the adapter class behind `module:Class`."""
    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise Unavailable(f"{path} is not an adapter class")
    return found


def serve(incoming: io.BufferedReader, outgoing: io.FileIO) -> None:
    """Answer requests until `bye` or the end of input."""
    state = _State()
    for line in iter(incoming.readline, b""):
        request = json.loads(line)
        if request.get("type") == "bye":
            break
        reply = state.answer(request)
        reply["id"] = request.get("id")
        _write(outgoing, json.dumps(reply).encode() + b"\n")
    # A framework's own teardown may hang or crash; nothing is left to be said.
    os._exit(0)


def _write(outgoing: io.FileIO, data: bytes) -> None:
    while data:
        data = data[outgoing.write(data) or 0 :]


class _State:
    def __init__(self) -> None:
        self.adapter: type[Adapter] | None = None
        self.kinds: dict[str, Any] = {}
        self.instances: dict[str, Adapter] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if request.get("type") == "hello":
                return self.hello(request)
            if request.get("type") == "run":
                adapter = self.instance(request["device"], request.get("roles"))
                return {"type": "observation", "observation": run(adapter, request["program"])}
            if request.get("type") == "warm":
                self.warm(request["device"])
                return {"type": "warm"}
            return _refusal(f"unknown message type {request.get('type')!r}")
        except Unavailable as error:
            return _refusal(str(error))
        except Exception:
            return {"type": "error", "error": "the worker failed: " + clean(traceback.format_exc())}

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import the framework and say what is here."""
        framework = request["framework"]
        try:
            adapter = load(request.get("adapter") or ADAPTERS[framework])
            found = {name: os.environ[name] for name in adapter.variables if name in os.environ}
            adapter.start()
            identity = adapter.identity()
            self.adapter, self.kinds = adapter, adapter.kinds()
        except Exception as error:
            text = clean(str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}")
            missing = isinstance(error, ModuleNotFoundError) and (error.name or "").replace("_", "-") == framework
            return {"type": "unavailable", "missing": missing, "why": text}
        known = set(dir(Adapter))
        return {
            "type": "hello",
            "protocol": PROTOCOL,
            "framework": framework,
            **identity,
            "machine": machine(),
            "environment": found,
            "operations": sorted(name for name in dir(adapter) if name not in known and not name.startswith("_")),
            "dtypes": adapter.offered_dtypes(),
            "environments": adapter.environments,
            "devices": {
                kind: {"available": False, "why": roles}
                if isinstance(roles, str)
                else {"available": True, "roles": roles, "spelled": self.spelled(kind), "untimed": self.instance(kind).untimed}
                for kind, roles in self.kinds.items()
            },
        }

    def spelled(self, kind: str) -> dict[str, str]:
        """Return how devices that aren't there are written: only the framework can tell which those are."""
        found = {}
        for name in MISSING:
            for spelling in ("object", "string"):
                with contextlib.suppress(Exception):
                    found[f"{name}/{spelling}"] = self.instance(kind).expression(name, spelling)
        return found

    def instance(self, kind: str, given: dict[str, Any] | None = None) -> Adapter:
        if kind not in self.instances:
            # In an environment that hides its device a kind is still asked about, by the roles that it has elsewhere.
            roles = given or self.kinds.get(kind)
            if self.adapter is None or not isinstance(roles, dict):
                raise Unavailable(f"no device kind {kind!r} here")
            self.instances[kind] = self.adapter(kind, roles)
        return self.instances[kind]

    def warm(self, kind: str) -> None:
        """Do a simulation's slow first operation; what it can't do shows in the questions."""
        with contextlib.suppress(Exception):
            self.instance(kind).warm()


def _refusal(text: str) -> dict[str, Any]:
    return {"type": "error", "error": text}


if __name__ == "__main__":
    sys.exit("a worker is started by the suite, see adapters/PROTOCOL.md")
