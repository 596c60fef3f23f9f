"""Which targets there are: the selector language, and what is installed, without importing it.

A selector is `[label=]framework:device[@interpreter-or-command]`; framework and device may be globs.
What stands behind `@` is run: a path to a Python interpreter, or a command that ends in one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from adapters import compiled
from adapters.worker import ADAPTERS

_LABEL = re.compile(r"[A-Za-z0-9_.+-]+")
_NAME = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")
_GLOB = re.compile(r"[*?\[]")


class SelectorError(Exception):
    """A selector that can't be followed; the message says why and what to do."""


@dataclass(frozen=True)
class Selector:
    """One `--target`, taken apart."""

    framework: str
    device: str
    label: str | None = None
    #: What stands behind `@`, as it was typed; None for the suite's own interpreter.
    command: str | None = None

    def __str__(self) -> str:
        """Return the selector as it is typed."""
        return f"{self.label + '=' if self.label else ''}{self.framework}:{self.device}{'@' + self.command if self.command else ''}"

    @property
    def explicit(self) -> bool:
        """Say whether exactly one target is named: such a one must start."""
        return not _GLOB.search(self.framework + self.device)

    def name(self, framework: str, device: str) -> str:
        """Return the name of a target that this selector chose."""
        plain = f"{framework}:{device}"
        if self.label:
            return f"{self.label}={plain}"
        return f"{plain}@{self.command}" if self.command else plain

    def chose(self, name: str, framework: str, device: str) -> bool:
        """Say whether a target of this name is one that this selector means."""
        fits = fnmatchcase(framework, self.framework) and fnmatchcase(device, self.device)
        return fits and name == self.name(framework, device)

    def argv(self) -> tuple[str, ...] | None:
        """Return the command to run, None for the suite's own interpreter. Raises SelectorError."""
        if self.command is None:
            return None
        try:
            words = tuple(shlex.split(self.command))
        except ValueError as error:
            raise SelectorError(f"target {self}: the command can't be split into words: {error}") from error
        program = os.path.expanduser(words[0]) if words else ""
        if not words or shutil.which(program) is None:
            raise SelectorError(
                f"target {self}: no interpreter or command {program!r} here; give a path to a Python, or a command that ends in one"
            )
        return (program, *words[1:])


def parse(text: str) -> Selector:
    """Take a selector apart. Raises SelectorError."""
    chosen, _, command = text.partition("@")
    label, equals, rest = chosen.rpartition("=")
    framework, colon, device = rest.partition(":")
    if not colon or not _NAME.fullmatch(framework) or not _NAME.fullmatch(device):
        raise SelectorError(f"target {text!r} is not [label=]framework:device[@interpreter-or-command], such as torch:cpu or 'jax:*'")
    if equals and not _LABEL.fullmatch(label):
        raise SelectorError(f"target {text!r}: a label is made of letters, digits and ._+-, not {label!r}")
    if "@" in text and not command.strip():
        raise SelectorError(f"target {text!r}: nothing stands behind the @")
    return Selector(framework, device, label or None, command.strip() or None)


@dataclass(frozen=True)
class Group:
    """Devices of a framework that one process can serve, and the environment that it needs."""

    devices: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    #: Variables that it must not find set.
    unset: tuple[str, ...] = ()
    #: Distributions of which one must be installed for these devices; () for none.
    needs: tuple[str, ...] = ()
    #: What brings them.
    install: str = ""


_JAX_GPU = ("jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm60-plugin", "jax-rocm7-plugin")
#: What chooses a process's default device is the suite's: it is what a target means, and cases that ask about it set it themselves. JAX
#: chooses that device for the whole process, so that host and accelerator don't share one; burn's is the one that nobody named.
GROUPS: Mapping[str, tuple[Group, ...]] = {
    "jax": (
        Group(("cpu",), (("JAX_PLATFORMS", "cpu"),)),
        Group(("gpu",), needs=_JAX_GPU, install="'jax[cuda13]'"),
        Group(("tpu",), needs=("libtpu",), install="'jax[tpu]'"),
    ),
    "burn": (Group(("*",), unset=("BURN_DEVICE",)),),
}
_ONE_GROUP = (Group(("*",)),)
#: What installs a framework, in the suite's checkout.
_EXTRAS = {"torch": "-e '.[torch]'", "jax": "-e '.[jax]'", "numpy": "-e '.[array-api]'", "array-api-strict": "-e '.[array-api]'"}


@dataclass(frozen=True)
class Spec:
    """One worker to start: everything that distinguishes it from another."""

    framework: str
    #: `module:Class` of an adapter from outside, None for the suite's own.
    adapter: str | None
    argv: tuple[str, ...] | None
    environment: tuple[tuple[str, str], ...] = ()
    #: A program that somebody brought, in any language.
    program: bool = False
    #: Variables of the user's that it must not find, unless its environment sets them.
    unset: tuple[str, ...] = ()

    @property
    def compiled(self) -> bool:
        """Say whether the worker is a program of its own, to which nothing is handed over."""
        return self.program or (self.framework in compiled.CRATES and self.adapter is None)

    @property
    def wrapped(self) -> bool:
        """Say whether a command stands before the interpreter, such as ssh, which may fail where the framework didn't."""
        return self.argv is not None and len(self.argv) > 1

    def within(self, environment: Mapping[str, str]) -> Spec:
        """Return the same worker in a changed environment."""
        merged = {**dict(self.environment), **environment}
        return replace(self, environment=tuple(sorted(merged.items())))


@dataclass(frozen=True)
class Wanted:
    """A worker to start and the selectors that want devices of it."""

    spec: Spec
    group: Group
    selectors: tuple[Selector, ...]


@dataclass(frozen=True)
class Absent:
    """A target that isn't here, known without starting anything."""

    name: str
    why: str
    explicit: bool


def adapters(extra: Iterable[str] = ()) -> dict[str, str | None]:
    """Return every framework that has a worker -> its adapter's `module:Class`, or a program; None for the suite's own.

    Others come from the entry points of the group `device_semantics.adapters` (name = framework), and
    from `extra`: texts `NAME=module:Class` or `NAME=PROGRAM`. Raises SelectorError.
    """
    from importlib.metadata import entry_points  # which costs more than all the rest, and who compares records starts nothing

    found: dict[str, str | None] = dict.fromkeys((*ADAPTERS, *compiled.CRATES))
    for point in entry_points(group="device_semantics.adapters"):
        found[point.name] = point.value.partition("[")[0].strip()
    for text in extra:
        name, equals, path = text.partition("=")
        program = shutil.which(os.path.expanduser(path)) if equals and ":" not in path else None
        if not equals or not _NAME.fullmatch(name) or not (program or (path.count(":") == 1 and all(path.split(":")))):
            forms = "NAME=module:Class, such as mine=my_package.adapter:MyAdapter, nor NAME=PROGRAM with a program that is here"
            raise SelectorError(f"adapter {text!r} is neither {forms}")
        found[name] = program or path
    return found


def _program(framework: str, known: Mapping[str, str | None]) -> str | None:
    """Return the program that is a framework's worker, where somebody brought one."""
    path = known[framework]
    return path if path is not None and ":" not in path else None


def plan(selectors: list[Selector], known: Mapping[str, str | None]) -> tuple[list[Wanted], list[Absent]]:
    """Return the workers to start for some selectors, and what is known not to be here."""
    wanted: dict[tuple[Spec, Group], list[Selector]] = {}
    absent: dict[str, Absent] = {}
    for selector in selectors:
        frameworks = [name for name in known if fnmatchcase(name, selector.framework)]
        if not frameworks:
            raise SelectorError(f"target {selector}: no framework {selector.framework!r}; there are {', '.join(sorted(known))}")
        argv = selector.argv()
        for framework in frameworks:
            for group in _groups(framework, selector.device):
                why = None if argv or known[framework] else missing(framework, group)
                if why:
                    for device in group.devices:
                        name = selector.name(framework, device if device != "*" else selector.device)
                        absent.setdefault(name, Absent(name, why, selector.explicit))
                    continue
                brought = _program(framework, known)
                built = None if known[framework] or framework not in compiled.CRATES else str(compiled.program(framework))
                own = (path,) if (path := brought or built) else None
                adapter = None if brought else known[framework]
                spec = Spec(framework, adapter, argv or own, group.environment, brought is not None, group.unset)
                wanted.setdefault((spec, group), []).append(selector)
    return [Wanted(spec, group, tuple(chosen)) for (spec, group), chosen in wanted.items()], list(absent.values())


def _groups(framework: str, device: str) -> list[Group]:
    groups = GROUPS.get(framework, _ONE_GROUP)
    fitting = [g for g in groups if "*" in g.devices or any(fnmatchcase(d, device) for d in g.devices)]
    # A device that no group names is asked for all the same: the worker says that it isn't there.
    return fitting or list(_ONE_GROUP)


def install(what: str) -> str:
    """Return the command that installs something beside the suite: an environment that uv made has no pip."""
    uv = importlib.util.find_spec("pip") is None and shutil.which("uv") is not None
    return f"uv pip install --python {shlex.quote(sys.executable)} {what}" if uv else f"pip install {what}"


def missing(framework: str, group: Group) -> str | None:
    """Return why a framework's devices can't be here, in the suite's own interpreter or program, or None."""
    if framework in compiled.CRATES:
        return compiled.missing(framework)
    if importlib.util.find_spec(framework.replace("-", "_")) is None:
        return f"not installed: {install(_EXTRAS.get(framework, framework))}"
    if group.needs and not any(_installed(name) for name in group.needs):
        return f"no plugin for it is installed: {install(group.install)}"
    return None


def _installed(distribution: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def interpreter(spec: Spec) -> str:
    """Return the interpreter or command of a worker, for a sentence."""
    return shlex.join(spec.argv) if spec.argv else sys.executable
