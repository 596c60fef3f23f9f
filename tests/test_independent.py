"""The suite against plain programs: the same question in a framework's own API, on the same machine.

The programs in `tests/independent/`, scripts and crates, know nothing of the suite. They are run first,
then the suite is asked for the very same cells, and answers and facts are compared one by one.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adapters.compiled import program
from cases.case import AREAS, catalogue
from reports import history
from reports.cells import Cell
from reports.compare import bare
from reports.derive import Side
from reports.record import read

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(__file__).parent / "independent"
#: Script -> the package that it needs.
FRAMEWORKS = {"torch": "torch", "jax": "jax", "numpy": "numpy", "strict": "array_api_strict"}
#: Crates, whose programs are built by `tox run -e rust` or by hand.
CRATES = sorted(manifest.parent.name for manifest in SCRIPTS.glob("*/Cargo.toml"))
#: So many cells are compared where every framework is installed.
LEAST = 30
#: A fact of a script -> the facet of a cell that says the same.
FACETS = {"error": "error.type", "dtype": "result.dtype", "value": "value", "healthy": "device works"}

Key = tuple[str, str]


def built(crate: str) -> Path:
    """Return where a crate's program is: beside its framework's worker, so that the framework is built once."""
    return program(crate).with_name(f"{crate}-questions")


def start(framework: str) -> subprocess.Popen[str]:
    """Start a program, in a process that can't find the suite."""
    # What chooses a default device is left out, as the suite leaves it out.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH", "BURN_DEVICE"))}
    command = [str(built(framework))] if framework in CRATES else [sys.executable, str(SCRIPTS / f"{framework}_questions.py")]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(script: subprocess.Popen[str]) -> dict[Key, dict[str, Any]]:
    """Return what a script says, by target and case."""
    out, problems = script.communicate(timeout=300)
    assert script.returncode == 0, problems
    facts = [json.loads(line) for line in out.splitlines()]
    found = {(f["target"], f["case"]): f for f in facts}
    assert len(found) == len(facts), "a script asks a question twice"
    return found


def asked(keys: list[Key], record: Path) -> dict[Key, Cell]:
    """Let the suite ask exactly these cells, as users do, and return them."""
    targets = [f"--target={target}" for target in dict.fromkeys(target for target, _ in keys)]
    items = [f"cases/__init__.py::{target}::{case}" for target, case in keys]
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


@pytest.mark.slow
def test_plain_scripts_and_the_suite_give_the_same_answers(tmp_path: Path, subtests: pytest.Subtests) -> None:
    # One test for all of them, so that each framework is imported twice and no more often.
    here = [*(framework for framework, package in FRAMEWORKS.items() if find_spec(package)), *(c for c in CRATES if built(c).is_file())]
    with ExitStack() as ending:
        scripts = {framework: ending.enter_context(start(framework)) for framework in here}
        for script in scripts.values():
            ending.callback(script.kill)
        plain = {framework: said(script) for framework, script in scripts.items()}
    keys = [key for answers in plain.values() for key in answers]
    cells = asked(keys, tmp_path / "record.jsonl") if keys else {}
    assert set(cells) == set(keys)
    for framework in (*FRAMEWORKS, *CRATES):
        with subtests.test(framework):
            if framework not in here:
                pytest.skip(f"{framework} is not installed, or its program not built")
            differ = [line for key, facts in plain[framework].items() for line in disagreements(facts, cells[key])]
            assert not differ, "\n".join(["a script and the suite disagree", *differ])
    if set(FRAMEWORKS) <= set(here):
        assert len(keys) >= LEAST
        assert {case.partition("/")[0] for _, case in keys} == set(AREAS)


def test_what_releases_answered_is_what_plain_scripts_saw_there() -> None:
    """Compare what is recorded with `releases.jsonl`, to which `PYTHON tests/independent/FRAMEWORK_questions.py` was written.

    PYTHON was an environment with that release alone. Other releases than today's aren't here, so that what they said is kept.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for text in (SCRIPTS / "releases.jsonl").read_text("utf-8").splitlines():
        facts = json.loads(text)
        found.setdefault((facts["target"].partition(":")[0], facts["version"]), []).append(facts)
    for (framework, version), answers in found.items():
        cases = {facts["case"] for facts in answers}
        record = read(history.RECORDED / framework / f"{version}.jsonl.xz", cases | {catalogue()[case].control or case for case in cases})
        for target in record.targets.values():
            side = Side(target, {case: cell for (of, case), cell in record.cells.items() if of == target.name})
            for facts in [facts for facts in answers if facts["target"] == bare(target)]:
                assert disagreements(facts, side.cell(facts["case"])) == []
                answers.remove(facts)
        assert answers == [], "it isn't recorded"


def test_plain_scripts_confirm_changes_between_releases() -> None:
    seen: dict[tuple[str, str, str], set[str]] = {}
    for text in (SCRIPTS / "releases.jsonl").read_text("utf-8").splitlines():
        facts = json.loads(text)
        answer = f"{facts['answer']} {facts.get('error', '')}"
        seen.setdefault((facts["target"].partition(":")[0], facts["target"], facts["case"]), set()).add(answer)
    changed = Counter(framework for (framework, _, _), answers in seen.items() if len(answers) > 1)
    assert min(changed["jax"], changed["torch"]) >= 3, changed


def test_a_disagreement_names_both() -> None:
    facts = {"target": "x:y", "case": "placement/add/host-accelerator", "answer": "raises", "error": "TypeError"}
    cell = Cell("x:y", facts["case"], "", "answered", "garbage", "wrong", {"error.type": "ValueError"}, "measured", None, None)
    differ = disagreements(facts, cell)
    assert len(differ) == 2
    assert "the script says raises, the suite garbage" in differ[0]
    assert "TypeError for the script, ValueError for the suite" in differ[1]
    assert not disagreements({**facts, "answer": "garbage", "error": "ValueError"}, cell)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_script_imports_nothing_but_the_framework_and_the_standard_library(framework: str) -> None:
    tree = ast.parse((SCRIPTS / f"{framework}_questions.py").read_text("utf-8"))
    names = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    names += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    # JAX can't be installed without NumPy.
    allowed = {FRAMEWORKS[framework], "numpy"} if framework == "jax" else {FRAMEWORKS[framework]}
    assert {name.partition(".")[0] for name in names} <= allowed | sys.stdlib_module_names


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_depends_on_nothing_of_the_suite(crate: str) -> None:
    manifest = tomllib.loads((SCRIPTS / crate / "Cargo.toml").read_text("utf-8"))
    assert not [name for name, wanted in manifest["dependencies"].items() if "path" in (wanted if isinstance(wanted, dict) else {})]
