"""`tox run -e stability`: the same answers in another order, and in a fresh process each.

A case that leaves something behind (a default device, a seed, an environment variable) would change
the next one. Runs the matrix as it is, shuffled, with a process for every question, and on a busy machine, and compares
as the gate does: a gate that finds something between two runs of one version would cry wolf.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reports.compare import compare
from reports.record import Record, read

ROOT = Path(__file__).parent.parent
#: The kind of what one side doesn't decide.
UNSETTLED = "unsettled"


def run(folder: Path, name: str, extra: list[str]) -> Record:
    """Run the cases once and return the record. Raises SystemExit when nothing could be asked."""
    path = folder / f"{name}.jsonl"
    print(f"running: {name}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", f"--record={path}", *extra], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{done.stdout}\nthe run {name} could not be made (exit status {done.returncode})")
    return read(path)


def differences(left: Record, right: Record) -> list[str]:
    """Return a line for each change that the gate finds between two runs; what hangs on the machine's load may be unsettled."""
    found = [one for one in compare(left, right).changes if one.kind != UNSETTLED]
    return [f"{one.target} {one.case}: {one.kind}: {one.old} / {one.new} {one.detail}".rstrip() for one in found]


@contextmanager
def busy() -> Iterator[None]:
    """Keep one core busy."""
    work = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        work.kill()
        work.wait()


def main() -> int:
    """Compare the runs and return 0 when they agree, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.stability", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="how many shuffled runs (default 2)")
    parser.add_argument("--busy", action="store_true", help="one more run, while another process keeps a core busy")
    parser.add_argument("--no-fresh", action="store_true", help="leave out the run with a process for every question, which is slow")
    parser.add_argument("pytest", nargs="*", help="options for pytest, behind --, such as -- --target 'jax:*'")
    chosen = parser.parse_args()
    others = [(f"shuffled {seed}", ["--shuffle", str(seed)]) for seed in range(chosen.seeds)]
    others += [] if chosen.no_fresh else [("a process each", ["--fresh"])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = run(folder, "in order", ["-n", "auto", *chosen.pytest])
        found = []
        for name, extra in others:
            found += [
                f"in order / {name}: {line}" for line in differences(plain, run(folder, name, ["-n", "auto", *extra, *chosen.pytest]))
            ]
        if chosen.busy:
            with busy():
                beside = run(folder, "beside a busy core", ["-n", "auto", *chosen.pytest])
            found += [f"in order / beside a busy core: {line}" for line in differences(plain, beside)]
    print("\n".join(found) or f"{len(plain.cells)} cells, the same answers each time")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
