"""`tox run -e stability`: the same answers in another order, and in a fresh process each.

A case that leaves something behind (a default device, a seed, an environment variable) would change
the next one. Runs the matrix as it is, shuffled, and with a process for every question, and compares.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from reports.record import Record, read

ROOT = Path(__file__).parent.parent
#: Answers that hang on the machine's load are compared where they are decided on both sides.
UNSETTLED = "inconclusive"


def run(folder: Path, name: str, extra: list[str]) -> Record:
    """Run the cases once and return the record. Raises SystemExit when nothing could be asked."""
    path = folder / f"{name}.jsonl"
    print(f"running: {name}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", f"--record={path}", *extra], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{done.stdout}\nthe run {name} could not be made (exit status {done.returncode})")
    return read(path)


def answers(record: Record) -> dict[tuple[str, str], str]:
    """Return what each target answered to each case."""
    return {(cell.target, cell.case): cell.answer or cell.status for cell in record.cells.values()}


def differences(left: Mapping[tuple[str, str], str], right: Mapping[tuple[str, str], str]) -> list[str]:
    """Return a line for each cell that two runs answer differently, or that only one has."""
    lines = []
    for target, case in sorted(left.keys() | right.keys()):
        one, other = left.get((target, case), "(no cell)"), right.get((target, case), "(no cell)")
        if one != other and UNSETTLED not in (one, other):
            lines.append(f"{target} {case}: {one} / {other}")
    return lines


def main() -> int:
    """Compare the runs and return 0 when they agree, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.stability", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="how many shuffled runs (default 2)")
    parser.add_argument("--no-fresh", action="store_true", help="leave out the run with a process for every question, which is slow")
    parser.add_argument("pytest", nargs="*", help="options for pytest, behind --, such as -- --target 'jax:*'")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = answers(run(folder, "in order", ["-n", "auto", *chosen.pytest]))
        found = []
        for seed in range(chosen.seeds):
            shuffled = answers(run(folder, f"shuffled {seed}", ["-n", "auto", "--shuffle", str(seed), *chosen.pytest]))
            found += [f"in order / shuffled {seed}: {line}" for line in differences(plain, shuffled)]
        if not chosen.no_fresh:
            fresh = answers(run(folder, "a process each", ["-n", "auto", "--fresh", *chosen.pytest]))
            found += [f"in order / a process each: {line}" for line in differences(plain, fresh)]
    print("\n".join(found) or f"{len(plain)} cells, the same answers each time")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
