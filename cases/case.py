"""A case, and the catalogue of all of them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from cases.answers import Vocabulary
from cases.lab import Lab, LanguageError, Program, Symbol

#: One module for each area of questions; a case's id begins with its area.
AREAS: Mapping[str, str] = {
    "placement": "What happens when operands are on different devices?",
    "scalars": "Which values count as scalars, and go to the other operand's device?",
    "moving": "What does moving a value cost, alias and accept as a device?",
    "dtypes": "Which dtypes can be made, moved and computed with on the device?",
    "time": "When is work really finished?",
    "modules": "What moves with a module, and where are the next ones built?",
}
#: Environments that a case may ask for, in neutral words; adapters know the variables.
ENVIRONMENTS: Mapping[str, str] = {
    "wide-dtypes": "64-bit dtypes are switched on, where a framework has them switched off",
    "no-accelerator": "the accelerators are hidden from the process",
    "one-accelerator": "the first accelerator alone is shown to the process",
    "reversed-accelerators": "two accelerators are shown to the process, the second one first",
    "default-accelerator": "the default device is named: the accelerator",
    "default-misspelt": "the default device is named, and nobody knows that name",
    "default-absent": "the default device is named: one that the build lacks",
}
#: The modules of an area that has not just the one of its name, in the order in which their questions are asked.
_MODULES = {
    "placement": ("placement", "sharded"),
    "moving": ("axes", "defaults", "devices", "failing", "moving", "peers"),
    "time": ("timing", "failing"),  # a module called `time` would be mistaken for the standard library's by a reader
}
_ID = re.compile(r"[a-z]+(/[a-z0-9_]+(-[a-z0-9_]+)*){1,3}")
_CASES: dict[str, Case] = {}

Trace = Callable[[Lab], Symbol | Mapping[str, Symbol]]


class CatalogueError(Exception):
    """The catalogue is not in order; the message says which case and why."""


@dataclass(frozen=True)
class Case:
    """One question, asked of every framework in its own API."""

    id: str
    #: One sentence that ends in a question mark.
    question: str
    #: Why somebody should care, in a sentence or two.
    why: str
    answers: Vocabulary
    trace: Trace
    #: The case that must work for this one to mean anything; None for the few that stand alone.
    control: str | None
    #: Claims of the documents that the case answers, as numbered in `tests/claims.toml`.
    claims: tuple[str, ...] = ()
    #: Ask in a process of its own.
    fresh: bool = False
    #: One of ENVIRONMENTS, in a worker of its own.
    environment: str | None = None
    #: Ask while nothing else of the run works.
    alone: bool = False
    #: Names that the vocabulary needs to decide, such as the dtype that was asked for.
    wanted: Mapping[str, str] = field(default_factory=dict)

    @property
    def area(self) -> str:
        """Return the area, the first part of the id."""
        return self.id.partition("/")[0]

    @cached_property
    def program(self) -> Program:
        """Return the program, traced when it is first looked at. Raises CatalogueError for one that misuses the language."""
        lab = Lab()
        try:
            marks = self.trace(lab)
            return lab.program({"result": marks} if isinstance(marks, Symbol) else marks)
        except LanguageError as error:
            raise CatalogueError(f"case {self.id}: {error}") from error


def case(
    id: str, answers: Vocabulary, *, question: str, why: str, control: str | None, claims: tuple[str, ...] = (),
    fresh: bool = False, environment: str | None = None, alone: bool = False, wanted: Mapping[str, str] | None = None,
) -> Callable[[Trace], Trace]:  # fmt: skip
    """Register the decorated function as a case. Raises CatalogueError for a bad or a second id."""

    def register(trace: Trace) -> Trace:
        if not _ID.fullmatch(id) or id.partition("/")[0] not in AREAS:
            raise CatalogueError(f"case id {id!r} is not area/words, with an area of {', '.join(AREAS)}")
        if id in _CASES:
            raise CatalogueError(f"case id {id!r} is there twice; ids never change and are never used again")
        if environment is not None and environment not in ENVIRONMENTS:
            raise CatalogueError(f"case {id}: no environment {environment!r}; there are {', '.join(ENVIRONMENTS)}")
        _CASES[id] = Case(id, question, why, answers, trace, control, claims, fresh, environment, alone, wanted or {})
        return trace

    return register


@cache
def catalogue() -> Mapping[str, Case]:
    """Return every case by id, in the order of areas. Raises CatalogueError when one is wrong.

    None is traced yet: who compares two records looks at few of the programs.
    """
    for area in AREAS:
        for module in _MODULES.get(area, (area,)):
            importlib.import_module("cases." + module)
    for one in _CASES.values():
        if one.control is not None and one.control not in _CASES:
            raise CatalogueError(f"case {one.id}: its control {one.control!r} is not a case")
        if one.control is not None and not _asked_before(_CASES[one.control], one):
            raise CatalogueError(f"case {one.id}: its control {one.control!r} is asked later, or in an environment of its own")
    order = list(AREAS)
    return dict(sorted(_CASES.items(), key=lambda item: order.index(item[1].area)))


def _asked_before(control: Case, case: Case) -> bool:
    """Say whether a control's answer can be waited for: in the same worker, or in one that waits for no other."""
    return control.environment in (None, case.environment) and (case.alone or not control.alone)
