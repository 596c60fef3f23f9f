"""Read an adapter's module as text and syntax tree, without importing it (controller side, no framework)."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version


class UnclearError(Exception):
    """What the code does can't be known without the framework; the message says where."""


@dataclass(frozen=True, eq=False)
class Module:
    """An adapter's module, as text and tree."""

    name: str
    text: str
    classes: Mapping[str, ast.ClassDef]
    functions: Mapping[str, ast.FunctionDef]
    #: Name -> (module, name there), for what is imported from other modules.
    imported: Mapping[str, tuple[str, str]]
    #: Name -> the statement that imports it.
    imports: Mapping[str, ast.stmt]
    constants: Mapping[str, ast.expr]


@cache
def module(name: str) -> Module:
    """Read a module's source without importing it. Raises UnclearError when there is none."""
    path = _file(name)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    try:
        text = path.read_text("utf-8")
        body = ast.parse(text).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise UnclearError(f"no Python source of {name} here: {error}") from error
    imported: dict[str, tuple[str, str]] = {}
    imports: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            origin = _origin(statement, package)
            imported.update({a.asname or a.name: (origin, a.name) for a in statement.names})
        if isinstance(statement, ast.ImportFrom | ast.Import):
            imports.update({(a.asname or a.name).partition(".")[0]: statement for a in statement.names})
    return Module(
        name, text,
        {node.name: node for node in body if isinstance(node, ast.ClassDef)},
        {node.name: node for node in body if isinstance(node, ast.FunctionDef)},
        imported, imports,
        {node.targets[0].id: node.value for node in body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)},
    )  # fmt: skip


def _file(name: str) -> Path:
    """Return where a module's source is. Raises UnclearError.

    A record names modules too, and reading one runs nothing. Python's own search imports the packages around a
    module, and a finder that some package has installed may do anything: one folder after the other is searched.
    """
    first, *rest = name.split(".")
    if not all(part.isidentifier() for part in (first, *rest)):
        raise UnclearError(f"{name!r:.200} is no module")
    # What is installed to be edited is often in no folder of the path; this finder looks it up in a table.
    finders: list[Any] = [PathFinder, *(one for one in sys.meta_path if getattr(one, "__module__", "").startswith("__editable__"))]
    spec = next(filter(None, (finder.find_spec(first, None) for finder in finders)), None)
    for part in rest:
        spec = PathFinder.find_spec(part, list((spec and spec.submodule_search_locations) or ()))
    if spec is None:
        raise UnclearError(f"no module {name} here")
    if not spec.origin or not spec.origin.endswith(".py"):
        raise UnclearError(f"no Python source of {name} here")
    return Path(spec.origin)


def _origin(statement: ast.ImportFrom, package: str) -> str:
    try:
        return importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
    except ImportError as error:
        raise UnclearError(str(error)) from error


@dataclass(frozen=True, eq=False)
class Class:
    """An adapter's class with its bases, nearest first, each with its module."""

    bases: tuple[tuple[Module, ast.ClassDef], ...]

    def find(self, name: str, after: ast.ClassDef | None = None) -> tuple[Module, ast.ClassDef, ast.FunctionDef] | None:
        """Return the method of a name; with `after`, the one that `super()` would find from that class."""
        skip = after is not None
        for home, definition in self.bases:
            if not skip:
                for node in definition.body:
                    if isinstance(node, ast.FunctionDef) and node.name == name:
                        return home, definition, node
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and name in _names(node):
                        return self.find(node.value.id)
            skip = skip and definition is not after
        return None

    def attribute(self, name: str) -> ast.expr | None:
        """Return the expression of a class attribute."""
        for _, definition in self.bases:
            for node in definition.body:
                if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                    return node.value
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                    return node.value
        return None


def _names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


@cache
def class_of(path: str, version: str = "") -> Class:
    """Return the class behind `module:Class`, as it speaks to a version of its framework. Raises UnclearError.

    What was written otherwise in older versions stands in classes `_Before…`, whose docstring says
    `before X.Y`: an adapter takes their methods when it starts.
    """
    name, _, cls = path.partition(":")
    bases = tuple(_bases(name, cls, set()))
    if not bases:
        raise UnclearError(f"no class {cls!r:.200} in {name}")
    home = bases[0][0]
    older = [node for title, node in home.classes.items() if title.startswith("_Before") and _precedes(version, ast.get_docstring(node))]
    return Class((*((home, node) for node in older), *bases))


def _precedes(version: str, says: str | None) -> bool:
    found = re.search(r"before (\d+(?:\.\d+)+)", says or "")
    try:
        return found is not None and Version(version) < Version(found[1])
    except InvalidVersion:
        return False


def _bases(name: str, cls: str, seen: set[tuple[str, str]]) -> Iterator[tuple[Module, ast.ClassDef]]:
    if (name, cls) in seen:  # a class may have the name of its base
        return
    seen.add((name, cls))
    home = module(name)
    if cls in home.imported and cls not in home.classes:
        yield from _bases(*home.imported[cls], seen)
        return
    if cls not in home.classes:
        raise UnclearError(f"no class {cls!r:.200} in {name}")
    yield home, home.classes[cls]
    for base in home.classes[cls].bases:
        if isinstance(base, ast.Name):
            yield from _bases(home.name, base.id, seen)
