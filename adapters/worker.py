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
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from .base import MISSING, Adapter, Unavailable, machine
from .interpret import Malformed, run
from .wire import clean

PROTOCOL = 1
#: Message type -> what a request of it holds, beside its id.
_HOLDS: dict[str, dict[str, type]] = {"hello": {"framework": str}, "run": {"device": str, "program": dict}, "warm": {"device": str}}
#: So many deadlines a question may take before the worker ends by itself.
_OVERDUE = 2
#: The longest deadline that is watched, in seconds: a day.
_LONGEST = 86400.0
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
        request, why = understood(line)
        if request.get("type") == "bye":
            break
        if why:
            reply = _refusal(why)
        else:
            with _limited(request):
                reply = state.answer(request)
        reply["id"] = request.get("id")
        _write(outgoing, json.dumps(reply).encode() + b"\n")
    # A framework's own teardown may hang or crash; nothing is left to be said.
    os._exit(0)


def understood(line: bytes) -> tuple[dict[str, Any], str]:
    """Return a request, and why it is none; its id is None where that is what is wrong with it."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, clean(f"a line that is no JSON: {error}")
    if not isinstance(request, dict):
        return {}, "a line that is no JSON object"
    if type(request.get("id")) is not int or request["id"] < 0:
        return {**request, "id": None}, "a request without a whole number from 0 on as its id"
    return request, ""


@contextlib.contextmanager
def _limited(request: dict[str, Any]) -> Iterator[None]:
    """End this process when a question takes twice as long as anybody waits for its answer.

    Whoever asked would do it, but may be gone, or on another machine. The alarm is the system's, which ends the process
    whatever it does: a call that never gives the interpreter back can't keep a handler or a thread from it.
    """
    deadline = request.get("deadline")
    fits = isinstance(deadline, (int, float)) and 0 < deadline <= _LONGEST
    if fits and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _OVERDUE * float(deadline or 0))
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def _write(outgoing: io.FileIO, data: bytes) -> None:
    while data:
        data = data[outgoing.write(data) or 0 :]


class _State:
    def __init__(self) -> None:
        #: As it was found: an adapter may change it when it starts.
        self.environment = dict(os.environ)
        self.adapter: type[Adapter] | None = None
        self.kinds: dict[str, Any] = {}
        self.instances: dict[str, Adapter] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request.get("type")
        if not isinstance(kind, str) or kind not in _HOLDS:
            return _refusal(f"unknown message type {kind!r:.80}")
        for key, wanted in _HOLDS[kind].items():
            if not isinstance(request.get(key), wanted):
                return _refusal(f"{kind} with {request.get(key)!r:.80} as its {key}")
        try:
            if kind == "hello":
                return self.hello(request)
            if kind == "warm":
                self.warm(request["device"])
                return {"type": "warm"}
            adapter = self.instance(request["device"], request.get("roles"))
            return {"type": "observation", "observation": run(adapter, request["program"])}
        except (Unavailable, Malformed) as error:
            return _refusal(str(error))
        except Exception:
            return {"type": "error", "error": "the worker failed: " + clean(traceback.format_exc())}

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import the framework and say what is here."""
        framework = request["framework"]
        path = request.get("adapter") or ADAPTERS.get(framework)
        if path is None:
            return {"type": "unavailable", "missing": False, "why": f"no adapter for {framework!r:.80}; there are {', '.join(ADAPTERS)}"}
        try:
            adapter = load(path)
            found = {name: self.environment[name] for name in adapter.variables if name in self.environment}
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
                else {
                    "available": True, "roles": roles, "spelled": self.spelled(kind), "untimed": self.instance(kind).untimed,
                    "environments": self.own_environments(kind),
                }
                for kind, roles in self.kinds.items()
            },
        }

    def own_environments(self, kind: str) -> dict[str, dict[str, str]]:
        """Return a kind's own environments, without those that would undo what somebody has set."""
        own = self.adapter.environments_of.get(kind, {}) if self.adapter else {}
        return {name: wanted for name, wanted in own.items() if not self.environment.keys() & wanted.keys()}

    def spelled(self, kind: str) -> dict[str, str]:
        """Return how devices that aren't there are written: only the framework can tell which those are."""
        found = {}
        for name in MISSING:
            for spelling in ("object", "string"):
                with contextlib.suppress(Exception):
                    found[f"{name}/{spelling}"] = self.instance(kind).expression(name, spelling)
        return found

    def instance(self, kind: str, given: dict[str, Any] | None = None) -> Adapter:
        # In an environment that hides some of its devices a kind is still asked about, by the roles that it has elsewhere.
        if kind not in self.instances or given not in (None, self.instances[kind].roles):
            roles = given or self.kinds.get(kind)
            if self.adapter is None or not isinstance(roles, dict):
                raise Unavailable(f"no device kind {kind!r} here")
            self.instances[kind] = self.adapter(kind, roles)
        return self.instances[kind]

    def warm(self, kind: str) -> None:
        """Do a simulation's slow first operation; what it can't do shows in the questions."""
        adapter = self.instance(kind)
        with contextlib.suppress(Exception):
            adapter.warm()


def _refusal(text: str) -> dict[str, Any]:
    return {"type": "error", "error": text}


if __name__ == "__main__":
    sys.exit("a worker is started by the suite, see adapters/PROTOCOL.md")
