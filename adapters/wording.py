"""Native code as text: arguments in their places, data written shortly, definitions (controller side)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from adapters.evaluate import RefusedError
from adapters.inline import Inliner
from adapters.known import parse
from adapters.source import Class, UnclearError

_BLOCK = re.compile(r"(class|def|with|for|if|elif|else|while|try|except|finally)\b")
_ARGUMENT = re.compile(r"__a(\d+)__")


def sizes(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that timed steps used, by step."""
    return {step: fact["value"]["size"] for step, fact in observation.get("steps", {}).items() if "size" in fact.get("value", {})}


def written(observation: Mapping[str, Any], environment: str | None, target: Mapping[str, Any]) -> Mapping[str, str]:
    """Return how devices were written that aren't there: an environment that hides some may change it, and only an observation tells."""
    return observation.get("spelled") or ({} if environment else target.get("spelled") or {})


def nowhere(name: str, _: str) -> str:
    """Refuse to name a device: there is no target."""
    raise UnclearError(f"device {name}")


@cache
def template(cls: Class, op: str, count: int, names: tuple[str, ...]) -> str | None:
    """Return a method's one expression with places for its arguments; None when it is not that simple."""
    found = cls.find(op)
    if found is None:
        raise UnclearError(f"the adapter has no {op}")
    home, _, function = found
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    involved = used & {"self", "cls", "super", "getattr", *home.functions, *home.constants}
    if len(body) != 1 or not isinstance(body[0], ast.Return) or involved:
        return None
    places = [ast.Name(f"__a{n}__", ast.Load()) for n in range(count + len(names))]
    kw = dict(zip(names, places[count:], strict=True))
    try:
        return code(Inliner(cls, {}, nowhere).method(op, places[:count], kw, []))
    except (UnclearError, RefusedError):
        return None


def filled(text: str, values: list[str]) -> str:
    """Return a template with its arguments."""
    return _ARGUMENT.sub(lambda found: _fitting(values[int(found[1])], text, found), text)


def _fitting(value: str, text: str, found: re.Match[str]) -> str:
    """Return an argument as it fits into its place: in parentheses where it would otherwise read differently."""
    before, after = text[: found.start()], text[found.end() : found.end() + 1]
    alone = (not before or before[-1] in "([=" or before.endswith(", ")) and after in ("", ")", "]", ",", ":")
    return value if alone or _atom(value, after) else f"({value})"


@cache
def _atom(text: str, after: str) -> bool:
    tree = parse(text)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
        return after != "."
    return isinstance(tree, ast.Constant | ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.List | ast.Tuple)


def number(value: Any) -> str:
    """Return a Python number, text or None in code."""
    text = repr(value)
    return f"float({text!r})" if text in ("nan", "inf", "-inf") else text


def data(values: Any, imag: Any = None) -> str:
    """Return nested lists of numbers in code; what repeats is written as a repetition."""
    if not isinstance(values, list):
        if imag is not None:
            return f"complex({data(values)}, {data(imag)})"
        return f"float({values!r})" if isinstance(values, str) else number(values)
    items = [data(v, None if imag is None else i) for v, i in zip(values, imag or values, strict=True)]
    for period in range(1, 9):
        if len(items) >= 4 * period and len(items) % period == 0 and items == items[:period] * (len(items) // period):
            return f"[{', '.join(items[:period])}] * {len(items) // period}"
    runs = list(_runs(items))
    if len(items) >= 16 and len(runs) <= len(items) // 4:
        return " + ".join(f"[{item}]" + (f" * {count}" if count > 1 else "") for item, count in runs)
    return f"[{', '.join(items)}]"


def _runs(items: list[str]) -> Iterator[tuple[str, int]]:
    count = 0
    for n, item in enumerate(items):
        count += 1
        if n + 1 == len(items) or items[n + 1] != item:
            yield item, count
            count = 0


def code(node: ast.AST) -> str:
    """Return a tree as text."""
    return ast.unparse(ast.fix_missing_locations(node))


def indented(text: str, by: str = "    ") -> str:
    """Return a text with each line moved to the right."""
    return "\n".join(by + line if line else line for line in text.splitlines())


def pasteable(text: str) -> str:
    """Return a script that a prompt takes too: there an empty line ends a block, and nothing else does."""
    lines: list[str] = []
    inside = False
    texts = text.splitlines()
    for n, line in enumerate(texts):
        if not line:
            follows = next((later for later in texts[n:] if later), "")
            if follows.startswith((" ", "\t")) or (lines and not lines[-1]):
                continue
        if lines and lines[-1] and line.startswith(("class ", "def ")):
            lines.append("")
        if inside and line and not line.startswith((" ", "\t", "else:", "elif ", "except", "finally:")):
            lines.append("")
        inside = bool(line) and (line.startswith((" ", "\t")) or _BLOCK.match(line) is not None)
        lines.append(line)
    return "\n".join([*lines, *([""] if inside else [])]) + "\n"


@cache
def definition(definition: ast.stmt) -> str:
    """Return a definition without annotations; a method that is given as a function loses its `self`."""
    tree = ast.parse(code(definition)).body[0]
    if isinstance(tree, ast.ClassDef):
        tree.body = [ast.Assign([n.target], n.value) if isinstance(n, ast.AnnAssign) and n.value is not None else n for n in tree.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns, node.decorator_list = None, []
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
    if isinstance(tree, ast.FunctionDef) and tree.args.args and tree.args.args[0].arg in ("self", "cls"):
        del tree.args.args[0]
    return code(tree)
