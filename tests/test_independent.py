"""The suite against plain scripts: the same question in a framework's own API, on the same machine.

The scripts in `tests/independent/` know nothing of the suite. Each is run alone, then the suite is
asked for the very same cells, and answers and facts are compared one by one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reports.cells import Cell
from reports.record import read

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(__file__).parent / "independent"
#: Script -> the package that it needs, and how many cells it compares at least.
FRAMEWORKS = {"torch": ("torch", 16), "jax": ("jax", 12), "numpy": ("numpy", 6), "strict": ("array_api_strict", 8)}
#: So many cells are compared where every framework is installed.
LEAST = 30
#: A fact of a script -> the facet of a cell that says the same.
FACETS = {"error": "error.type", "dtype": "result.dtype", "value": "value"}

pytestmark = pytest.mark.slow


def start(script: Path) -> subprocess.Popen[str]:
    """Start a script, which knows nothing of the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
    return subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers(process: subprocess.Popen[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what a script says, by target and case."""
    out, problems = process.communicate(timeout=300)
    assert process.returncode == 0, problems
    said = [json.loads(line) for line in out.splitlines()]
    found = {(facts["target"], facts["case"]): facts for facts in said}
    assert len(found) == len(said), "the script asks a question twice"
    return found


def conformance(cells: list[tuple[str, str]], record: Path) -> dict[tuple[str, str], Cell]:
    """Let the suite ask exactly these cells, as users do, and return them."""
    targets = [f"--target={target}" for target in dict.fromkeys(target for target, _ in cells)]
    items = [f"cases/__init__.py::{target}::{case}" for target, case in cells]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--record={record}", *targets, *items]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    # An answer that deviates from its contract is an answer.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = read(record)
    assert found.complete, found.why
    return {(cell.target, cell.case): cell for cell in found.cells.values()}


def disagreements(facts: dict[str, Any], cell: Cell) -> list[str]:
    """Name every point in which a script and the suite differ, with what both say."""
    where = f"{facts['target']} {facts['case']}"
    found = []
    if facts["answer"] != cell.outcome:
        found.append(f"{where}: the script says {facts['answer']}, the suite {cell.outcome}{f' ({cell.why})' if cell.why else ''}")
    for fact, facet in FACETS.items():
        if fact in facts and facet in cell.facets and facts[fact] != cell.facets[facet]:
            found.append(f"{where}: {facet} is {facts[fact]} for the script, {cell.facets[facet]} for the suite")
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_plain_script_and_the_suite_give_the_same_answers(framework: str, tmp_path: Path) -> None:
    package, least = FRAMEWORKS[framework]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    said = independent(SCRIPTS / f"{framework}_questions.py")
    assert len(said) >= least
    asked = conformance(list(said), tmp_path / "record.jsonl")
    assert set(asked) == set(said)
    differ = [line for key, facts in said.items() for line in disagreements(facts, asked[key])]
    assert not differ, "\n".join(["the script and the suite disagree:", *differ])


def test_enough_cells_of_every_area_are_compared_where_everything_is_installed() -> None:
    assert sum(least for _, least in FRAMEWORKS.values()) >= LEAST
    scripts = {path.name: path.read_text("utf-8") for path in SCRIPTS.glob("*.py")}
    assert set(scripts) == {f"{framework}_questions.py" for framework in FRAMEWORKS}
    for area in ("placement", "scalars", "moving", "dtypes", "time"):
        asking = [name for name, text in scripts.items() if f'"{area}/' in text]
        assert len(asking) >= 3, f"{area} is asked of {asking} alone"


def test_a_disagreement_names_both() -> None:
    facts = {"target": "x:y", "case": "placement/add/host-accelerator", "answer": "raises", "error": "TypeError"}
    cell = Cell("x:y", facts["case"], "", "answered", "garbage", "wrong", {"error.type": "ValueError"}, "measured", None, None)
    said = disagreements(facts, cell)
    assert len(said) == 2
    assert "the script says raises, the suite garbage" in said[0]
    assert "TypeError for the script, ValueError for the suite" in said[1]
    assert not disagreements({**facts, "answer": "garbage", "error": "ValueError"}, cell)


def test_the_scripts_import_nothing_of_the_suite() -> None:
    for path in SCRIPTS.glob("*.py"):
        imported = [line.split()[1].partition(".")[0] for line in path.read_text("utf-8").splitlines() if line.startswith(("import ", "from "))]
        assert set(imported) <= {"__future__", "collections", "typing", *sys.stdlib_module_names, "torch", "jax", "numpy", "array_api_strict"}
