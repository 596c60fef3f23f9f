"""`tox run -e bench`: what the suite costs beside pytest and the frameworks' imports, in one run.

Measures `pytest -n auto` on as many items that do nothing, the import of each framework, and the
whole default matrix, twice: the first run fills JAX's compilation cache. A third run leaves out what is
set apart: the work that time cases ask of a device, and cases that need a process of their own.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from cases import catalogue
from reports.record import read

ROOT = Path(__file__).parent.parent
#: The whole may cost so many times what pytest and the slowest import cost alone.
LIMIT = 2.0
FRAMEWORKS = ("torch", "jax", "numpy", "array_api_strict")


@dataclass(frozen=True)
class Cost:
    """Wall and processor seconds of a command and all its children."""

    wall: float
    cpu: float


def cost(command: list[str], where: Path, environment: dict[str, str]) -> Cost:
    """Run a command to its end. Raises SystemExit when it fails to do its work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{done.stdout[-3000:]}\n{' '.join(command)} failed with exit status {done.returncode}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def plain_cases() -> list[str]:
    """Return options that leave out cases that time a device, and those that need a process of their own."""
    return [word for one in catalogue().values() if not (one.alone or one.fresh or one.environment) for word in ("--case", one.id)]


def main() -> int:
    """Print the table and return 0 when the ratio keeps within the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Who forbids Python to keep what it compiled would measure the compiler, in each of some ten processes.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "auto"]
        costs: dict[str, Cost] = {}
        for label, extra in (("first run", []), ("second run", []), ("without time cases and processes of their own", plain_cases())):
            print(f"the whole matrix, {label} …", flush=True)
            costs[label] = cost([*pytest, f"--record={folder / 'record.jsonl'}", *extra], ROOT, environment)
        count = len(read(folder / "record.jsonl").cells)
        (folder / "test_nothing.py").write_text(
            f"import pytest\n\n\n@pytest.mark.parametrize('n', range({count}))\ndef test_nothing(n):\n    pass\n"
        )
        print(f"{count} items that do nothing …", flush=True)
        nothing = cost([*pytest, "test_nothing.py"], folder, dict(os.environ))
        here = [f for f in FRAMEWORKS if importlib.util.find_spec(f)]
        imports = {f: cost([sys.executable, "-c", f"import {f}"], folder, dict(os.environ)) for f in here}
    base = nothing.wall + max(i.wall for i in imports.values())
    rows: list[tuple[str, float, float, str]] = [(f"{count} items that do nothing", nothing.wall, nothing.cpu, "")]
    rows += [(f"import {f}", c.wall, c.cpu, "") for f, c in imports.items()]
    rows += [(f"the whole matrix, {label}", c.wall, c.cpu, f"{c.wall / base:.2f}") for label, c in costs.items()]
    ratio = costs["without time cases and processes of their own"].wall / base
    print(tabulate(rows, headers=["", "wall s", "processor s", "to nothing + slowest import"], floatfmt=".1f"))
    print(f"{count} cells; the ratio without what is apart is {ratio:.2f}, at most {LIMIT:g} is wanted")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
