"""A program in a framework's own code: the expressions of its adapter, with a case's arguments (controller side).

An adapter is a phrase book: each operation is a method that returns one native expression. Here it is
read (see `source`, `inline`) and never imported, so that what is shown is what ran, on a
machine where the framework need not be installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adapters.evaluate import YIELD, RefusedError
from adapters.inline import Inliner
from adapters.known import known, parse
from adapters.source import Class, Module, UnclearError, class_of, module
from adapters.targets import GROUPS
from adapters.wording import code, data, definition, filled, indented, nowhere, number, template
from adapters.worker import ADAPTERS

_MISSING = ("absent", "out-of-range", "misspelt")
#: Operands of a timed loop when nobody says which size was used.
_SIZE = 1024


@dataclass(frozen=True)
class Line:
    """A step in native code; several lines where the framework needs them, a comment where it has none."""

    step: str
    code: str
    #: Whether the code can be run.
    runs: bool = True


class Phrases:
    """The phrase book of one target."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        """Take a target as a record's header describes it. Raises UnclearError when its adapter has no source here."""
        self.framework: str = target["framework"]
        #: Whether devices are called by their roles: the phrases of a framework, not of a target.
        self.neutral = bool(target.get("neutral"))
        path = target.get("adapter") or ADAPTERS.get(self.framework)
        if path is None:
            raise UnclearError(f"no adapter for {self.framework} is known here")
        self._cls = class_of(path, target.get("version", ""))
        self._where = path.partition(":")[0]
        self._target = target
        self.imports = str(_constant(self._cls, "imports", ""))
        table: Mapping[str, str] | None = _constant(self._cls, "dtypes", None)
        self._dtypes = table or {}
        #: A table that is computed can't be read, which doesn't mean that a dtype is missing from it.
        self._dtypes_known = table is not None
        self._environments: Mapping[str, Mapping[str, str]] = _constant(self._cls, "environments", {})
        self._facts = {**_attributes(self._cls), "roles": _plain_roles(target)}
        if not self.neutral:
            self._facts["kind"] = target["device"]
            self._facts.update(_set_at_start(self._cls, self._facts))
        self._values: dict[str, Any] = {}
        self._devices: dict[tuple[str, str], str | Exception] = {}
        self._written: dict[tuple[object, ...], tuple[list[str], str]] = {}
        self._given: dict[str, tuple[Module, ast.FunctionDef]] = {}

    @classmethod
    def of(cls, framework: str, adapter: str | None = None) -> Phrases:
        """Return the phrases of a framework without any target, its devices called `host`, `accelerator`, `peer`, `alias`."""
        roles = {role: {"expression": role} for role in ("host", "accelerator", "peer", "alias")}
        return cls({"framework": framework, "adapter": adapter, "roles": roles, "neutral": True})

    def _inliner(self, *, lazy: bool = False, prefix: str = "v") -> Inliner:
        return Inliner(self._cls, self._facts, self.device, self._dtypes, self._values, lazy=lazy, prefix=prefix)

    def device(self, name: str, spelled: str = "object") -> str:
        """Return how the framework writes a device. Raises RefusedError where it can't, UnclearError where that isn't known here."""
        key = (name, spelled)
        if key not in self._devices:
            try:
                self._devices[key] = self._spelled(name, spelled)
            except (UnclearError, RefusedError) as reason:
                self._devices[key] = reason
        found = self._devices[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _spelled(self, name: str, spelled: str) -> str:
        roles = self._facts["roles"]
        if name == "device":
            name = "accelerator" if "accelerator" in roles else "host"
        if self.neutral:
            if spelled == "object" and name in roles:
                return name
            raise UnclearError(f"{name} as {spelled}: it depends on the target")
        told: Mapping[str, str] = self._target.get("spelled", {})
        if f"{name}/{spelled}" in told:  # the worker knows what only the framework can tell: what isn't here
            return told[f"{name}/{spelled}"]
        if name not in roles and name not in _MISSING:
            raise UnclearError(f"there is no {name}")
        method = "missing" if name in _MISSING else "spelling"
        return str(known(self._inliner(lazy=True).method(method, [ast.Constant(name), ast.Constant(spelled)], {}, [])))

    # --- programs -------------------------------------------------------------------------------

    def lines(self, program: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> list[Line]:
        """Return a program's question in native code, without the probes that follow a refusal.

        `sizes` tells the operands' edge that a timed step used.
        """
        return [line for step in program["steps"] for line in self._step(step, sizes or {}, set())]

    def script(
        self, program: Mapping[str, Any], *, title: str = "", environment: str | None = None, sizes: Mapping[str, int] | None = None,
        lines: Sequence[Line] | None = None,
    ) -> str:  # fmt: skip
        """Return a complete script: environment, imports, the question step by step, and a wait at the end.

        `lines` are the program's, where somebody has them already.
        """
        lines = self.lines(program, sizes) if lines is None else lines
        body = [line.code for line in lines]
        live = [step["id"] for step in _walk(program["steps"]) if _keeps(step) and "when" not in step]
        dropped = {step["args"][0]["ref"] for step in _walk(program["steps"]) if step.get("op") == "drop"}
        barrier = self._barrier([name for name in live if name not in dropped])
        if barrier:
            body += ["# wait for everything that was queued", barrier]
        text = self._around("\n".join(body))
        variables = {**self._own_environment(), **self._target.get("environment", {}), **self.environment(environment)}
        before = [*(f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()), *self._before_import]
        head = [f"# {part}" for part in title.splitlines()] + (["import os", *before] if before else [])
        head += [self.imports, *self._prelude(text, program)]
        return "\n".join([*head, "", text, ""])

    def _own_environment(self) -> Mapping[str, str]:
        """Return the variables with which a worker for these devices is started."""
        groups = [] if self.neutral else GROUPS.get(self.framework, ())
        return {key: value for group in groups if self._target["device"] in group.devices for key, value in group.environment}

    @cached_property
    def _before_import(self) -> list[str]:
        """What the adapter does before it imports the framework: it sets variables."""
        found = self._cls.find("start")
        lines: list[str] = []
        if found is None or found[0].name == "adapters.base":
            return lines
        home, owner, function = found
        for statement in function.body:
            if ast.unparse(statement) == "super().start()":
                return lines
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            try:
                lines += code(self._inliner().statement(home, owner, statement)).splitlines()
            except UnclearError as reason:
                lines.append(f"# see {home.name}: start ({reason})")
        return []

    def environment(self, name: str | None) -> Mapping[str, str]:
        """Return the variables of an environment that a case asks for."""
        return self._environments.get(name, {}) if name else {}

    def _step(self, step: Mapping[str, Any], sizes: Mapping[str, int], outer: set[str]) -> Iterator[Line]:
        if "when" in step:
            return
        try:
            if "scope" in step:
                args = [ast.Constant(step["scope"]), *(parse(self.argument(a)) for a in step.get("args", []))]
                entered = ast.unparse(self._inliner().method("scope", args, {}, []))
                inner = [line for s in step["body"] for line in self._step(s, sizes, outer)]
                code = f"with {entered}:\n" + indented("\n".join(line.code for line in inner) or "pass")
                yield Line(step["id"], code, all(line.runs for line in inner))
            else:
                yield Line(step["id"], self._operation(step, sizes))
        except UnclearError as reason:
            what = step.get("op") or step["scope"]
            yield Line(step["id"], f"# {what}: see {self._where}; it can't be written as plain code ({reason})", False)
        except RefusedError as refusal:
            what = "the framework offers no such thing" if refusal.args[0] == "NotOffered" else "the simulation can't express it"
            yield Line(step["id"], f"# {step.get('op') or step['scope']}: {what}: {' '.join(map(str, refusal.args[1:]))}", False)

    def _operation(self, step: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
        op, name = step["op"], step["id"]
        args = [self.argument(a) for a in step.get("args", [])]
        kw = {key: self.argument(a) for key, a in step.get("kw", {}).items()}
        match op:
            case "observe":
                return f"print({args[0]})"
            case "barrier":
                return self._barrier(list(args)) or "pass"
            case "drop":
                return f"del {args[0]}"
            case "same":
                return self._same(*args)
            case "compare":
                return f"print({args[0]} == {args[1]}, {args[1]} == {args[0]}, hash({args[0]}) == hash({args[1]}))"
            case "name":
                return f"{name} = {args[0]}"
            case "buffer":
                self._values = {f"{name}.dtype": known(parse(kw.get("dtype", args[2] if len(args) > 2 else "'float32'")))}
                return f"{name} = HostBuffer({', '.join([*args, *(f'{k}={v}' for k, v in kw.items())])})"
            case "write_buffer":
                return f"{args[0]}.write({args[1]})"
            case "time":
                return self._timed(step["kw"], sizes.get(name, _SIZE))
        before, expression = self.phrase(op, args, kw, prefix=name)
        if re.fullmatch(rf"{name}_\w+", expression):
            # A value that got a name on the way: let it be the step's own.
            return re.sub(rf"\b{expression}\b", name, "\n".join(before))
        return "\n".join([*before, f"{name} = {expression}"])

    def _same(self, left: str, right: str) -> str:
        try:
            before, one = self.phrase("identity_of", [left], {}, prefix="left")
            also, other = self.phrase("identity_of", [right], {}, prefix="right")
        except (UnclearError, RefusedError):
            return f"print({left} is {right})"
        return "\n".join([*before, *also, f"print({left} is {right}, {one} == {other})"])

    def _barrier(self, values: Sequence[str]) -> str:
        return self._wait.replace("__values__", f"[{', '.join(values)}]")

    @cached_property
    def _wait(self) -> str:
        """How this target waits for everything, with a place for the values."""
        try:
            before, expression = self.phrase("barrier", ["__values__"], {}, prefix="wait")
        except UnclearError as reason:
            return f"# then wait as {self._where} does ({reason})"
        return "\n".join(before if expression == "None" else [*before, expression])

    def _timed(self, asked: Mapping[str, Any], size: int) -> str:
        device, dtype = self.argument(asked["device"]), self.argument(asked["dtype"])
        shape = f"({size}, {size})"
        value = f"1.0 / {size}" if asked["op"] == "matmul" else "0.5"
        made, left = self.phrase("full", [shape, value, dtype, device], {}, prefix="left")
        more, right = self.phrase("full", [shape, "3.0", dtype, device], {}, prefix="right")
        call, result = self.phrase(asked["op"], ["left", "value"], {}, prefix="call")
        look, corner = self.phrase("corner", ["value"], {}, prefix="corner")
        last, item = self.phrase("item", [corner], {}, prefix="item")
        read = [*look, *last, item, "read = time.perf_counter() - started"] if asked["end"] == "read" else []
        shown = "returned {returned:.4f} s, " + ("read {read:.4f} s, " if read else "") + "synchronised {synchronised:.4f} s"
        wait = self._barrier(["value"]).splitlines()
        loop = [
            "value = right", "started = time.perf_counter()", f"for _ in range({asked['chain']}):",
            *(f"    {line}" for line in [*call, f"value = {result}"]), "returned = time.perf_counter() - started", *read, *wait,
            "synchronised = time.perf_counter() - started", f"print(f'{shown}')",
        ]  # fmt: skip
        operands = [*made, f"left = {left}", *more, f"right = {right}", *self._barrier(["left", "right"]).splitlines()]
        return "\n".join([*operands, f"for _ in range({asked['rounds'] + 1}):", *(f"    {line}" for line in loop)])

    # --- phrases --------------------------------------------------------------------------------

    def argument(self, arg: Any) -> str:
        """Return an argument on the wire in native code. Raises UnclearError for a device that can't be named here."""
        if isinstance(arg, list):
            return f"[{', '.join(self.argument(a) for a in arg)}]"
        if not isinstance(arg, dict):
            return number(arg)
        if "ref" in arg:
            return str(arg["ref"])
        if "device" in arg:
            return self.device(arg["device"], arg.get("spelled", "object"))
        if "dtype" in arg:
            if not self._dtypes_known:
                raise UnclearError(f"how it writes {arg['dtype']} is computed")
            if arg["dtype"] not in self._dtypes:
                raise RefusedError("NotOffered", f"no dtype {arg['dtype']}")
            return self._dtypes[arg["dtype"]]
        if "slice" in arg:
            return f"slice({', '.join(map(repr, arg['slice']))})"
        return data(arg["data"], arg.get("imag"))

    def phrase(self, op: str, args: Sequence[str], kw: Mapping[str, str], *, prefix: str) -> tuple[list[str], str]:
        """Return the statements and the expression that a call of an operation comes to."""
        plain = template(self._cls, op, len(args), tuple(kw))
        if plain is not None:
            return [], filled(plain, [*args, *kw.values()])
        key = (op, *args, *kw.items())
        if key not in self._written:
            self._written[key] = self._write(op, args, kw)
        before, expression = self._written[key]
        return [line.replace("__step__", prefix) for line in before], expression.replace("__step__", prefix)

    def _write(self, op: str, args: Sequence[str], kw: Mapping[str, str]) -> tuple[list[str], str]:
        inliner = self._inliner(prefix="__step__")
        out: list[ast.stmt] = []
        found = inliner.method(op, [parse(a) for a in args], {key: parse(value) for key, value in kw.items()}, out)
        self._given.update(inliner.given)
        return [line for statement in out for line in code(statement).splitlines()], code(found)

    def _around(self, text: str) -> str:
        """Put a script's body into what surrounds a whole program of this target."""
        before, indent, after = self._surroundings
        return "\n".join([*before, indented(text, indent) if indent else text, *after])

    @cached_property
    def _surroundings(self) -> tuple[list[str], str, list[str]]:
        """Lines before a program, its indentation, and lines after it."""
        out: list[ast.stmt] = []
        try:
            self._inliner(prefix="around").method("around", [], {}, out)
        except (UnclearError, RefusedError) as reason:
            return [f"# inside what {self._where} puts around a program ({reason})"], "", []
        lines = "\n".join(code(statement) for statement in out).splitlines()
        at = next((n for n, line in enumerate(lines) if line.strip() == YIELD), None)
        if at is None:
            return lines, "", []
        return lines[:at], " " * (len(lines[at]) - len(lines[at].lstrip())), lines[at + 1 :]

    def _prelude(self, text: str, program: Mapping[str, Any]) -> Iterator[str]:
        """Yield imports and definitions that a script's body needs."""
        if any(step.get("op") == "time" for step in _walk(program["steps"])):
            yield "import time"
        if "HostBuffer(" in text:
            yield "\n" + definition(module("adapters.base").classes["HostBuffer"]) + "\n"
        todo = [self._given[name] for name in self._given if re.search(rf"\b{name}\(", text)]
        done: set[str] = set()
        while todo:
            home, function = todo.pop()
            if function.name in done:
                continue
            done.add(function.name)
            needs = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
            yield from (code(home.imports[n]) for n in sorted(needs & home.imports.keys()) if _absolute(home.imports[n]))
            yield from (f"class {word}(Exception): pass" for word in ("NotOffered", "NotModelled") if word in needs)
            yield from (f"{n} = {code(home.constants[n])}" for n in sorted(needs & home.constants.keys()))
            yield "\n" + definition(function) + "\n"
            todo += [(home, home.functions[name]) for name in sorted(needs & home.functions.keys())]


def _constant(cls: Class, name: str, default: Any) -> Any:
    expression = cls.attribute(name)
    try:
        return default if expression is None else known(expression)
    except UnclearError:
        return default


def _attributes(cls: Class) -> dict[str, Any]:
    """Return the class's attributes that are plain values."""
    names = {
        target.id
        for _, owner in cls.bases for node in owner.body if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) if isinstance(target, ast.Name)
    }  # fmt: skip
    missing = object()
    found = {name: _constant(cls, name, missing) for name in names}
    return {name: value for name, value in found.items() if value is not missing}


def _set_at_start(cls: Class, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that `__init__` sets to something that can be known, base classes first."""
    for home, owner in reversed(cls.bases):
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef) or node.name != "__init__" or home.name == "adapters.base":
                continue
            for statement in node.body:
                match statement:
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=value):
                        inliner = Inliner(cls, dict(facts), nowhere, lazy=True)
                        try:
                            seen = inliner.value(home, owner, value, {"kind": facts["kind"], "roles": facts["roles"]})
                        except (UnclearError, RefusedError):
                            continue
                        facts = {**facts, attr: seen}
                        yield attr, seen


def _plain_roles(target: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {name: dict(facts) for name, facts in target["roles"].items()}


def _walk(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield step
        yield from _walk(step.get("body", []))


def _keeps(step: Mapping[str, Any]) -> bool:
    return "op" in step and step["op"] not in ("observe", "barrier", "drop", "same", "compare", "write_buffer", "time", "buffer", "name")


def _absolute(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) or (isinstance(statement, ast.ImportFrom) and statement.level == 0)
