"""A uv that installs nothing: it makes environments whose Python is this one, with a numpy that says which release it is.

Releases before 2 have no `stack`, so that an upgrade has something to find.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

#: What the index has.
RELEASES = ("1.0", "1.1", "1.2", "2.0", "2.1")
#: Releases that only another Python could have.
ELSEWHERE = ("1.1",)
OTHER = "3.9.1"


def install(folder: Path) -> Path:
    """Put it into a folder that can stand on the path, and return that."""
    place = folder / "bin"
    place.mkdir(parents=True)
    program = place / "uv"
    program.write_text(f"#!/bin/sh\nexec env PYTHONPATH={Path(__file__).parent.parent} {sys.executable} -m tests.fake_uv {folder} \"$@\"\n")
    program.chmod(0o755)
    return place


def main(folder: Path, words: list[str]) -> int:
    """Do what uv would do. What was asked of it stands in a file."""
    with (folder / "asked").open("a") as file:
        file.write(" ".join(words) + "\n")
    if os.environ.get("FAKE_UV") == "offline":
        return _fail("error: Failed to fetch: `https://index.invalid/simple/numpy/`\n  cause: dns error")
    words = [word for word in words if word not in ("--color", "never", "--quiet")]
    match words[0]:
        case "python":
            return _python(words)
        case "venv":
            Path(words[-1], "bin").mkdir(parents=True)
        case "pip" if words[1] == "compile":
            return _compile(words)
        case "pip":
            _install(Path(words[words.index("--python") + 1]), sys.stdin.read())
        case "tool":
            print(f"numpy (2.1)\nAvailable versions: {', '.join(reversed(RELEASES))}")
    return 0


def _python(words: list[str]) -> int:
    if words[1] == "find":
        return _fail(f"error: No interpreter found for Python {words[-1]}")
    parts = dict(zip(("major", "minor", "patch"), map(int, OTHER.split(".")), strict=True))
    one = {"version": OTHER, "version_parts": parts, "path": "/other/python", "implementation": "cpython", "variant": "default"}
    print(json.dumps([one]))
    return 0


def _compile(words: list[str]) -> int:
    wanted = sys.stdin.read().split()
    version = wanted[0].partition("==")[2]
    if version not in RELEASES:
        return _fail(f"error: No solution found\n  cause: Because there is no version of numpy=={version} and you require numpy=={version}")
    if version in ELSEWHERE and words[words.index("--python") + 1] != "/other/python":
        return _fail(f"error: No solution found\n  cause: Because numpy=={version} has no wheels with a matching Python ABI tag")
    if "pylock.toml" in words:
        print(f'[[packages]]\nname = "numpy"\nversion = "{version}"\nwheels = [{{ upload-time = 2023-11-02T21:51:56Z }}]')
    else:
        print("# made by nobody\n" + "\n".join(wanted))
    return 0


def _install(python: Path, pins: str) -> None:
    version = pins.split()[0].partition("==")[2]
    site = python.parent.parent / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        textwrap.dedent(f"""\
            import numpy
            numpy.__version__ = {version!r}
            def refused(*_, **__):
                raise TypeError("stack came with numpy 2")
            if numpy.__version__ < "2":
                numpy.stack = refused
        """)
    )
    # Wherever the environment is moved, its own folder is beside its interpreter.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$(dirname "$0")/../site" exec {sys.executable} "$@"\n')
    python.chmod(0o755)


def _fail(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
