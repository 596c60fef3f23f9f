"""What of an adapter's source can be known without its framework (controller side)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

from adapters.source import UnclearError

#: Without side effects and without the framework; everything else stays as it is written.
_PURE: dict[str, Any] = {
    f.__name__: f
    for f in (abs, all, any, bool, dict, enumerate, float, int, isinstance, len, list, max, min, next, range, repr, set, sorted, str,
              sum, tuple, zip)
}  # fmt: skip
#: What plain values have; anything else could lead out of them.
_PLAIN = frozenset(name for kind in (str, float, list, tuple, dict, set) for name in dir(kind) if not name.startswith("_"))
#: A way to write a device is made of these and so long at most: `torch.device('cuda', 0)`, `jax.devices('cpu')[1]`.
_PARTS = (
    ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.USub, ast.Load,
)  # fmt: skip
_LONGEST, _MOST = 300, 40


def parse(text: str) -> ast.expr:
    """Return an expression's tree. Raises UnclearError."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnclearError(f"{text!r:.200} is no Python expression") from error


def spelling(text: str, names: Collection[str]) -> str:
    """Return how a worker writes a device, where it is a text or calls of these names. Raises UnclearError.

    It may come from a file, or from a worker in another language: as any other expression it would be evaluated
    here, or do what it likes in a script that is made of it.
    """
    unclear = UnclearError(f"the worker writes a device as {text!r:.{_LONGEST}}")
    try:
        tree = parse(text[: _LONGEST + 1])
    except UnclearError:
        raise unclear from None
    parts = list(ast.walk(tree))
    if len(text) > _LONGEST or len(parts) > _MOST or not all(isinstance(part, _PARTS) for part in parts):
        raise unclear
    for part in parts:
        # Of a plain value nothing is taken and nothing is called: only a name leads to the framework.
        owner = part.func if isinstance(part, ast.Call) else part.value if isinstance(part, ast.Attribute | ast.Subscript) else None
        plain = owner is not None and not any(isinstance(inner, ast.Name) for inner in ast.walk(owner))
        if plain or (isinstance(part, ast.Name) and (part.id not in names or part.id in _PURE)):
            raise unclear
    return ast.unparse(tree)


def imported(text: str) -> set[str]:
    """Return the names that lines of imports bind. Raises UnclearError."""
    try:
        lines = ast.parse(text).body
    except SyntaxError as error:
        raise UnclearError(f"{text!r:.200} are no imports") from error
    return {(a.asname or a.name).partition(".")[0] for line in lines if isinstance(line, ast.Import | ast.ImportFrom) for a in line.names}


def known(node: ast.expr) -> Any:
    """Return the value of an expression that needs nothing but pure Python. Raises UnclearError."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in _PURE and part.id not in bound(node):
            raise UnclearError(part.id)
        if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            raise UnclearError("no plain expression")
        if isinstance(part, ast.Attribute) and part.attr not in _PLAIN:
            raise UnclearError(f".{part.attr}")
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
    return parse(repr(value))
