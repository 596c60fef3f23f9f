"""What the names of one Python file mean, as far as its imports and assignments tell: an abstract run over its tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from reports.names import DEVICE, DEVICES, DTYPES, LAYER, OTHER, PLAIN, PLAIN_BUILTINS, VALUE, annotated, called, joined, made


class Meaning:
    """One file. Names are looked up where they stand: function by function, line by line."""

    def __init__(self, tree: ast.Module, framework: str) -> None:
        """Take a file's tree, and the top module of the framework that it is read for."""
        self._tree = tree
        self._framework = framework
        #: Every expression that was met, and every in-place operation -> what it is.
        self.kinds: dict[ast.AST, str | None] = {}
        self._paths: dict[ast.AST, str | None] = {}
        #: Scope by scope, what a name is, and what it was imported as.
        self._scopes: list[dict[str, tuple[str | None, str | None]]] = [{}]
        self._members: list[dict[str, str | None]] = [{}]
        self._classes: dict[str, str] = {}
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        #: Whether the file imports the framework.
        self.concerned = framework in {module.partition(".")[0] for node in imports for module in _modules(node)}
        self._starred = next((n.module for n in imports if isinstance(n, ast.ImportFrom) and n.module and n.names[0].name == "*"), None)
        self._body(tree.body)

    def kind(self, node: ast.AST) -> str | None:
        """Return what an expression is; None where nothing says it."""
        return self.kinds.get(node)

    def path(self, node: ast.AST) -> str | None:
        """Return what an expression names in the modules that were imported, such as `jax.numpy.where`."""
        return self._paths.get(node)

    def dtype(self, node: ast.AST) -> str | None:
        """Return the name of a dtype that an expression names, by an attribute of the framework; None for anything else."""
        path = self.path(node) or ""
        name = path.rpartition(".")[2]
        return name if self.own(path) and name.startswith(DTYPES) else None

    def own(self, path: str) -> bool:
        """Say whether a name is the framework's."""
        return path.partition(".")[0] == self._framework

    def says(self, word: str) -> bool:
        """Say whether the file has a word as a name, an attribute or a text."""
        return word in self._words

    def name(self, node: ast.AST) -> str:
        """Return what an operation is called, whatever an import calls it: only what is called alike can be alike."""
        match node:
            case ast.BinOp(op=op) | ast.AugAssign(op=op):
                return type(op).__name__
            case ast.Compare(ops=[op]):
                return "Eq" if isinstance(op, ast.NotEq) else type(op).__name__
            case ast.Subscript():
                return "[]"
            case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at")), attr=attr)):
                return f"at[].{attr}()"
            case ast.Call(func=func):
                path = self.path(func)
                return f"{path or getattr(func, 'attr', '')}()"
            case ast.Attribute(attr=attr):
                return f".{attr}"
        return ""

    def alike(self, name: str) -> list[ast.AST]:
        """Return the operations of a name."""
        return self._named.get(name, [])

    @cached_property
    def _named(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in self.kinds:
            found.setdefault(self.name(node), []).append(node)
        return found

    @cached_property
    def _words(self) -> set[str]:
        nodes = list(ast.walk(self._tree))
        named = {n.attr if isinstance(n, ast.Attribute) else n.id for n in nodes if isinstance(n, ast.Attribute | ast.Name)}
        return named | {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}

    # --- statements -----------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                for name, path in _bound(node):
                    self._scopes[-1][name] = None, path
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._bind(node.name, None)
                self._function(node)
            case ast.ClassDef():
                self._class(node)
            case ast.Assign(targets=targets, value=value):
                kind = self._expression(value)
                for target in targets:
                    self._assign(target, value, kind)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                kind = self._expression(value) if value else None
                self._assign(target, value, kind or self._annotated(annotation))
            case ast.AugAssign(target=target, value=value):
                kind = joined([self._expression(target), self._expression(value)])
                self.kinds[node] = kind
                self._assign(target, None, kind)
            case ast.For(target=target, iter=iterable) | ast.AsyncFor(target=target, iter=iterable):
                self._assign(target, None, self._item(iterable))
                self._body([*node.body, *node.orelse])
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    self._expression(item.context_expr)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, None, None)
                self._body(node.body)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child)
                    elif isinstance(child, ast.stmt):
                        self._statement(child)
                    elif isinstance(child, ast.ExceptHandler | ast.match_case):
                        self._body(child.body)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        with self._scope():
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
                if argument is not None:
                    self._bind(argument.arg, self._annotated(argument.annotation))
            for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
                self._expression(default)
            if isinstance(node, ast.Lambda):
                self._expression(node.body)
            else:
                for decorator in node.decorator_list:
                    self._expression(decorator)
                self._body(node.body)

    def _class(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            self._expression(base)
        framework = any(self.own(self._paths.get(base) or "") or self._classes.get(getattr(base, "id", "")) == LAYER for base in node.bases)
        self._bind(node.name, None)
        self._classes[node.name] = LAYER if framework else OTHER
        self._members.append({})
        # Twice: a method may use what a later one sets; what was met is met again, and known better.
        for _ in range(2):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._function(statement)  # its name is the class's, and hides nothing from anybody
                else:
                    with self._scope():
                        self._statement(statement)
        self._members.pop()

    # --- names ----------------------------------------------------------------------------------

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Keep names that are bound inside to what is inside."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def _bind(self, name: str, kind: str | None) -> None:
        self._scopes[-1][name] = kind, None

    def _assign(self, target: ast.expr, value: ast.expr | None, kind: str | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, kind)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self._members[-1][name] = kind or self._members[-1].get(name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts) else None
                for n, part in enumerate(parts):
                    if values:
                        self._assign(part, values[n], self.kinds.get(values[n]))
                    else:
                        self._assign(part, None, kind if kind == VALUE else None)
            case ast.Starred(value=inner):
                self._assign(inner, None, None)
            case ast.Subscript() | ast.Attribute():
                self._expression(target)

    def _looked_up(self, name: str) -> tuple[str | None, str | None]:
        """Return (kind, path) of a name, from the innermost scope on."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None, f"{self._starred}.{name}" if self._starred and name not in PLAIN_BUILTINS else None

    def _annotated(self, annotation: ast.expr | None) -> str | None:
        """Return what an annotation says: the framework's own classes, or plain ones."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return None
        if annotation is None:
            return None
        self._expression(annotation)
        for node in ast.walk(annotation):
            path = self._paths.get(node) or ""
            if self.own(path) and "." in path:
                return annotated(path)
        return OTHER if isinstance(annotation, ast.Name) and self._builtin(annotation.id) else None

    def _builtin(self, name: str) -> bool:
        """Say whether a name is a builtin whose results are plain Python, and nobody took it for something else."""
        return name in PLAIN_BUILTINS and not any(name in scope for scope in self._scopes)

    # --- expressions ----------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> str | None:
        kind = self._kind(node)
        self.kinds[node] = kind
        return kind

    def _kind(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant() | ast.JoinedStr():
                return OTHER
            case ast.Name(id=name):
                kind, self._paths[node] = self._looked_up(name)
                return kind
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(node, value, attr)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, right=right):
                return joined([self._expression(left), self._expression(right)])
            case ast.UnaryOp(operand=operand):
                return self._expression(operand)
            case ast.Compare(left=left, comparators=others):
                kinds = [self._expression(one) for one in (left, *others)]
                return VALUE if VALUE in kinds else OTHER if DEVICE in kinds or None not in kinds else None
            case ast.Subscript(value=value, slice=index):
                kind = self._expression(value)
                self._expression(index)
                return kind if kind in (VALUE, DEVICE) else None
            case ast.IfExp(test=test, body=body, orelse=other):
                self._expression(test)
                return joined([self._expression(body), self._expression(other)])
            case ast.NamedExpr(target=target, value=value):
                kind = self._expression(value)
                self._assign(target, value, kind)
                return kind
            case ast.Lambda():
                self._function(node)
                return OTHER
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child)
        return OTHER if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Slice) else None

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> str | None:
        with self._scope():
            for part in node.generators:
                self._assign(part.target, None, self._item(part.iter))
                for test in part.ifs:
                    self._expression(test)
            for one in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self._expression(one)
        return OTHER

    def _item(self, iterable: ast.expr) -> str | None:
        """Return what comes of going through something: parts of a value are values, a range has numbers."""
        kind = self._expression(iterable)
        counts = isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range"
        return OTHER if counts else kind if kind in (VALUE, DEVICE) else None

    def _attribute(self, node: ast.Attribute, value: ast.expr, attr: str) -> str | None:
        kind = self._expression(value)
        path = self._paths.get(value)
        if path is not None:
            self._paths[node] = f"{path}.{attr}"
            return OTHER
        if isinstance(value, ast.Name) and value.id == "self":
            return self._members[-1].get(attr)
        if kind == VALUE:
            return DEVICE if attr in DEVICES else OTHER if attr in PLAIN else VALUE
        return DEVICE if attr == "device" and kind != OTHER else None if kind != OTHER else OTHER

    def _call(self, node: ast.Call) -> str | None:
        kind = self._expression(node.func)
        for argument in (*node.args, *(k.value for k in node.keywords)):
            self._expression(argument.value if isinstance(argument, ast.Starred) else argument)
        path = self._paths.get(node.func)
        if path is not None:
            return made(path) if self.own(path) else OTHER
        if isinstance(node.func, ast.Name):
            name = node.func.id
            if name in self._classes:
                return self._classes[name]
            return OTHER if self._builtin(name) else called(kind)
        return called(kind)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if node.module and not node.level else []


def _bound(node: ast.Import | ast.ImportFrom) -> list[tuple[str, str | None]]:
    """Return each name that an import binds, and what it names."""
    if isinstance(node, ast.Import):
        return [(a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2 for a in node.names]
    module = f"{'.' * node.level}{node.module or ''}"
    return [(a.asname or a.name, f"{module}.{a.name}") for a in node.names if a.name != "*"]
