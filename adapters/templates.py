"""A program in the code of another language than Python, by the phrases that its worker says hello with (controller side).

A phrase is the native expression of an operation with places for its arguments, see PROTOCOL.md. Devices are
called by their roles, and named once: each naming may make another handle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adapters import compiled
from adapters.lane import HELLO
from adapters.process import NotStarted, Process
from adapters.reproducer import PLAIN, SIZE, Line, Reproducer, shown
from adapters.source import UnclearError
from adapters.targets import Spec
from adapters.wording import sizes, written

_PLACE = re.compile(r"\{(?:(name|rank|kind|dtype|plain) )?(\d+)(?: as (\d+))?\}")
#: What becomes of a phrase whose places are not for the arguments that there are.
_MISFITS = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_ROLES = ("host", "accelerator", "peer", "alias")


def book_of(target: Mapping[str, Any]) -> Reproducer | Templates:
    """Return what writes for a target as a record's header describes it. Raises UnclearError where there is nothing."""
    if target.get("phrases"):
        return Templates(target)
    if target["framework"] in compiled.CRATES and not target.get("adapter"):
        raise UnclearError("this record keeps none of its phrases")
    return Reproducer.of(target)


class Templates:
    """Writes programs for one target whose worker gave phrases."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        """Take a target as a record's header describes it."""
        self.target = target
        #: Whether devices are called by their roles.
        self.neutral = bool(target.get("neutral"))
        self._phrases: Mapping[str, str] = target["phrases"]
        self._roles: Mapping[str, Mapping[str, str]] = target.get("roles") or {}
        self._spelled: Mapping[str, str] = target.get("spelled") or {}
        self._names: Mapping[str, str] = {}
        self._sizes: Mapping[str, int] = {}
        #: Of the program that is written: the roles that it names, the dtype of each buffer, steps that are no tensors.
        self._used: list[str] = []
        self._buffers: Mapping[str, str] = {}
        self._plain: frozenset[str] = frozenset()

    @classmethod
    def example(cls, framework: str) -> Templates:
        """Return what writes for a framework whose worker is a program of its own, by asking it. Raises UnclearError."""
        why = compiled.missing(framework)
        if why:
            raise UnclearError(why)
        process = Process(Spec(framework, None, (str(compiled.program(framework)),)))
        try:
            hello = process.hello(HELLO)
        except NotStarted as error:
            raise UnclearError(str(error)) from error
        finally:
            process.end()
        roles = {role: {"expression": role} for role in _ROLES}
        return cls({"target": framework, "phrases": hello.get("phrases", {}), "roles": roles, "neutral": True})

    def lines(
        self, program: Mapping[str, Any], *, marks: Mapping[str, str] | None = None, environment: str | None = None,
        observation: Mapping[str, Any] | None = None,
    ) -> list[Line]:  # fmt: skip
        """Return a program's question in native code, without the probes that follow a refusal.

        `marks` are the case's names for steps. An `observation` tells the sizes that timed steps used, and
        how devices were written that aren't there, which an environment that hides some may change.
        """
        seen = observation or {}
        self._names = {step: name for name, step in (marks or {}).items()}
        self._sizes = sizes(seen)
        self._spelled = written(seen, environment, self.target)
        steps = list(_asked(program["steps"]))
        self._used = self._roles_of(steps)
        self._buffers = {step["id"]: _buffer(step) for step in steps if step.get("op") == "buffer"}
        self._plain = frozenset(step["id"] for step in steps if step.get("op") in PLAIN)
        return [line for step in steps for line in self._lines(step)]

    def script(
        self, program: Mapping[str, Any], *, title: str = "", environment: str | None = None, lines: Sequence[Line] | None = None
    ) -> str:
        """Return a complete program: its devices, the question step by step, and a wait at the end."""
        lines = self.lines(program, environment=environment) if lines is None else lines
        used = self._roles_of(_asked(program["steps"]))
        here = [] if self.neutral else [role for role in used if role in self._roles]
        devices = [self._around("let", [role, self._roles[role]["expression"]]) for role in here]
        waits = [self._around("barrier", [role]) for role in used if role != "host" and "barrier" in self._phrases]
        body = "\n".join([*devices, *(line.code for line in lines), *waits])
        variables = [f"{name}={value}" for name, value in (self.target.get("environment") or {}).items()]
        head = [*title.splitlines(), *variables, *self._phrases.get(f"environment/{environment}", "").splitlines()]
        head += [f"incomplete: {line.code.removeprefix(self._comment(''))}" for line in lines if not line.runs][:1]
        frame = self._phrases.get("script", "{0}")
        indent = re.search(r"^([ \t]*)\{0\}", frame, re.M)
        body = body.replace("\n", "\n" + (indent[1] if indent else ""))
        return "\n".join([*(self._comment(text) for text in head), frame.replace("{0}", body), ""])

    def _roles_of(self, steps: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the roles whose devices a program names once, at its head."""
        found = {self._role(arg) for step in steps for arg in _devices(step)}
        return [role for role in _ROLES if role in found]

    # --- steps ----------------------------------------------------------------------------------

    def _lines(self, step: Mapping[str, Any]) -> Iterator[Line]:
        what = step.get("op") or f"scope {step['scope']}"
        try:
            if what == "time":
                yield Line(step["id"], self._timed(step["kw"], self._sizes.get(step["id"], SIZE)))
                return
            yield Line(step["id"], self._step(step))
            how = "show" if what in PLAIN else "metadata"
            if how in self._phrases and shown(what, self._names.get(step["id"])):
                yield Line("", self._put(how, [{"ref": step["id"]}], step["id"]))
        except UnclearError as reason:
            yield Line(step["id"], self._comment(f"{what}: {reason}"), False)

    def _step(self, step: Mapping[str, Any]) -> str:
        op, args = step.get("op", ""), step.get("args", [])
        if op == "buffer":
            args = [*args[:2], {"dtype": _buffer(step)}]
        if op == "name":
            role = self._role(args[0])
            expression = self._roles[role]["expression"] if role in self._roles else self._argument(args[0])
            return self._filled("let", [step["id"], expression])
        if op in ("observe", "drop", "same", "compare"):
            # What is no tensor may have no other way to be printed.
            plain = op == "observe" and args[0].get("ref") in self._plain and "show" in self._phrases
            return self._put("show" if plain else op, args, step["id"])
        if op == "write_buffer":
            return self._put(op, args)
        if op == "barrier":
            there = [role for role in self._used if role in ("accelerator", "peer") and role in self._roles]
            return "\n".join(self._filled("barrier", [role]) for role in there) or self._comment("nothing to wait for")
        return self._filled("let", [step["id"], self._expression(op, args)])

    def _timed(self, asked: Mapping[str, Any], size: int) -> str:
        """Return a loop that is timed: the operands, the calls, and where a value is read before the wait, that."""
        if asked["op"] == "to_async":
            return self._moved(asked, size)
        square = [[size, size], 2.0 / size if asked["op"] == "matmul" else 0.5, asked["dtype"], asked["device"]]
        made = {"left": self._expression("full", square), "right": self._expression("full", [square[0], 3.0, *square[2:]])}
        corner = self._expression("corner", [{"ref": "left" if asked["end"] == "read-other" else "value"}])
        if asked["end"] == "read-other":
            made["other"] = corner
        read = self._put("item", [{"ref": "other"}]) if "other" in made else self._filled("item", [corner])
        operands = "\n".join(self._filled("let", [name, expression]) for name, expression in made.items())
        call = self._expression(asked["op"], [{"ref": "left"}, {"ref": "value"}])
        wait = self._filled("barrier", [self._role(asked["device"])])
        values = [operands, str(asked["chain"]), str(asked["rounds"] + 1), call, wait, read]
        return self._filled("timed" if asked["end"] == "barrier" else "timed/read", values)

    def _moved(self, asked: Mapping[str, Any], size: int) -> str:
        """Return a loop of moves: what is moved, and the moves."""
        left = {"ref": "left"}
        operands = [self._expression("full", [[size, size], 0.5, asked["dtype"], asked["source"]])]
        if asked["memory"] != "device":
            operands.append(self._expression("to_memory", [left, asked["memory"]]))
        call, wait = self._expression(asked["op"], [left, asked["device"]]), self._filled("barrier", [self._role(asked["device"])])
        made = "\n".join(self._filled("let", ["left", expression]) for expression in operands)
        return self._filled("timed/moved", [made, str(asked["chain"]), str(asked["rounds"] + 1), call, wait])

    def _expression(self, op: str, args: list[Any]) -> str:
        """Return an operation's phrase with arguments in its places: the one for arguments like these, where there is one."""
        kinds = (f"{op}/{kind}" for n, arg in enumerate(args) if (kind := _form(n, arg)))
        return self._put(next((kind for kind in kinds if kind in self._phrases), op), args)

    def _put(self, name: str, args: Sequence[Any], step: str = "") -> str:
        """Return a phrase with arguments in its places, and with the name of the step's mark in the last one."""
        if name not in self._phrases:
            raise UnclearError("there is no phrase for it")
        label = f"{self._names[step]}: " if step in self._names else ""

        def put(place: re.Match[str]) -> str:
            what, at, dtype = place[1], int(place[2]), place[3]
            if step and at == len(args):
                return label
            if at >= len(args) or (dtype is not None and int(dtype) >= len(args)):
                raise UnclearError(f"it has no argument {at}")
            if what == "name":
                return str(args[at]["ref"])
            if what == "rank":
                return str(_rank(args[at]))
            if what == "plain":
                return self._number(args[at], "bool" if isinstance(args[at], bool) else "int" if isinstance(args[at], int) else "float")
            if what in ("kind", "dtype"):
                name = self._buffers.get(args[at].get("ref", "")) or _dtype(args[at])
                return self._filled(f"kind/{name}" if what == "kind" else name, [])
            return self._argument(args[at], None if dtype is None else _dtype(args[int(dtype)]))

        try:
            return _PLACE.sub(put, self._phrases[name])
        except _MISFITS as error:
            raise UnclearError(f"its phrase has places for other arguments: {self._phrases[name]!r:.200}") from error

    def _around(self, name: str, values: Sequence[str]) -> str:
        """Return a phrase that stands around the question, or why there is none."""
        try:
            return self._filled(name, values)
        except UnclearError as reason:
            return self._comment(f"{name}: {reason}")

    def _filled(self, name: str, values: Sequence[str]) -> str:
        if name not in self._phrases:
            raise UnclearError("there is no phrase for it")
        try:
            return _PLACE.sub(lambda place: values[int(place[2])], self._phrases[name])
        except _MISFITS as error:
            raise UnclearError(f"its phrase has places for other arguments: {self._phrases[name]!r:.200}") from error

    def _comment(self, text: str) -> str:
        return self._phrases.get("comment", "# {0}").replace("{0}", text)

    # --- arguments ------------------------------------------------------------------------------

    def _role(self, arg: Any) -> str:
        name = str(arg["device"]) if isinstance(arg, Mapping) and "device" in arg else ""
        return ("accelerator" if "accelerator" in self._roles else "host") if name == "device" else name

    def _argument(self, arg: Any, dtype: str | None = None) -> str:
        if isinstance(arg, list):
            items = ", ".join(self._argument(item) for item in arg)
            return self._phrases.get("list/1" if len(arg) == 1 else "list", "[{0}]").replace("{0}", items)
        if not isinstance(arg, Mapping):
            return self._number(arg, dtype)
        if "ref" in arg:
            return self._phrases.get("value", "{0}").replace("{0}", str(arg["ref"]))
        if "device" in arg:
            role, spelled = self._role(arg), arg.get("spelled", "object")
            if role in self._roles and spelled == "object":
                return role
            if f"{role}/{spelled}" in self._spelled:
                return self._spelled[f"{role}/{spelled}"]
            raise UnclearError(f"{role} as {spelled} can't be written here")
        if "dtype" in arg:
            if arg["dtype"] not in self._phrases:
                raise UnclearError(f"there is no dtype {arg['dtype']}")
            return self._phrases[arg["dtype"]]
        if arg.get("imag") is not None:
            raise UnclearError("complex numbers")
        return self._data(arg["data"], dtype)

    def _data(self, values: Any, dtype: str | None) -> str:
        if not isinstance(values, list):
            return self._number(values, dtype)
        items = [self._data(value, dtype) for value in values]
        if not items and "repeat" in self._phrases:
            # Of what there is none has a type all the same.
            return self._filled("repeat", [self._number(0.0, dtype), "0"])
        if len(items) > 8 and len(set(items)) == 1 and "repeat" in self._phrases:
            return self._filled("repeat", [items[0], str(len(items))])
        return f"[{', '.join(items)}]"

    def _number(self, value: Any, dtype: str | None) -> str:
        if isinstance(value, bool) and dtype in (None, "bool"):
            return str(value).lower()
        if isinstance(value, str):
            raise UnclearError(f"{value} is no number that is written everywhere")
        whole = dtype is not None and dtype.startswith(("int", "uint"))
        text = repr(value if dtype is None else int(value) if whole else float(value))
        return self._phrases.get(f"number/{dtype}", "{0}").replace("{0}", text)


def _form(at: int, arg: Any) -> str:
    """Return what tells arguments apart for which an operation has phrases of their own; "" for all others."""
    if isinstance(arg, str):
        return arg
    if isinstance(arg, int | float):
        return str(at)
    if isinstance(arg, Mapping) and "data" in arg:
        return "" if isinstance(arg["data"], list) else "0-dim"
    return str(arg.get("dtype", "")) if isinstance(arg, Mapping) else ""


def _buffer(step: Mapping[str, Any]) -> str:
    """Return the dtype of host memory."""
    args = step["args"]
    return str(args[2]) if len(args) > 2 else "float32"


def _rank(arg: Any) -> int:
    """Return the rank of a tensor that is made of nested lists, or of a shape."""
    if not isinstance(arg, Mapping):
        return len(arg)
    rank, values = 0, arg["data"]
    while isinstance(values, list):
        rank, values = rank + 1, values[0] if values else None
    return rank


def _dtype(arg: Any) -> str:
    """Return a dtype, or the widest one of plain numbers like these."""
    if "dtype" in arg:
        return str(arg["dtype"])
    values = arg["data"]
    while isinstance(values, list) and values:
        values = values[0]
    return "bool" if isinstance(values, bool) else "int64" if isinstance(values, int) else "float64"


def _asked(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the steps of the question, those inside scopes after their scope."""
    for step in steps:
        if "when" not in step:
            yield step
            yield from _asked(step.get("body", []))


def _devices(step: Mapping[str, Any]) -> Iterator[Any]:
    if step.get("op") == "name":
        return
    for arg in [*step.get("args", []), *step.get("kw", {}).values()]:
        if isinstance(arg, Mapping) and "device" in arg:
            yield arg
