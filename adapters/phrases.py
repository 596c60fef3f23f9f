"""The expressions of a framework's own code, with a case's arguments (controller side).

An adapter is a phrase book: each operation is a method that returns one native expression. Here it is
read (see `source`, `inline`) and never imported, so that what is shown is what ran, on a
machine where the framework need not be installed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from adapters.base import MISSING
from adapters.evaluate import RefusedError
from adapters.inline import Inliner
from adapters.known import imported, known, parse, spelling
from adapters.source import Class, Module, UnclearError, class_of
from adapters.wording import code, data, filled, nowhere, number, template
from adapters.worker import ADAPTERS


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
        self.cls = class_of(path, target.get("version", ""))
        #: The module that holds the adapter.
        self.where = path.partition(":")[0]
        self.target = target
        self.imports = str(_constant(self.cls, "imports", ""))
        #: Names that a device may be written with: no other means anything in a script.
        self._names = imported(self.imports).union(*([*home.classes, *home.imported] for home, _ in self.cls.bases))
        table: Mapping[str, str] | None = _constant(self.cls, "dtypes", None)
        self._dtypes = table or {}
        #: A table that is computed can't be read, which doesn't mean that a dtype is missing from it.
        self._dtypes_known = table is not None
        own: Mapping[str, Mapping[str, Mapping[str, str]]] = _constant(self.cls, "environments_of", {})
        self._environments: Mapping[str, Mapping[str, str]] = {
            **_constant(self.cls, "environments", {}), **own.get(target.get("device", ""), {}),
        }  # fmt: skip
        #: What is known of the adapter's `self`.
        self.facts = {**_attributes(self.cls), "roles": _plain_roles(target)}
        if not self.neutral:
            self.facts["kind"] = target["device"]
            self.facts.update(_set_at_start(self.cls, self.facts))
        #: How devices that aren't there are written: only the framework can tell which those are.
        self.told: Mapping[str, str] = target.get("spelled", {})
        #: What is known of a program's values: `s1.dtype` -> `float32`.
        self.values: dict[str, Any] = {}
        #: Methods and helpers that a program needs as functions, by name.
        self.given: dict[str, tuple[Module, ast.FunctionDef]] = {}
        self._devices: dict[tuple[str, str], str | Exception] = {}
        self._written: dict[tuple[object, ...], tuple[list[str], str]] = {}

    @classmethod
    def example(cls, framework: str, adapter: str | None = None, needs: Set[str] = frozenset()) -> Phrases:
        """Return the phrases of a target that the adapter names as an example, one with these roles where there is any.

        An adapter without examples gives those of no target, with devices called `host`, `accelerator`, `peer`, `alias`.
        """
        roles = {role: {"expression": role} for role in ("host", "accelerator", "peer", "alias")}
        neutral = cls({"framework": framework, "adapter": adapter, "roles": roles, "neutral": True})
        examples: Mapping[str, Mapping[str, str]] = _constant(neutral.cls, "examples", {})
        if not examples:
            return neutral
        kind, written = next(((kind, written) for kind, written in examples.items() if needs <= written.keys()), [*examples.items()][-1])
        roles = {role: {"expression": expression} for role, expression in written.items()}
        return cls({"target": f"{framework}:{kind}", "framework": framework, "adapter": adapter, "device": kind, "roles": roles})

    def environment(self, name: str | None) -> Mapping[str, str]:
        """Return the variables of an environment that a case asks for."""
        return self._environments.get(name, {}) if name else {}

    def inliner(self, *, lazy: bool = False, prefix: str = "v") -> Inliner:
        """Return what writes the adapter's methods out for this target."""
        return Inliner(self.cls, self.facts, self.device, self._dtypes, self.values, lazy=lazy, prefix=prefix)

    def device(self, name: str, spelled: str = "object") -> str:
        """Return how the framework writes a device. Raises RefusedError where it can't, UnclearError where that isn't known here."""
        if f"{name}/{spelled}" in self.told:
            return spelling(self.told[f"{name}/{spelled}"], self._names)
        key = (name, spelled)
        if key not in self._devices:
            try:
                text = self._spelled(name, spelled)
                self._devices[key] = text if self.neutral else spelling(text, self._names)
            except (UnclearError, RefusedError) as reason:
                self._devices[key] = reason
        found = self._devices[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _spelled(self, name: str, spelled: str) -> str:
        roles = self.facts["roles"]
        if name == "device":
            name = "accelerator" if "accelerator" in roles else "host"
        if self.neutral:
            if spelled == "object" and name in roles:
                return name
            raise UnclearError(f"{name} as {spelled}: it depends on the target")
        if name not in roles and name not in MISSING:
            raise UnclearError(f"there is no {name}")
        method = "missing" if name in MISSING else "spelling"
        try:
            return str(known(self.inliner(lazy=True).method(method, [ast.Constant(name), ast.Constant(spelled)], {}, [])))
        except UnclearError as reason:
            if name not in MISSING:
                raise
            raise UnclearError(f"only the framework can tell which device is {name}: name a target that was asked") from reason

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
        plain = template(self.cls, op, len(args), tuple(kw))
        if plain is not None:
            return [], filled(plain, [*args, *kw.values()])
        key = (op, *args, *kw.items())
        if key not in self._written:
            self._written[key] = self._write(op, args, kw)
        before, expression = self._written[key]
        return [line.replace("__step__", prefix) for line in before], expression.replace("__step__", prefix)

    def _write(self, op: str, args: Sequence[str], kw: Mapping[str, str]) -> tuple[list[str], str]:
        inliner = self.inliner(prefix="__step__")
        out: list[ast.stmt] = []
        found = inliner.method(op, [parse(a) for a in args], {key: parse(value) for key, value in kw.items()}, out)
        self.given.update(inliner.given)
        return [line for statement in out for line in code(statement).splitlines()], code(found)


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
