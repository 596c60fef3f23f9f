"""`tox run -e bench`: what the suite costs beside pytest and the frameworks' imports, in one run.

Measures the whole default matrix, twice: the first run fills JAX's compilation cache. Then, in turn and several times, since
machines are shared and change their pace within minutes: the matrix without what is set apart (the work that time cases ask of a
device, cases that need a process of their own), `pytest -n auto` on as many items that do nothing, and the import of each framework.
What counts is the median of each.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from cases import catalogue
from reports.record import read

ROOT = Path(__file__).parent.parent
#: The whole may cost so many times what pytest and the slowest import cost alone.
LIMIT = 2.0
ROUNDS = 3
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


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs))


def main() -> int:
    """Print the table and return 0 when the ratio keeps within the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Who forbids Python to keep what it compiled would measure the compiler, in each of some ten processes.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "auto"]
        matrix = [*pytest, f"--record={folder / 'record.jsonl'}"]
        once: dict[str, Cost] = {}
        for label in ("the whole matrix, first run", "the whole matrix, second run"):
            print(f"{label} …", flush=True)
            once[label] = cost(matrix, ROOT, environment)
        wholes: list[Cost] = []
        nothings: list[Cost] = []
        imported: list[dict[str, Cost]] = []
        here = [f for f in FRAMEWORKS if importlib.util.find_spec(f)]
        for number in range(1, ROUNDS + 1):
            print(f"in turn: without what is apart, items that do nothing, imports; {number} of {ROUNDS} …", flush=True)
            wholes.append(cost([*matrix, *plain_cases()], ROOT, environment))
            count = len(read(folder / "record.jsonl").cells)
            (folder / "test_nothing.py").write_text(
                f"import pytest\n\n\n@pytest.mark.parametrize('n', range({count}))\ndef test_nothing(n):\n    pass\n"
            )
            nothings.append(cost([*pytest, "test_nothing.py"], folder, dict(os.environ)))
            imported.append({f: cost([sys.executable, "-c", f"import {f}"], folder, dict(os.environ)) for f in here})
    imports = {f: median([costs[f] for costs in imported]) for f in here}
    whole, nothing = median(wholes), median(nothings)
    base = nothing.wall + max(i.wall for i in imports.values())
    ratio = whole.wall / base
    rows: list[tuple[str, float, float, str]] = [(f"{count} items that do nothing", nothing.wall, nothing.cpu, "")]
    rows += [(f"import {f}", c.wall, c.cpu, "") for f, c in imports.items()]
    rows += [(label, c.wall, c.cpu, f"{c.wall / base:.2f}") for label, c in once.items()]
    rows += [("… without time cases and processes of their own", whole.wall, whole.cpu, f"{ratio:.2f}")]
    print(tabulate(rows, headers=["", "wall s", "processor s", "to nothing + slowest import"], floatfmt=".1f", disable_numparse=[3]))
    rounds = zip(wholes, nothings, imported, strict=True)
    each = ", ".join(f"{w.wall / (n.wall + max(i.wall for i in m.values())):.2f}" for w, n, m in rounds)
    print(f"{count} cells; the ratio without what is apart is {ratio:.2f} (by rounds {each}), at most {LIMIT:g} is wanted")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
