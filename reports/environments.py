"""Environments that hold one release of a framework each: made by uv in the user's cache folder, and kept there.

What a release needs is taken from the days around its own: with dependencies that came years later an old release
often can't even be imported, and nobody has used it so. An environment is made beside its place and moved there in one
step, so that none is ever half there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from reports import caches
from reports.installable import FRAMEWORKS
from reports.verbs import ProblemError, say

#: The oldest Python that a worker runs on.
_OLDEST = (3, 9)
#: What a release needs may have come so much later than the release itself.
_LATER = timedelta(days=2)
_MADE = "environment.json"
#: How uv says that the index has no such version, and that it can't ask the index at all.
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of|was not found in the package registry")
_NO_INDEX = re.compile(r"failed to fetch|network was disabled|error sending request|could not connect|dns error", re.IGNORECASE)


@dataclass(frozen=True)
class Release:
    """One release of a framework, and what shall be installed beside it."""

    framework: str
    version: str
    extras: str = ""
    beside: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.framework}=={self.version}"

    @property
    def requirements(self) -> tuple[str, ...]:
        """Return what is asked of uv."""
        extras, wanted = FRAMEWORKS[self.framework]
        return (f"{self.framework}{self.extras or extras}=={self.version}", *wanted, *self.beside)


@dataclass(frozen=True)
class Python:
    """An interpreter that is installed here."""

    version: str
    path: str

    @property
    def minor(self) -> tuple[int, ...]:
        """Return what wheels are made for."""
        return tuple(int(part) for part in self.version.split(".")[:2])


@dataclass(frozen=True)
class Environment:
    """An environment that is there."""

    folder: Path
    python: Python
    #: All that is installed, each with its version.
    pins: tuple[str, ...]

    @property
    def interpreter(self) -> Path:
        """Return its interpreter."""
        return _interpreter(self.folder)


def release(text: str, beside: Sequence[str] = ()) -> Release:
    """Take `torch==2.13.0` apart. Raises ProblemError."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        wanted = None
    pins = list(wanted.specifier) if wanted else []
    if wanted is None or len(pins) != 1 or pins[0].operator != "==" or pins[0].version.endswith("*") or wanted.url or wanted.marker:
        raise ProblemError(f"{text!r} is not one release of a framework, such as torch==2.13.0")
    name = wanted.name.lower().replace("_", "-")
    if name not in FRAMEWORKS:
        raise ProblemError(f"{text}: environments are made for {', '.join(FRAMEWORKS)}; of others make two records and use `gate`")
    extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
    for more in beside:
        try:
            Requirement(more)
        except InvalidRequirement as error:
            raise ProblemError(f"--with {more!r} is no requirement such as 'numpy<2' ({str(error).splitlines()[0]})") from error
    return Release(name, pins[0].version, extras, tuple(beside))


def root() -> Path:
    """Return the folder of all environments."""
    return caches() / "environments"


def interpreters(wanted: str | None = None) -> list[Python]:
    """Return the Pythons to try, the suite's own first, then the newest; or the one that somebody wants. Raises ProblemError."""
    if wanted is not None:
        done = _uv("python", "find", "--no-python-downloads", "--no-project", wanted)
        if done.returncode:
            raise ProblemError(f"no Python {wanted} is here: {_said(done.stderr)}; `uv python install {wanted}` gets one")
        path = done.stdout.strip()
        return [Python(_version_of(path), path)]
    own = Python(platform.python_version(), sys.executable)
    found = {own.minor: own}
    done = _uv("python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json")
    for one in json.loads(done.stdout or "[]"):
        parts = one["version_parts"]
        here = Python(one["version"], one["path"])
        if one["implementation"] == "cpython" and one["variant"] == "default" and (parts["major"], parts["minor"]) >= _OLDEST:
            found.setdefault(here.minor, here)
    return [own, *(found[minor] for minor in sorted(found, reverse=True) if minor != own.minor)]


def environment(wanted: Release, pythons: Sequence[Python]) -> Environment:
    """Return an environment that holds a release, made now if it isn't there. Raises ProblemError."""
    for python in pythons:
        if there := _there(_folder(wanted, python)):
            return there
    whys: dict[str, str] = {}
    for python in pythons:
        pins = _resolved(wanted, python)
        if not isinstance(pins, str):
            return _made(wanted, python, pins)
        whys[python.version] = pins
    tried = ", ".join(whys)
    raise ProblemError(f"{wanted} fits no Python that is here ({tried}): {next(iter(whys.values()))}; `uv python install 3.N` gets another")


def pair(old: Release, new: Release, pythons: Sequence[Python]) -> tuple[Environment, Environment]:
    """Return environments of two releases, on one Python if there is one that fits both. Raises ProblemError."""
    one = environment(old, pythons)
    other = environment(new, sorted(pythons, key=lambda python: python != one.python))
    if other.python.minor != one.python.minor:
        with contextlib.suppress(ProblemError):
            one = environment(old, [other.python])
    return one, other


def discard(environment: Environment) -> None:
    """Remove an environment; what uv keeps of it stays in uv's own cache."""
    shutil.rmtree(environment.folder, ignore_errors=True)


# --- making one ------------------------------------------------------------------------------------


def _folder(wanted: Release, python: Python) -> Path:
    facts = json.dumps([wanted.requirements, python.version, platform.system(), platform.machine()])
    minor = ".".join(map(str, python.minor))
    return root() / f"{wanted.framework}-{wanted.version}-py{minor}-{hashlib.sha256(facts.encode()).hexdigest()[:10]}"


def _interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _there(folder: Path) -> Environment | None:
    """Return the environment of a folder, where there is one whose Python is still installed."""
    try:
        said = json.loads((folder / _MADE).read_text("utf-8"))
        found = Environment(folder, Python(said["python"], said["path"]), tuple(said["pins"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if os.access(found.interpreter, os.X_OK) else None


def _resolved(wanted: Release, python: Python) -> list[str] | str:
    """Return everything to install, or why this Python can't have it. Raises ProblemError where no Python could."""
    common = ("pip", "compile", "-", "--python", python.path, "--only-binary", ":all:", "--no-header", "--quiet", "--no-python-downloads")
    alone = _uv(*common, "--no-deps", "--format", "pylock.toml", input=wanted.requirements[0])
    if alone.returncode:
        return _refused(wanted, alone.stderr)
    wheels = [wheel for package in tomllib.loads(alone.stdout)["packages"] for wheel in package.get("wheels", ())]
    moments = [wheel["upload-time"] for wheel in wheels if "upload-time" in wheel]
    asked = "\n".join(wanted.requirements)
    then = ("--exclude-newer", _text(max(moments) + _LATER)) if moments else ()
    for newest in (then, ()) if then else ((),):  # what somebody wants beside it may be newer
        done = _uv(*common, "--no-annotate", *newest, input=asked)
        if not done.returncode:
            return [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    return _refused(wanted, done.stderr)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _refused(wanted: Release, text: str) -> str:
    said = _said(text)
    if _NO_INDEX.search(text):
        raise ProblemError(f"{wanted}: the package index can't be asked ({said}); environments that were made before need no index")
    if _NO_VERSION.search(said) and f"of {wanted.framework}" in said:
        raise ProblemError(f"there is no {wanted}: {said}; `python -m reports history {wanted.framework} --releases` lists those there are")
    if "No solution found" not in text:
        raise ProblemError(f"{wanted}: uv can't tell what it needs: {said}")
    return said


def _made(wanted: Release, python: Python, pins: Sequence[str]) -> Environment:
    """Make an environment beside its place, and move it there. Raises ProblemError."""
    folder = _folder(wanted, python)
    new = folder.with_name(f".{folder.name}-{os.getpid()}")
    say(f"making an environment: {wanted}, Python {python.version} …")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        for words, text in (
            (("venv", "--no-project", "--relocatable", "--no-python-downloads", "--python", python.path, str(new)), ""),
            (("pip", "install", "--python", str(_interpreter(new)), "--only-binary", ":all:", "--no-deps", "-r", "-"), "\n".join(pins)),
        ):
            done = _uv("--quiet", *words, input=text)
            if done.returncode:
                raise ProblemError(f"{wanted}: uv can't make the environment: {_said(done.stderr)}")
        (new / _MADE).write_text(json.dumps({"python": python.version, "path": python.path, "pins": list(pins)}), "utf-8")
        if _there(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)  # its Python is gone
        with contextlib.suppress(OSError):  # another run was faster
            new.rename(folder)
    except OSError as error:
        where = error.filename or new
        raise ProblemError(f"{where} can't be written ({error.strerror or error}); XDG_CACHE_HOME names another place") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    there = _there(folder)
    if there is None:
        raise ProblemError(f"{wanted}: the environment {folder} has no interpreter that runs; remove it and ask again")
    return there


def _sweep(folder: Path) -> None:
    """Remove what runs that were ended from outside have left behind."""
    for left in folder.glob(".*-*"):
        number = left.name.rpartition("-")[2]
        if number.isdigit() and int(number) != os.getpid():
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                shutil.rmtree(left, ignore_errors=True)
            except OSError:
                continue


# --- uv --------------------------------------------------------------------------------------------


def uv(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run uv to its end. Raises ProblemError where there is none."""
    return _uv(*words, **how)


def _uv(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": os.pathsep.join([*_places(), os.environ.get("PATH", "")])}
    program = shutil.which("uv", path=os.pathsep.join([environment["PATH"], str(Path(sys.executable).parent)]))
    if program is None:
        raise ProblemError("environments are made by uv, which isn't here: pip install uv")
    # An environment that is active would be taken for the one that is meant.
    environment = {key: value for key, value in environment.items() if key not in ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH")}
    return subprocess.run([program, "--color", "never", *words], env=environment, capture_output=True, text=True, **{"input": "", **how})


def _places() -> Iterable[str]:
    """Return where pyenv keeps its Pythons: uv finds those that are on the path, and pyenv puts one of them there."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [(folder, re.fullmatch(r"\d+\.\d+\.\d+", folder.name)) for folder in (versions.iterdir() if versions.is_dir() else ())]
    return [str(folder / "bin") for folder, fits in sorted(found, key=lambda one: _order(one[0].name), reverse=True) if fits]


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".")) if re.fullmatch(r"\d+(\.\d+)*", name) else ()


def _version_of(path: str) -> str:
    done = subprocess.run([path, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True)
    return done.stdout.strip()


def _said(text: str) -> str:
    """Return what uv says of a failure, in a line."""
    lines = [re.sub(r"^(error|cause|hint|Caused by):\s*", "", line.strip(" ╰─▶×│├")) for line in text.splitlines()]
    told = " ".join(line for line in lines if line and not line.startswith(("warning", "No solution found when resolving")))
    return re.sub(r"\s+", " ", told)[:400].rstrip(". ") or "it says nothing"


def newer(one: str, other: str) -> bool:
    """Say whether a version is newer than another."""
    return Version(one) > Version(other)
