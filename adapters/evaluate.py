"""Evaluate the statements and expressions of an adapter's method as far as they can be without the framework (controller side)."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from adapters.known import as_expression, bound, folded, known, literal, parse
from adapters.source import Module, UnclearError

if TYPE_CHECKING:
    from adapters.inline import Inliner

#: Stands in generated code where a context manager's method yields.
YIELD = "__yield__"
#: Exceptions by which an adapter itself says that there is nothing to ask.
_WORDS = ("NotOffered", "NotModelled")


class RefusedError(Exception):
    """The adapter refuses by itself; `args` are NotOffered or NotModelled, and why."""


class Body:
    """The statements of one function."""

    def __init__(self, inliner: Inliner, home: Module, owner: ast.ClassDef | None, out: list[ast.stmt]) -> None:
        """Take whose statements they are, and the list that is written to."""
        self.inliner = inliner
        self.home = home
        self.owner = owner
        self.out = out

    def run(self, body: list[ast.stmt], env: dict[str, ast.expr]) -> ast.expr | None:
        """Write statements out; return what the function returns, None when it doesn't."""
        for statement in body:
            found = self.statement(statement, env)
            if found is not None:
                return found
        return None

    def statement(self, node: ast.stmt, env: dict[str, ast.expr]) -> ast.expr | None:
        """Write one statement out; return what the function returns where it ends here. Raises UnclearError."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return None
            case ast.Expr(value=ast.Yield()):
                self.out.append(ast.Expr(ast.Name(YIELD, ast.Load())))
            case ast.Expr(value=value):
                found = self.expression(value, env)
                if not isinstance(found, ast.Constant):
                    self.out.append(ast.Expr(found))
            case ast.Return(value=value):
                return self.expression(value, env) if value is not None else ast.Constant(None)
            case ast.If(test=test, body=body, orelse=orelse):
                kept, self.out = self.out, []
                decided = self.expression(test, env)
                before, self.out = self.out, kept
                return self.branch(decided, before, body, orelse, env)
            case ast.For(target=ast.Name(id=name), iter=items, body=body):
                for item in known(self.expression(items, env)):
                    self.run(body, env | {name: literal(item)})
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                env[name] = self.keep(name, self.expression(value, env))
            case ast.Assign(targets=[target], value=value):
                self.out.append(ast.Assign([self.expression(target, env)], self.expression(value, env)))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                # The framework decides whether this changes the value in place: the caller's name isn't bound anew.
                chosen = self.inliner.variable(name)
                self.out.append(ast.Assign([ast.Name(chosen, ast.Store())], self.expression(ast.Name(name, ast.Load()), env)))
                self.out.append(ast.AugAssign(ast.Name(chosen, ast.Store()), op, self.expression(value, env)))
                env[name] = ast.Name(chosen, ast.Load())
            case ast.Import() | ast.ImportFrom():
                self.out.append(node)
            case ast.With(items=items, body=body):
                return self.block(items, body, env)
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=args)) if name in _WORDS:
                why = [self.expression(a, env) for a in args]
                raise RefusedError(name, *(a.value if isinstance(a, ast.Constant) else ast.unparse(a) for a in why))
            case _:
                raise UnclearError(f"{self.home.name}, line {node.lineno}")
        return None

    def branch(
        self, test: ast.expr, before: list[ast.stmt], body: list[ast.stmt], orelse: list[ast.stmt], env: dict[str, ast.expr]
    ) -> ast.expr | None:
        """Go the way that a test decides; `before` is what it needs, of no more use once it is decided."""
        try:
            chosen = body if known(test) else orelse
        except UnclearError:
            # An adapter that first looks whether there is anything to ask: there was, and it isn't the framework's code.
            if len(body) != 1 or not isinstance(body[0], ast.Raise) or not any(word in ast.unparse(body[0]) for word in _WORDS):
                self.out += before
                self.undecided(test, body, orelse, env)
                return None
            chosen = orelse
        return self.run(chosen, env)

    def undecided(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], env: dict[str, ast.expr]) -> None:
        """Write a test out that only the framework can decide, where both ways go on the same."""
        ways: list[list[ast.stmt]] = []
        for way in (body, orelse):
            kept, self.out = self.out, []
            inner = dict(env)
            ended = self.run(way, inner)
            ways.append(self.out)
            self.out = kept
            if ended is not None or inner.keys() != env.keys() or any(inner[name] is not env[name] for name in env):
                raise UnclearError(f"{self.home.name}: what follows depends on {ast.unparse(test)}")
        self.out.append(ast.If(test, ways[0] or [ast.Pass()], ways[1]))

    def block(self, items: list[ast.withitem], body: list[ast.stmt], env: dict[str, ast.expr]) -> ast.expr | None:
        """Write a `with` block out; what is returned inside gets a name that is known after it."""
        if any("suppress" in ast.unparse(item.context_expr) for item in items):
            raise UnclearError("what happens after an error that is suppressed")
        entered = [ast.withitem(self.expression(i.context_expr, env), i.optional_vars) for i in items]
        outer, self.out = self.out, []
        found = self.run(body, env)
        if found is not None and not isinstance(found, ast.Constant):
            name = self.inliner.variable("result")
            self.out.append(ast.Assign([ast.Name(name, ast.Store())], found))
            found = ast.Name(name, ast.Load())
        inner, self.out = self.out, outer
        self.out.append(ast.With(entered, inner or [ast.Pass()]))
        return found

    def keep(self, name: str, value: ast.expr) -> ast.expr:
        """Return how to speak of an intermediate value later on."""
        if self.inliner.lazy or not any(isinstance(n, ast.Call) for n in ast.walk(value)):
            return value
        chosen = self.inliner.variable(name)
        self.out.append(ast.Assign([ast.Name(chosen, ast.Store())], value))
        return ast.Name(chosen, ast.Load())

    def expression(self, node: ast.expr, env: Mapping[str, ast.expr]) -> ast.expr:
        """Return an expression with what is known put in."""
        changed: ast.expr = Expression(self, env).visit(copy.deepcopy(node))
        return changed


class Expression(ast.NodeTransformer):
    """Puts arguments in for parameters, and what is known of `self` for its attributes."""

    def __init__(self, body: Body, env: Mapping[str, ast.expr]) -> None:
        """Take the body that statements on the way are added to, and what names stand for."""
        self.body = body
        self.inliner = body.inliner
        self.env = env

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put an argument or a module's constant in."""
        if node.id in self.env and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self.env[node.id])
        if node.id in self.body.home.constants and isinstance(node.ctx, ast.Load):
            try:
                return literal(known(self.body.home.constants[node.id]))
            except UnclearError:
                return node
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Put in what is known of `self`, or of another value."""
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and node.value.id not in self.env:
            if node.attr in self.inliner.facts and isinstance(node.ctx, ast.Load):
                return literal(self.inliner.facts[node.attr])
            raise UnclearError(f"self.{node.attr}")
        changed = as_expression(self.generic_visit(node))
        return literal(self.inliner.values[name]) if (name := ast.unparse(changed)) in self.inliner.values else changed

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Choose the entry of a table."""
        if isinstance(node.value, ast.Dict) and isinstance(node.ctx, ast.Load):
            # Of a table only the entry that is asked for has to be known.
            key = self.visit(node.slice)
            for name, value in zip(node.value.keys, node.value.values, strict=True):
                if name is not None and isinstance(key, ast.Constant) and isinstance(name, ast.Constant) and name.value == key.value:
                    return self.visit(value)  # type: ignore[no-any-return]
        return folded(self.generic_visit(node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Decide a conditional expression where its test is known."""
        test = self.visit(node.test)
        try:
            return self.visit(node.body if known(test) else node.orelse)  # type: ignore[no-any-return]
        except UnclearError:
            return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def _fold(self, node: ast.expr) -> ast.expr:
        return folded(self.generic_visit(node))

    visit_JoinedStr = visit_Compare = visit_UnaryOp = _fold  # noqa: N815

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Stop where Python does, so that what isn't reached need not be known."""
        stops = isinstance(node.op, ast.Or)
        left: list[ast.expr] = []
        for value in node.values:
            changed = self.visit(value)
            try:
                decided = known(changed)
            except UnclearError:
                left.append(changed)
                continue
            if bool(decided) == stops:
                left.append(changed)
                break
            last = changed
        if not left:
            return as_expression(last)
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Join texts."""
        changed = as_expression(self.generic_visit(node))
        value = folded(changed)
        # Sums of numbers stay as they are written: that says more.
        return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else changed

    def _comprehension(self, node: ast.expr) -> ast.expr:
        inner = Expression(self.body, {k: v for k, v in self.env.items() if k not in bound(node)})
        return folded(inner.generic_visit(node))

    visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = visit_Lambda = _comprehension  # noqa: N815

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put a helper's or a method's body in where it is called."""
        func = node.func
        args = [piece for a in node.args for piece in self._pieces(a)]
        kw = {k.arg: self.visit(k.value) for k in node.keywords if k.arg is not None}
        if len(kw) < len(node.keywords):
            raise UnclearError("**")
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            return self._own(func.attr, args, kw)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and ast.unparse(func.value) == "super()":
            found = self.inliner.cls.find(func.attr, after=self.body.owner)
            if found is None:
                raise UnclearError(f"super().{func.attr}")
            return self.inliner.call(*found, args, kw, self.body.out)
        if isinstance(func, ast.Name) and func.id in self.body.home.functions:
            home = self.body.home
            return self.inliner.call(home, None, home.functions[func.id], args, kw, self.body.out)
        changed = ast.Call(self.visit(func), args, [ast.keyword(name, value) for name, value in kw.items()])
        if isinstance(func, ast.Name) and func.id == "getattr" and len(args) == 2 and isinstance(args[1], ast.Constant):
            return ast.Attribute(args[0], str(args[1].value), ast.Load())
        return folded(changed)

    def _own(self, name: str, args: list[ast.expr], kw: dict[str, ast.expr]) -> ast.expr:
        if name in ("device", "expression"):
            asked, spelled = [str(known(a)) for a in args] + ["object"] * (2 - len(args))
            text = self.inliner.device(asked, spelled)
            return parse(text) if name == "device" else ast.Constant(text)
        if name == "dtype":
            asked = known(args[0])
            if asked not in self.inliner.dtypes:
                raise UnclearError(f"dtype {asked}")
            return parse(self.inliner.dtypes[asked])
        if name == "resolve":
            roles = self.inliner.facts.get("roles", {})
            asked = known(args[0])
            return ast.Constant(("accelerator" if "accelerator" in roles else "host") if asked == "device" else asked)
        found = self.inliner.cls.find(name)
        if found is None:
            raise UnclearError(f"self.{name}")
        return self.inliner.call(*found, args, kw, self.body.out)

    def _pieces(self, arg: ast.expr) -> list[ast.expr]:
        if not isinstance(arg, ast.Starred):
            return [self.visit(arg)]
        spread = self.visit(arg.value)
        return list(spread.elts) if isinstance(spread, ast.Tuple | ast.List) else [ast.Starred(spread, ast.Load())]
