"""A case in one target's own code: the question's lines, a complete script, and the expressions to look for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from adapters.evaluate import RefusedError
from adapters.reproducer import Line, Reproducer
from adapters.source import UnclearError
from adapters.templates import Templates, book_of
from cases import Case, catalogue
from cases.words import LOOKS
from reports.cells import Target
from reports.uses import Pattern

#: Steps that make plain operands, a condition's truths by a comparison: every case has such, and none is about them.
_OPERANDS = frozenset(
    ("tensor", "full", "ramp", "less", "tensor_uncommitted", "buffer", "write_buffer", "drop", "name", "observe", "barrier"),
)
#: The interpreter's own doing, and looking at what a module keeps: nothing that a user writes.
_NOT_ASKED = frozenset((*LOOKS, "member")) - {"name", "compare"}
_STEP = re.compile(r"\bs(\d+)\b")
#: What the operands of an expression are called, in the order in which it names them.
_LETTERS = ("x", "y", "z", "u", "v", "w")


class Native:
    """The code of one target; where its adapter can't be read, there is none, and `why` says so."""

    def __init__(self, target: Target) -> None:
        """Take a target as a record knows it."""
        self.target = target
        self.why = ""
        self._book: Reproducer | Templates | None = None
        try:
            self._book = book_of(target.to_json())
        except UnclearError as reason:
            self.why = str(reason)

    def script(self, case: Case, observation: Mapping[str, Any] | None = None) -> tuple[list[str], str]:
        """Return the question's lines in native code, and a complete script; an observation tells sizes and absent devices."""
        if self._book is None:
            return [f"# no code to show: {self.why}"], ""
        wire = case.program.wire()
        lines = self._book.lines(wire, marks=case.program.marks, environment=case.environment, observation=observation)
        title = f"{case.id} on {self.target.name} ({self.target.framework} {self.target.version})\n{case.question}"
        return _texts(lines), self._book.script(wire, title=title, environment=case.environment, lines=lines)

    def pattern(self, case: Case) -> Pattern:
        """Return how code is recognised that does what the case asks."""
        case = plain(case)
        lines = self._book.lines(case.program.wire()) if self._book is not None else []
        imports = self._book.phrases.imports if isinstance(self._book, Reproducer) else ""
        return Pattern(imports, _texts(lines), self.asked(case), self.beside(case), self.dtypes(case))

    def asked(self, case: Case) -> list[str]:
        """Return what the question itself does, as statements; operands keep their names."""
        steps = {step["id"]: step for step in case.program.asked}
        wanted = [name for name, step in steps.items() if step.get("attempt") and step.get("op") not in _NOT_ASKED]
        return list(self._code(case, dict.fromkeys([case.program.marks.get("result", ""), *wanted])))

    def beside(self, case: Case) -> list[str]:
        """Return what the question needs beside plain operands, as statements: a scope, pinned memory, a view."""
        steps = [s for s in case.program.asked if not s.get("attempt") and s.get("op") not in _OPERANDS]
        return list(self._code(case, {step["id"]: None for step in steps}))

    def dtypes(self, case: Case) -> list[str]:
        """Return the dtypes that the case's id names, by their native names; the usual one is named nowhere."""
        found = []
        for part in case.id.split("/"):
            if isinstance(self._book, Reproducer) and part in case.program.dtypes and part != "float32":
                with contextlib.suppress(UnclearError, RefusedError):  # a dtype of another framework's
                    found.append(self._book.phrases.argument({"dtype": part}).rpartition(".")[2])
        return found

    def _code(self, case: Case, steps: Mapping[str, None]) -> Iterator[str]:
        """Yield the code of some steps; those inside a scope stand in its lines."""
        for line in self._book.lines(case.program.wire()) if self._book is not None else ():
            if line.step in steps and line.runs:
                yield line.code
            elif line.runs and line.code.startswith("with "):
                yield from (text for text in map(str.strip, line.code.splitlines()[1:]) if _names(text) in steps)


def plain(case: Case) -> Case:
    """Return the case that does once what a timed one does in a loop; else the case itself."""
    while case.program.timed and case.control is not None:
        case = catalogue()[case.control]
    return case


def _texts(lines: Iterable[Line]) -> list[str]:
    return [text for line in lines for text in line.code.splitlines()]


def _names(statement: str) -> str:
    return statement.partition(" = ")[0]


@cache
def expression(statement: str) -> str:
    """Return a statement without the name that it gives, and its operands as letters: `s5 = s1 @ s2` → `x @ y`."""
    head = re.match(r"with (.*):\n", statement)
    text = head[1] if head else re.sub(r"^(let (mut )?)?s\d+ = ", "", statement).removesuffix(";")
    names = list(dict.fromkeys(_STEP.findall(text)))
    return _STEP.sub(lambda found: _LETTERS[min(names.index(found[1]), len(_LETTERS) - 1)], text)


def letters(statements: Iterable[str]) -> list[str]:
    """Return statements as expressions, each once."""
    found: dict[str, None] = {}
    for text in map(expression, statements):
        found[text.removeprefix("print(").split(", ")[0] if text.startswith("print(") else text] = None
    return list(found)
