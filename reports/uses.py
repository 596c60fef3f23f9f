"""Where a user's own Python sources do what a changed case does. Sources are parsed, never run.

What a name means is followed through imports and assignments within a file, and no further. So a use is *sure*
where an operand is known to be the framework's, and *perhaps* one where nothing says what it is.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.meaning import Meaning
from reports.names import DEVICE, VALUE
from reports.verbs import ProblemError

#: An expression may be so deep: a long sum of texts is a tree as deep as it has terms.
_DEPTH = 20_000
_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages"))


@dataclass(frozen=True)
class Use:
    """One place in somebody's sources."""

    path: Path
    line: int
    text: str
    #: Whether an operand is known to be the framework's.
    sure: bool


class Pattern:
    """What a case does, as it is recognised in other code."""

    def __init__(self, imports: str, lines: Sequence[str], asked: Sequence[str], beside: Sequence[str], dtypes: Sequence[str] = ()) -> None:
        """Take statements of native code: the whole question, which says what operands are, what it asks, and what it needs beside.

        `dtypes` are those that a file must name for the case to matter to it.
        """
        imported = _parsed(imports)
        #: What tells it from other patterns.
        self.key = (imports, *lines, None, *asked, None, *beside, None, *dtypes)
        #: The module by which the framework is imported.
        self.root = next((n.names[0].name.partition(".")[0] for n in imported if isinstance(n, ast.Import)), "")
        parts = [[node for text in texts for node in _parsed(text)] for texts in (asked, beside)]
        #: What is looked for (any of these), and what has to stand somewhere in the same file for a use to be sure.
        #: A value that is called, as modules are, has no name that other code would share.
        made = [target for text in lines for node in _parsed(text) if isinstance(node, ast.Assign) for target in node.targets]
        own = {target.id for target in made if isinstance(target, ast.Name)}
        heads = ([head for node in part for head in _head(node)] for part in parts)
        self.asked, self.beside = ([head for head in part if not _called(head) & own] for part in heads)
        self.dtypes = tuple(dtypes)
        #: What the names in these expressions mean.
        self.meaning = Meaning(ast.Module([*imported, *_parsed("\n".join(lines)), *parts[0], *parts[1]], []), self.root)


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(f"{text} pass" if re.match(r"with .*:$", text) else text).body
    except SyntaxError:  # another language than Python: there is nothing of it in Python sources
        return []


def _called(node: ast.AST) -> set[str]:
    """Return the name that is called, where it is a plain one."""
    return {node.func.id} if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else set()


def _head(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the outermost operation of a statement; another name for a value is none."""
    match node:
        case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)]):
            yield call
        case ast.Expr(value=ast.Call(func=ast.Name("print"), args=[first, *_])):
            yield first
        case ast.Assign(targets=[ast.Subscript() as target]):
            yield target
        case ast.Assign(value=ast.Name() | ast.List()):
            return
        case ast.Assign(value=ast.Subscript(value=ast.Call() as value)):  # the first of some devices
            yield value
        case ast.Assign(value=ast.IfExp(body=value)) | ast.Assign(value=value) | ast.Expr(value=value):
            yield value
        case ast.AugAssign():
            yield node


def read(paths: Sequence[Path]) -> list[tuple[Path, ast.Module, list[str]]]:
    """Parse every Python file under some paths. Raises ProblemError where there is none, or one can't be read."""
    found = []
    for path in paths:
        if not path.exists():
            raise ProblemError(f"--uses {path}: there is no such file or folder")
        found_here = (f for f in path.rglob("*.py") if f.is_file() and not _hidden(f.relative_to(path)))  # a pipe would be waited for
        files = [path] if path.is_file() else sorted(found_here)
        if not files:
            raise ProblemError(f"--uses {path}: there is no Python source in it")
        for file in files:
            try:
                with tokenize.open(file) as stream, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of what the user's own linter is there for
                    text = stream.read()
                    found.append((file, ast.parse(text), text.splitlines()))
            except (OSError, SyntaxError, ValueError, RecursionError) as error:
                raise ProblemError(f"--uses {file} can't be read as Python ({error}); name paths without it") from error
    return found


def _hidden(path: Path) -> bool:
    return any(part in _SKIPPED or part.startswith(".") for part in path.parts)


class Sources:
    """Somebody's sources, asked about many patterns."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read them. Raises ProblemError."""
        self._files = read(paths)
        self._meanings: dict[str, list[Meaning]] = {}

    def uses(self, pattern: Pattern) -> list[Use]:
        """Return where a pattern is used, in files that import its framework; what is sure stands first."""
        if pattern.root not in self._meanings:
            self._meanings[pattern.root] = [_meaning(path, tree, pattern.root) for path, tree, _ in self._files]
        found: dict[tuple[Path, int], Use] = {}
        for (path, _, lines), meaning in zip(self._files, self._meanings[pattern.root], strict=True):
            for number, sure in _lines(pattern, meaning) if meaning.concerned and all(map(meaning.says, pattern.dtypes)) else ():
                found.setdefault((path, number), Use(path, number, lines[number - 1].strip(), sure))
        return sorted(found.values(), key=lambda use: (not use.sure, str(use.path), use.line))


def _meaning(path: Path, tree: ast.Module, root: str) -> Meaning:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEPTH))
    try:
        return Meaning(tree, root)
    except RecursionError as error:
        raise ProblemError(f"--uses {path} is nested too deeply; name paths without it") from error
    finally:
        sys.setrecursionlimit(limit)


def _lines(pattern: Pattern, meaning: Meaning) -> list[tuple[int, bool]]:
    """Return the lines of a file that do what a pattern does, and whether that is sure."""
    near = all(any(fits for _, fits in _matches(head, pattern.meaning, meaning)) for head in pattern.beside)
    found: dict[int, int] = {}
    for head in pattern.asked:
        for node, fits in _matches(head, pattern.meaning, meaning):
            line = getattr(node, "lineno", 1)
            found[line] = max(fits, found.get(line, _NO))
    return [(line, fits == _SURE and near) for line, fits in found.items() if fits]


def _matches(head: ast.AST, wanted: Meaning, given: Meaning) -> Iterator[tuple[ast.AST, int]]:
    """Yield what in a file could do what a head does, and how well it fits."""
    for node in given.alike(wanted.name(head)):
        yield node, _match(head, node, wanted, given)


# --- matching --------------------------------------------------------------------------------------

_NO, _PERHAPS, _SURE = 0, 1, 2


def _match(head: ast.AST, node: ast.AST, wanted: Meaning, given: Meaning) -> int:
    """Say whether a node of somebody's code does what the head of a pattern of the same name does."""
    match head, node:
        case ast.BinOp(), ast.BinOp():
            return _operands((head.left, head.right), (node.left, node.right), wanted, given)
        case ast.BinOp(), ast.AugAssign():
            return _operands((head.left, head.right), (node.target, node.value), wanted, given)
        case ast.AugAssign(), ast.AugAssign():
            return _operands((head.target, head.value), (node.target, node.value), wanted, given)
        case ast.Compare(comparators=[right]), ast.Compare(comparators=[other]):
            return _operands((head.left, right), (node.left, other), wanted, given)
        case ast.Subscript(), ast.Subscript() if type(head.ctx) is type(node.ctx):
            return _subscript(head, node, wanted, given)
        case ast.Call(), ast.Call():
            return _call(head, node, wanted, given)
        case ast.Attribute(), ast.Attribute() if wanted.path(head) is None:
            return _operand(head.value, node.value, wanted, given)
    return _NO


def _operand(head: ast.expr, node: ast.expr, wanted: Meaning, given: Meaning) -> int:
    kind = given.kind(node)
    if wanted.kind(head) is None:  # host memory, or anything else that the framework didn't make
        return _SURE
    if kind is None:  # a device without a known origin could be anything with that attribute
        return _NO if wanted.kind(head) == DEVICE else _PERHAPS
    return _SURE if kind == wanted.kind(head) else _NO


def _operands(heads: Sequence[ast.expr], nodes: Sequence[ast.expr], wanted: Meaning, given: Meaning) -> int:
    """Compare the operands of an operator: literals with literals of their type, values with what may be one."""
    found = []
    for head, node in zip(heads, nodes, strict=True):
        if isinstance(head, ast.Constant):
            if not isinstance(node, ast.Constant) or type(node.value) is not type(head.value):
                return _NO
        else:
            found.append(_operand(head, node, wanted, given))
    if _NO in found or (len(found) < len(heads) and _PERHAPS in found):
        return _NO
    return max(found)


def _subscript(head: ast.Subscript, node: ast.Subscript, wanted: Meaning, given: Meaning) -> int:
    if given.kind(node.value) != VALUE:
        return _NO
    sliced = [any(isinstance(part, ast.Slice) for part in ast.walk(one.slice)) for one in (head, node)]
    if sliced[0] or sliced[1] or isinstance(head.slice, ast.Constant | ast.Tuple):
        return _SURE if sliced[0] == sliced[1] else _NO
    return _operand(head.slice, node.slice, wanted, given)


def _call(head: ast.Call, node: ast.Call, wanted: Meaning, given: Meaning) -> int:
    path = wanted.path(head.func)
    keywords, used = ({k.arg for k in call.keywords} for call in (head, node))
    open_ended = None in used or any(isinstance(argument, ast.Starred) for argument in node.args)
    if path != given.path(node.func) or (not open_ended and not _signature(head, node, keywords, used, function=path is not None)):
        return _NO
    if wanted.name(head) != given.name(node):
        return _NO
    found = _SURE
    if path is None:
        mine, yours = _receiver(head.func), _receiver(node.func)
        found = _operand(mine, yours, wanted, given) if mine is not None and yours is not None else _NO
    elif not wanted.own(path) and head.args:  # another library's function is meant where it is given the framework's value
        found = _operand(head.args[0], node.args[0], wanted, given) if node.args else _NO
    return min([found, *_arguments(head, node, wanted, given)])


def _signature(head: ast.Call, node: ast.Call, keywords: set[str | None], used: set[str | None], *, function: bool) -> bool:
    """Say whether a call says as much as the pattern's: what is made without a device, or a dtype, is another question."""
    if len(node.args) + len(used) < len(head.args) or keywords - used - {"dtype", "device"} or "dtype" in used - keywords:
        return False
    return not function or ("device" in keywords) == ("device" in used)


def _receiver(func: ast.expr) -> ast.expr | None:
    """Return the value whose method is called; what JAX writes as `x.at[i].set` is one of `x`."""
    match func:
        case ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=value, attr="at"))) | ast.Attribute(value=value):
            return value
    return None


def _arguments(head: ast.Call, node: ast.Call, wanted: Meaning, given: Meaning) -> Iterator[int]:
    """Yield how well arguments agree, where the pattern's tell something: a device, a dtype, another call."""
    for mine, yours in _paired(head, node):
        dtype, other = wanted.dtype(mine), given.dtype(yours)
        if dtype is not None or other is not None:
            yield _SURE if dtype == other else _NO if dtype is None or given.kind(yours) is not None else _PERHAPS
        elif wanted.kind(mine) == DEVICE:
            yield _SURE if given.kind(yours) in (DEVICE, None) or _text(yours) else _NO
        elif isinstance(mine, ast.Call) and wanted.kind(mine) == VALUE:
            if isinstance(yours, ast.Call):
                yield _call(mine, yours, wanted, given)
            else:
                yield _PERHAPS if any(fits for _, fits in _matches(mine, wanted, given)) else _NO


def _paired(head: ast.Call, node: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    yield from zip(head.args, node.args, strict=False)
    named = {k.arg: k.value for k in node.keywords}
    # The usual dtype is no part of a question that only makes something in it.
    told = [k for k in head.keywords if k.arg != "dtype" or not ast.unparse(k.value).endswith("float32")]
    yield from ((k.value, named[k.arg]) for k in told if k.arg in named)


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
