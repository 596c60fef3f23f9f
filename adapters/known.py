"""What of an adapter's source can be known without its framework (controller side)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from adapters.source import UnclearError

#: Without side effects and without the framework; everything else stays as it is written.
_PURE: dict[str, Any] = {
    f.__name__: f
    for f in (abs, all, any, bool, dict, enumerate, float, getattr, int, isinstance, len, list, max, min, next, range, repr, set, sorted,
              str, sum, tuple, zip)
}  # fmt: skip


def parse(text: str) -> ast.expr:
    """Return an expression's tree."""
    return ast.parse(text, mode="eval").body


def known(node: ast.expr) -> Any:
    """Return the value of an expression that needs nothing but pure Python. Raises UnclearError."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in _PURE and part.id not in bound(node):
            raise UnclearError(part.id)
        if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            raise UnclearError("no plain expression")
    tree = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(tree, "<adapter>", "eval"), {"__builtins__": _PURE})  # noqa: S307  names are checked above
    except Exception as error:
        raise UnclearError(str(error)) from error


def bound(node: ast.AST) -> set[str]:
    """Return the names that comprehensions and lambdas inside bind themselves."""
    names = {n.id for c in ast.walk(node) if isinstance(c, ast.comprehension) for n in ast.walk(c.target) if isinstance(n, ast.Name)}
    return names | {a.arg for f in ast.walk(node) if isinstance(f, ast.Lambda) for a in f.args.args}


def as_expression(node: ast.AST) -> ast.expr:
    """Return a node that is an expression and stays one."""
    assert isinstance(node, ast.expr), "an expression stays one"
    return node


def folded(tree: ast.AST) -> ast.expr:
    """Return the value of an expression as a literal where it is known, else the expression."""
    node = as_expression(tree)
    if isinstance(node, ast.List | ast.Tuple | ast.Constant):
        return node
    try:
        return literal(known(node))
    except UnclearError:
        return node


def literal(value: Any) -> ast.expr:
    """Return a plain value as an expression. Raises UnclearError when it has no literal."""
    if isinstance(value, Mapping):
        value = {key: dict(item) if isinstance(item, Mapping) else item for key, item in value.items()}
    try:
        return parse(repr(value))
    except SyntaxError as error:
        raise UnclearError(repr(value)) from error
