"""Which releases of a framework there are, and which of them somebody means."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from packaging.version import InvalidVersion, Version

from reports.environments import Python, uv
from reports.verbs import ProblemError

_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)


def known(framework: str, pythons: Sequence[Python]) -> list[str]:
    """Return the releases that the package index has for the Pythons that are here, oldest first. Raises ProblemError.

    Asked through pip, which names only what an interpreter could install; so each of them is asked.
    """
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda python: _listed(framework, python), pythons))
    found = {version for versions, _ in answers for version in versions}
    if not found:
        raise ProblemError(f"the package index can't be asked for the releases of {framework}: {answers[0][1]}")
    return sorted(found, key=Version)


def _listed(framework: str, python: Python) -> tuple[list[str], str]:
    done = uv("tool", "run", "--quiet", "--no-python-downloads", "--python", python.path, "pip", "index", "versions", framework)
    listed = _LISTED.search(done.stdout)
    if listed is None:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip() and "experimental" not in line]
        return [], " ".join(said[-2:])[:300] or f"uv ended with {done.returncode}"
    return [text.strip() for text in listed[1].split(",")], ""


def chosen(framework: str, words: Iterable[str], every: str, there: Callable[[], Sequence[str]]) -> list[str]:
    """Return the releases that are meant: versions, and ranges such as `0.4.26..0.10.2`, oldest first. Raises ProblemError."""
    found: set[str] = set()
    for word in (part for text in words for part in re.split(r"[,\s]+", text) if part):
        first, dots, last = word.partition("..")
        if not dots:
            found.add(str(_version(word)))
            continue
        listed = list(there())
        for end in filter(None, (first, last)):
            if end not in listed:
                near = sorted(listed, key=lambda one: abs(listed.index(one) - _place(listed, end)))[:3]
                raise ProblemError(f"there is no {framework} {end} for the Pythons that are here; near it are {', '.join(near)}")
        if first and last and Version(first) > Version(last):
            raise ProblemError(f"{word}: a range begins with the older release, {last}..{first}")
        low, high = (Version(end) if end else None for end in (first, last))
        within = [one for one in listed if (low is None or Version(one) >= low) and (high is None or Version(one) <= high)]
        found.update(within if every == "patch" else _minors(framework, within))
    return sorted(found, key=Version)


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise ProblemError(f"{text!r} is no version; give versions such as 0.4.30, or ranges such as 0.4.26..0.10.2") from None


def _place(listed: Sequence[str], text: str) -> int:
    wanted = _version(text)
    return sum(Version(one) < wanted for one in listed)


def _minors(framework: str, within: Sequence[str]) -> set[str]:
    """Return the last release of each minor version, and both ends."""
    last: dict[Hashable, str] = {}
    for one in within:
        release = Version(one).release
        last[release[:3] if framework == "jax" and release[:2] == (0, 4) else release[:2]] = one  # JAX made two years of 0.4.x
    return {*last.values(), *within[:1]}
