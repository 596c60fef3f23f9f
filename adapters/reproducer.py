"""Reproducers: a case as a complete script in a framework's own code, made of its adapter's phrases (controller side).

A script is for a fresh interpreter, and prints what the question looks at, by the names of the case's marks.
Where something can't be written the script says what, and why.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adapters.evaluate import YIELD, RefusedError
from adapters.known import known, parse
from adapters.loops import timed
from adapters.phrases import Phrases
from adapters.source import UnclearError, module
from adapters.targets import GROUPS
from adapters.wording import code, definition, indented, pasteable, sizes, written

#: Operands of a timed loop when nobody says which size was used.
SIZE = 1024
#: Operations whose result is no tensor of the framework: it is printed as it is.
PLAIN = frozenset((
    "array_equal", "item", "to_list", "to_numpy", "device_of", "parse_device", "clone_device", "ordinal", "accelerator_count", "name",
    "best_device",
))  # fmt: skip
#: Operations whose result is a module or a loader: what it keeps is printed, and not itself.
OPAQUE = frozenset(("linear", "linear_uncommitted", "holder", "move_module", "loader", "load", "loader_to"))
#: The interpreter's own operations: they give facts, host memory or a handle, and nothing to wait for.
_OWN = ("observe", "barrier", "drop", "same", "compare", "write_buffer", "time", "buffer", "name")
#: Steps whose code hangs on earlier ones, or says something of later ones.
_STATEFUL = frozenset(("buffer", "same", *OPAQUE))
_CALL = re.compile(r"\b(\w+)\(")


def shown(op: str, mark: str | None) -> bool:
    """Say whether a step's value is printed where it is made: the question's own, and what a module keeps."""
    own = mark == "result" and op not in ("observe", "same", "compare", "time", *OPAQUE)
    return own or (mark is not None and op == "member")


@dataclass(frozen=True)
class Line:
    """A step in native code; several lines where the framework needs them, a comment where it has none."""

    #: The step's id; "" for what only prints.
    step: str
    code: str
    #: Whether the code can be run.
    runs: bool = True


class Reproducer:
    """Writes programs for one target."""

    def __init__(self, phrases: Phrases) -> None:
        """Take the target's phrases."""
        self.phrases = phrases
        self._names: Mapping[str, str] = {}
        self._sizes: Mapping[str, int] = {}
        #: Steps that were written before: the cases of a target make the same operands again and again.
        self._kept: dict[tuple[str, ...], list[Line]] = {}
        #: Steps whose values are modules or loaders.
        self._opaque: set[str] = set()

    @property
    def target(self) -> Mapping[str, Any]:
        """Return the target as a record's header describes it."""
        return self.phrases.target

    @property
    def neutral(self) -> bool:
        """Say whether devices are called by their roles."""
        return self.phrases.neutral

    @classmethod
    def of(cls, target: Mapping[str, Any]) -> Reproducer:
        """Return what writes for a target as a record's header describes it. Raises UnclearError without its adapter's source."""
        return cls(Phrases(target))

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
        self._opaque = set()
        self._sizes = sizes(seen)
        told = written(seen, environment, self.phrases.target)
        if told != self.phrases.told:
            self.phrases.told, self._kept = told, {}
        lines = [line for step in program["steps"] for line in self._step(step)]
        # A case may look twice where only its expectations differ.
        return [line for n, line in enumerate(lines) if not n or not line.code.startswith("print(") or _looks(line) != _looks(lines[n - 1])]

    def script(
        self, program: Mapping[str, Any], *, title: str = "", environment: str | None = None, lines: Sequence[Line] | None = None
    ) -> str:
        """Return a complete script: environment, imports, the question step by step, and a wait at the end.

        `lines` are the program's, where somebody has them already.
        """
        lines = self.lines(program, environment=environment) if lines is None else lines
        body = [line.code for line in lines]
        live = [step["id"] for step in _walk(program["steps"]) if step.get("op", "drop") not in _OWN and "when" not in step]
        dropped = {step["args"][0]["ref"] for step in _walk(program["steps"]) if step.get("op") == "drop"}
        barrier = self._barrier([name for name in live if name not in dropped])
        if barrier and live:
            body += ["# wait for everything that was queued", barrier]
        text = self._around("\n".join(body))
        chosen = self.phrases.target.get("environment", {})
        variables = {**self._own_environment(), **chosen, **self.phrases.environment(environment)}
        before = [*(f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()), *self._before_import]
        head = [f"# {part}" for part in title.splitlines()]
        head += [f"# incomplete: {line.code.lstrip('# ').splitlines()[0]}" for line in lines if not line.runs][:1]
        head += ["import os", *before] if before else []
        head += [self.phrases.imports, *self._prelude(text, program)]
        return pasteable("\n".join([*head, "", text, ""]))

    def _own_environment(self) -> Mapping[str, str]:
        """Return the variables with which a worker for these devices is started."""
        groups = [] if self.phrases.neutral else GROUPS.get(self.phrases.framework, ())
        device = self.phrases.facts.get("kind")
        return {key: value for group in groups if device in group.devices for key, value in group.environment}

    @cached_property
    def _before_import(self) -> list[str]:
        """What the adapter does before it imports the framework: it sets variables."""
        found = self.phrases.cls.find("start")
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
                lines += code(self.phrases.inliner().statement(home, owner, statement)).splitlines()
            except UnclearError as reason:
                lines.append(f"# see {home.name}: start ({reason})")
        return []

    # --- steps ----------------------------------------------------------------------------------

    def _step(self, step: Mapping[str, Any]) -> Iterator[Line]:
        if "when" in step:
            return
        if "scope" in step or step["op"] in _STATEFUL:
            yield from self._written(step)
            return
        name = step["id"]
        key = json.dumps(step), self._names.get(name, ""), str(self._sizes.get(name, "")), str(self.phrases.values)
        if key not in self._kept:
            self._kept[key] = list(self._written(step))
        yield from self._kept[key]

    def _written(self, step: Mapping[str, Any]) -> Iterator[Line]:
        what = step.get("op") or step["scope"]
        try:
            if "scope" in step:
                args = [ast.Constant(step["scope"]), *(parse(self.phrases.argument(a)) for a in step.get("args", []))]
                entered = ast.unparse(self.phrases.inliner().method("scope", args, {}, []))
                inner = [line for s in step["body"] for line in self._step(s)]
                code = f"with {entered}:\n" + indented("\n".join(line.code for line in inner) or "pass")
                yield Line(step["id"], code, all(line.runs for line in inner))
            else:
                yield Line(step["id"], self._operation(step))
                if what in OPAQUE:
                    self._opaque.add(step["id"])
                elif shown(what, self._names.get(step["id"])):
                    yield Line("", self._result(step["op"], step["id"]))
        except UnclearError as reason:
            yield Line(step["id"], f"# {what}: see {self.phrases.where}; it can't be written as plain code ({reason})", False)
        except RefusedError as refusal:
            why = "the framework offers no such thing" if refusal.args[0] == "NotOffered" else "the simulation can't express it"
            yield Line(step["id"], f"# {what}: {why}: {' '.join(map(str, refusal.args[1:]))}", False)

    def _operation(self, step: Mapping[str, Any]) -> str:
        op, name = step["op"], step["id"]
        args = [self.phrases.argument(a) for a in step.get("args", [])]
        kw = {key: self.phrases.argument(a) for key, a in step.get("kw", {}).items()}
        match op:
            case "observe":
                return self._print(name, args[0])
            case "barrier":
                return self._barrier(list(args)) or "pass"
            case "drop":
                return f"del {args[0]}"
            case "same":
                if self._opaque & set(args):
                    return self._print(name, f"{args[0]} is {args[1]}")
                return self._same(name, *args)
            case "compare":
                left, right = args
                return self._print(name, f"{left} == {right}", f"{right} == {left}", f"hash({left}) == hash({right})")
            case "name":
                return f"{name} = {args[0]}"
            case "buffer":
                self.phrases.values = {f"{name}.dtype": known(parse(kw.get("dtype", args[2] if len(args) > 2 else "'float32'")))}
                return f"{name} = HostBuffer({', '.join([*args, *(f'{k}={v}' for k, v in kw.items())])})"
            case "write_buffer":
                return f"{args[0]}.write({args[1]})"
            case "time":
                return timed(self.phrases, self._barrier, step["kw"], self._sizes.get(name, SIZE))
        before, expression = self.phrases.phrase(op, args, kw, prefix=name)
        if re.fullmatch(rf"{name}_\w+", expression):
            # A value that got a name on the way: let it be the step's own.
            return re.sub(rf"\b{expression}\b", name, "\n".join(before))
        return "\n".join([*before, f"{name} = {expression}"])

    def _print(self, step: str, *shown: str) -> str:
        """Print expressions, by the name of the step's mark where it has one."""
        label = [repr(f"{self._names[step]}:")] if step in self._names else []
        return f"print({', '.join([*label, *shown])})"

    def _result(self, op: str, name: str) -> str:
        """Print a result without waiting for it, as the suite looks at it: where it is and of which dtype."""
        try:
            before, found = ([], name) if op in PLAIN else self.phrases.phrase("metadata", [name], {}, prefix="result")
        except (UnclearError, RefusedError):
            before, found = [], name
        tree = parse(found)
        shown = map(ast.unparse, tree.elts) if isinstance(tree, ast.Tuple) else [found]
        return "\n".join([*before, self._print(name, *shown)])

    def _same(self, step: str, left: str, right: str) -> str:
        try:
            before, one = self.phrases.phrase("identity_of", [left], {}, prefix="left")
            also, other = self.phrases.phrase("identity_of", [right], {}, prefix="right")
        except (UnclearError, RefusedError):
            return self._print(step, f"{left} is {right}")
        return "\n".join([*before, *also, self._print(step, f"{left} is {right}", f"{one} == {other}")])

    def _barrier(self, values: Sequence[str]) -> str:
        return self._wait.replace("__values__", f"[{', '.join(values)}]")

    @cached_property
    def _wait(self) -> str:
        """How this target waits for everything, with a place for the values."""
        try:
            before, expression = self.phrases.phrase("barrier", ["__values__"], {}, prefix="wait")
        except UnclearError as reason:
            return f"# then wait as {self.phrases.where} does ({reason})"
        return "\n".join(before if expression == "None" else [*before, expression])

    # --- what stands around ---------------------------------------------------------------------

    def _around(self, text: str) -> str:
        """Put a script's body into what surrounds a whole program of this target."""
        before, indent, after = self._surroundings
        return "\n".join([*before, indented(text, indent) if indent else text, *after])

    @cached_property
    def _surroundings(self) -> tuple[list[str], str, list[str]]:
        """Lines before a program, its indentation, and lines after it."""
        out: list[ast.stmt] = []
        try:
            self.phrases.inliner(prefix="around").method("around", [], {}, out)
        except (UnclearError, RefusedError) as reason:
            return [f"# inside what {self.phrases.where} puts around a program ({reason})"], "", []
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
            yield definition(module("adapters.base").classes["HostBuffer"])
        called = set(_CALL.findall(text))
        todo = [given for name, given in self.phrases.given.items() if name in called]
        done: set[str] = set()
        while todo:
            home, function = todo.pop()
            if function.name in done:
                continue
            done.add(function.name)
            written = definition(function)
            needs = {n.id for n in ast.walk(ast.parse(written)) if isinstance(n, ast.Name)}
            yield from (code(home.imports[n]) for n in sorted(needs & home.imports.keys()) if _absolute(home.imports[n]))
            yield from (f"class {word}(Exception): pass" for word in ("NotOffered", "NotModelled") if word in needs)
            yield from (f"{n} = {code(home.constants[n])}" for n in sorted(needs & home.constants.keys()))
            yield written
            todo += [(home, home.functions[name]) for name in sorted(needs & home.functions.keys())]


def _looks(line: Line) -> str:
    """Return what a line prints, without its label."""
    return re.sub(r"^print\('\w+:', ", "print(", line.code)


def _walk(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield step
        yield from _walk(step.get("body", []))


def _absolute(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) or (isinstance(statement, ast.ImportFrom) and statement.level == 0)
