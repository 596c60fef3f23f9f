"""Write a method of an adapter out as plain code for given arguments (controller side, no framework).

An adapter's methods are read as syntax trees and evaluated as far as they can be without the
framework: tests of the device kind are decided, loops over roles unrolled, helpers put in where they
are called. What is left is the framework's own code.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.evaluate import Body, Expression
from adapters.known import known, literal
from adapters.source import Class, Module, UnclearError


@dataclass
class Inliner:
    """Writes methods out for one target."""

    cls: Class
    #: What is known of `self`: `kind`, `roles`, and what the class says.
    facts: Mapping[str, Any]
    #: What `self.device(role, spelling)` stands for.
    device: Callable[[str, str], str]
    #: Dtype name -> what `self.dtype(…)` stands for.
    dtypes: Mapping[str, str] = field(default_factory=dict)
    #: What is known of other values: `s1.dtype` -> `float32`.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: Methods and helpers that can't be written out and are given as functions, by name.
    given: dict[str, tuple[Module, ast.FunctionDef]] = field(default_factory=dict)
    #: Keep intermediate values as expressions instead of variables.
    lazy: bool = False
    #: What variables made on the way are called.
    prefix: str = "v"
    #: Functions that are being written out.
    inside: list[ast.FunctionDef] = field(default_factory=list)

    def method(self, name: str, args: Sequence[ast.expr], kw: Mapping[str, ast.expr], out: list[ast.stmt]) -> ast.expr:
        """Return what a call of a method comes to; statements that go before it are added to `out`."""
        found = self.cls.find(name)
        if found is None:
            raise UnclearError(f"no method {name}")
        home, owner, function = found
        return self.call(home, owner, function, args, kw, out)

    def value(self, home: Module, owner: ast.ClassDef, node: ast.expr, given: Mapping[str, Any]) -> Any:
        """Return the value of an expression in a method for given arguments. Raises UnclearError."""
        env = {name: literal(item) for name, item in given.items()}
        return known(Body(self, home, owner, []).expression(node, env))

    def statement(self, home: Module, owner: ast.ClassDef, node: ast.stmt) -> ast.stmt:
        """Return a statement of a method with what is known put in. Raises UnclearError when that isn't all."""
        out: list[ast.stmt] = []
        changed: ast.stmt = Expression(Body(self, home, owner, out), {}).visit(copy.deepcopy(node))
        if out:
            raise UnclearError(f"{home.name}, line {node.lineno}")
        return changed

    def call(
        self, home: Module, owner: ast.ClassDef | None, function: ast.FunctionDef, args: Sequence[ast.expr],
        kw: Mapping[str, ast.expr], out: list[ast.stmt],
    ) -> ast.expr:  # fmt: skip
        """Write a function out for its arguments; give it as it is where that can't be."""
        if function in self.inside:
            raise UnclearError(f"{home.name}: {function.name} calls itself")
        statements: list[ast.stmt] = []
        self.inside.append(function)
        try:
            env = _bind(function, args, kw, method=owner is not None)
            found = Body(self, home, owner, statements).run(function.body, env)
        except UnclearError:
            self.given[function.name] = home, self._plain(home, owner, function)
            return ast.Call(ast.Name(function.name, ast.Load()), list(args), [ast.keyword(k, v) for k, v in kw.items()])
        finally:
            self.inside.pop()
        out += statements
        return found if found is not None else ast.Constant(None)

    def _plain(self, home: Module, owner: ast.ClassDef | None, function: ast.FunctionDef) -> ast.FunctionDef:
        """Return a function with what is known of `self` put in. Raises UnclearError when that isn't all."""
        if not _mentions_self(function):
            return function
        out: list[ast.stmt] = []
        changed: ast.FunctionDef = Expression(Body(self, home, owner, out), {}).visit(copy.deepcopy(function))
        if out or _mentions_self(changed):
            raise UnclearError(f"{home.name}, line {function.lineno}")
        return changed

    def variable(self, name: str) -> str:
        """Return a name for a value on the way."""
        return f"{self.prefix}_{name}"


def _mentions_self(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Name) and node.id in ("self", "cls") for node in ast.walk(function))


def _bind(function: ast.FunctionDef, args: Sequence[ast.expr], kw: Mapping[str, ast.expr], *, method: bool) -> dict[str, ast.expr]:
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]][1 if method else 0 :]
    env = dict(zip(names, args, strict=False))
    if len(args) > len(names):
        if function.args.vararg is None:
            raise UnclearError(f"{function.name} takes {len(names)} arguments")
        env[function.args.vararg.arg] = ast.Tuple(list(args[len(names) :]), ast.Load())
    elif function.args.vararg is not None:
        env[function.args.vararg.arg] = ast.Tuple([], ast.Load())
    env.update(kw)
    defaults = function.args.defaults
    for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        env.setdefault(name, default)
    for a, keyword_default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if keyword_default is not None:
            env.setdefault(a.arg, keyword_default)
    return env
