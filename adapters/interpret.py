"""Run one neutral program through an adapter: program -> observation (worker side).

Each step leaves one fact: its value's metadata, an error, or why it was not asked. Nothing is read
that the program does not ask for: looking at metadata never waits, `observe` does.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Iterator

from .base import MISSING, WHOLE, Adapter, HostBuffer, NotModelled, NotOffered, positions
from .timing import time_loop
from .wire import MUTE, clean, flattened, numbers, plain, refs, said

_STOP = ("not_offered", "not_modelled", "adapter_failed")
_WITHOUT_VALUE = {"error", "skipped", *_STOP}
#: What Python says of code that asks for what isn't there: no framework refuses like that.
_ABSENT = (AttributeError, NameError, ImportError)
#: What it says of code that mistakes one value for another. An operation's refusal may come as one of these.
_MISTAKEN = (*_ABSENT, TypeError, ValueError, LookupError, ArithmeticError, AssertionError)
#: Here the adapter's own code is at work, and a framework has nothing to refuse but what failed before.
_LOOKING = ("observe", "same", "barrier")


class Malformed(ValueError):
    """A program that isn't made as the protocol says; the message says where."""


class AdapterFailed(Exception):
    """The adapter itself is wrong: nothing is learnt about the framework."""


def run(adapter: Adapter, program: dict[str, Any]) -> dict[str, Any]:
    """Return the observation of a program. Raises Malformed for what is none, and nothing for what the framework does."""
    environment = dict(os.environ)
    runner = _Runner(adapter)
    drain: dict[str, Any] | None = None
    try:
        adapter.prepare(frozenset(_operations(program.get("steps"))))
        with adapter.around():
            runner.steps(program.get("steps"))
            try:
                adapter.barrier(list(runner.values.values()))
            except Exception as error:
                drain = runner.failure(error, "barrier")
    finally:
        runner.values.clear()
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        try:
            adapter.reset()
        except Exception as error:
            # A device that is lost can't be put back either: what was seen until then is an observation all the same.
            if not (runner.poisoned or adapter.poisoned(error)):
                raise
            runner.poisoned = True
    observation: dict[str, Any] = {"steps": runner.facts}
    if drain is not None:
        observation["drain"] = drain
    if runner.spelled:
        observation["spelled"] = runner.spelled
    if runner.poisoned:
        observation["poisoned"] = True
    return observation


def _operations(steps: Any) -> Iterator[str]:
    """Yield the operations and scopes of steps; what is no step is refused when its turn comes."""
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            yield from (step[key] for key in ("op", "scope") if isinstance(step.get(key), str))
            yield from _operations(step.get("body"))


class _Runner:
    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.values: dict[str, Any] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        #: How devices that aren't there were written.
        self.spelled: dict[str, str] = {}
        #: Modules whose code is the adapter's, and not the framework's.
        self.own = {__name__, time_loop.__module__, plain.__module__, *(cls.__module__ for cls in type(adapter).__mro__)}
        self.poisoned = False
        self.ended = False

    def steps(self, steps: Any) -> None:
        """Run steps in order, until one of them ends the program. Raises Malformed."""
        if not isinstance(steps, list):
            raise Malformed(f"no steps but {steps!r:.80}")
        for step in steps:
            fact = self.step(step)
            if fact is None:
                continue
            self.facts[step["id"]] = fact
            ended = any(key in fact for key in _STOP) or ("error" in fact and not step.get("attempt"))
            if (ended and "when" not in step) or self.ended:
                self.ended = True  # of the scopes around it too
                return

    def step(self, step: Any) -> dict[str, Any] | None:
        """Run one step and return its fact; None when its condition does not hold. Raises Malformed."""
        if not isinstance(step, dict) or not isinstance(step.get("id"), str):
            raise Malformed(f"a step without an id: {step!r:.80}")
        if ("op" in step) == ("scope" in step):
            raise Malformed(f"step {step['id']!r:.80} has neither or both of op and scope")
        when = step.get("when")
        if when is not None and not any("error" in self.facts.get(w, {}) for w in when):
            return None
        missing = next((ref for ref in refs(step) if self.facts.get(ref, {}).keys() & _WITHOUT_VALUE), None)
        if missing is not None:
            return {"skipped": missing}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fact = self.scope(step) if "scope" in step else self.operation(step)
            except Malformed:
                raise  # nothing that the framework says
            except NotOffered as reason:
                fact = {"not_offered": said(reason)}
            except NotModelled as reason:
                fact = {"not_modelled": said(reason)}
            except AdapterFailed as reason:
                fact = {"adapter_failed": said(reason)}
            except Exception as error:
                fact = self.failure(error, step.get("op", ""))
        chatter = self.adapter.chatter
        seen = dict.fromkeys((type(w.message).__name__, said(w.message)) for w in caught)
        heard = [(category, text) for category, text in seen if not (chatter and chatter in text)]
        if heard:
            fact["warnings"] = [{"category": category, "text": text} for category, text in heard[:5]]
        return fact

    def failure(self, error: Exception, operation: str) -> dict[str, Any]:
        """Turn an exception into an error fact, into what a simulation cannot express, or into the adapter's own fault."""
        text = said(error)
        if not text.startswith(MUTE):  # adapters look at it
            meant = self.adapter.reinterpret(error)
            if isinstance(meant, NotModelled):
                return {"not_modelled": said(meant)}
            self.poisoned = self.poisoned or self.adapter.poisoned(error)
        kind = type(error)
        where = self.fault(error, operation)
        if where:
            return {"adapter_failed": clean(f"the adapter failed in {where}: {kind.__name__}: {text}")}
        names = [c.__name__ for c in kind.__mro__ if c not in (kind, Exception, BaseException, object)]
        return {"error": {"type": kind.__name__, "module": kind.__module__, "bases": names, "text": text}}

    def fault(self, error: Exception, operation: str) -> str:
        """Say where the adapter's own code failed; "" where the framework refused.

        A compiled framework has no frames, so that its errors come out of the adapter's too: there the type tells.
        """
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is None or last.tb_frame.f_globals.get("__name__") not in self.own or type(error).__module__ != "builtins":
            return ""
        # What fails in the call itself never reached the adapter's method: it takes other arguments.
        called = last.tb_frame.f_code is _Runner.operation.__code__
        mistakes = _MISTAKEN if called or operation in _LOOKING else _ABSENT
        return last.tb_frame.f_code.co_name if isinstance(error, mistakes) else ""

    def scope(self, step: dict[str, Any]) -> dict[str, Any]:
        """Run the body of a scoped region inside it."""
        args = [self.argument(a) for a in step.get("args", [])]
        with self.adapter.scope(step["scope"], *args):
            self.steps(step.get("body"))
        stopped = next((f for s in step["body"] for f in [self.facts.get(s["id"], {})] if f.keys() & set(_STOP)), None)
        if stopped:
            return {key: value for key, value in stopped.items() if key in _STOP}
        return {"value": {"kind": "none"}}

    def operation(self, step: dict[str, Any]) -> dict[str, Any]:
        """Run one operation: the interpreter's own, or the adapter's method of that name."""
        name = step["op"]
        own = getattr(self, "op_" + name, None)
        if own is None and not hasattr(Adapter, name):
            own = getattr(self.adapter, name, None)
        if own is None:
            raise NotOffered(f"{self.adapter.framework} offers no {name}")
        if name == "drop":
            return self.op_drop(step["args"][0]["ref"])
        if name == "name":
            return self.op_name(step)
        args = [self.argument(a) for a in step.get("args", [])]
        kw = {key: self.argument(a) for key, a in step.get("kw", {}).items()}
        result = own(*args, **kw)
        if isinstance(result, _Fact):
            return {"value": result.fact}
        self.values[step["id"]] = result
        return {"value": self.describe(result)}

    def argument(self, arg: Any) -> Any:
        """Turn an argument on the wire into a native one."""
        if isinstance(arg, list):
            return [self.argument(a) for a in arg]
        if not isinstance(arg, dict):
            return arg
        if "ref" in arg:
            return self.value(arg["ref"])
        if "device" in arg:
            return self.adapter.device(*self.place(arg))
        if "dtype" in arg:
            return self.adapter.dtype(arg["dtype"])
        if "data" in arg:
            return numbers(arg["data"], arg.get("imag"))
        raise Malformed(f"no argument: {arg!r:.80}")

    def value(self, ref: str) -> Any:
        """Return the value of an earlier step. Raises Malformed where it has none, or it was dropped."""
        if ref not in self.values:
            raise Malformed(f"step {ref!r:.80} has no value to refer to")
        return self.values[ref]

    def place(self, arg: dict[str, Any]) -> tuple[str, str]:
        """Return name and spelling of a device, and remember how one is written that isn't there."""
        name, spelled = arg["device"], arg.get("spelled", "object")
        if name in MISSING:
            self.spelled[f"{name}/{spelled}"] = self.adapter.expression(name, spelled)
        return name, spelled

    def describe(self, value: Any) -> dict[str, Any]:
        """Return facts about a result without waiting for it."""
        if value is None:
            return {"kind": "none"}
        if type(value) in (bool, int, float, complex, str):  # a subclass may be the framework's own scalar
            return {"kind": "python", "type": type(value).__name__, "value": plain(value)}
        try:
            facts = self.adapter.describe(value)
            if facts:
                facts = {"kind": "tensor", **facts, "role": self.adapter.role_of(facts["device"])}
        except Exception as error:
            if not self.fault(error, "observe"):
                raise  # asking may be what brings a late error up
            what = f"{type(error).__name__}: {said(error)}"
            raise AdapterFailed(f"the adapter can't describe a {type(value).__name__}: {what}") from error
        return facts or {"kind": "handle", "text": said(value)[:200]}

    # --- the interpreter's own operations -------------------------------------------------------

    def op_observe(self, value: Any) -> _Fact:
        """Read a value, waiting for it; a simulation without values says so."""
        facts = self.describe(value)
        if facts["kind"] == "handle" and (isinstance(value, list) or hasattr(value, "tolist")):
            flat = flattened(value if isinstance(value, list) else value.tolist())
            return _Fact({**facts, "shape": [len(flat)], "elements": [plain(item) for item in flat[:WHOLE]]})
        if facts["kind"] != "tensor":
            return _Fact(facts)
        try:
            flat = self.adapter.read(value)
        except NotModelled as reason:
            return _Fact({**facts, "readable": False, "why": said(reason)})
        where = positions(len(flat))
        facts["elements"] = [plain(flat[i]) for i in where]
        if len(where) < len(flat):
            facts["at"] = where
        return _Fact(facts)

    def op_barrier(self) -> _Fact:
        """Wait for everything that was queued."""
        self.adapter.barrier(list(self.values.values()))
        return _Fact({"kind": "none"})

    def op_drop(self, ref: str) -> dict[str, Any]:
        """Forget a value, so that its memory can be used again."""
        self.value(ref)
        del self.values[ref]
        return {"value": {"kind": "none"}}

    def op_same(self, left: Any, right: Any) -> _Fact:
        """Say whether two values are one object, share storage, or neither."""
        if left is right:
            return _Fact({"kind": "identity", "object": True, "storage": True})
        one, other = (self.adapter.identity_of(value) if self.adapter.describe(value) else None for value in (left, right))
        shared = None if one is None or other is None else one == other
        return _Fact({"kind": "identity", "object": False, "storage": shared})

    def op_compare(self, left: Any, right: Any) -> _Fact:
        """Compare two devices as values: equal in both orders, and hashed alike or not."""
        return _Fact(
            {
                "kind": "comparison",
                "equal": bool(left == right),
                "mirrored": bool(right == left),
                "hash": _hashed_alike(left, right),
                "texts": [said(left), said(right)],
            }
        )

    def op_name(self, step: dict[str, Any]) -> dict[str, Any]:
        """Name a device anew: the native handle as an opaque value."""
        device = step["args"][0]
        native = self.adapter.name_device(*self.place(device))
        self.values[step["id"]] = native
        return {"value": self.describe(native)}

    def op_buffer(self, values: list[Any], alignment: str, dtype: str = "float32") -> Any:
        """Make host memory outside the framework."""
        return HostBuffer(values, alignment, dtype)

    def op_write_buffer(self, buffer: HostBuffer, value: float) -> _Fact:
        """Write to host memory behind the framework's back."""
        buffer.write(value)
        return _Fact({"kind": "none"})

    def op_time(self, **question: Any) -> _Fact:
        """Time a chain of operations: returned against synchronised."""
        if self.adapter.untimed:
            raise NotModelled(self.adapter.untimed)
        return _Fact({"kind": "times", **time_loop(self.adapter, **question)})


class _Fact:
    """A result that is facts alone, not a value that later steps can use."""

    def __init__(self, fact: dict[str, Any]) -> None:
        self.fact = fact


def _hashed_alike(left: Any, right: Any) -> bool | None:
    """Say whether two values hash alike; None for what can't be hashed."""
    try:
        return hash(left) == hash(right)
    except TypeError:
        return None
