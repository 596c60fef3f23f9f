"""What a worker is handed over: all that it needs, for Python 3.9 with a framework and nothing else."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from pathlib import Path

import pytest

from adapters.process import sources
from adapters.worker import ADAPTERS

ROOT = Path(__file__).parent.parent
#: What an adapter may import besides the standard library: its framework, and what that can't be installed without.
FRAMEWORKS = {"torch": {"torch"}, "jax": {"jax", "numpy"}, "numpy": {"numpy"}, "array-api-strict": {"array_api_strict", "numpy"}}


@pytest.mark.parametrize("framework", [*ADAPTERS, "somebodys"])
def test_a_worker_gets_what_it_imports_and_imports_nothing_else(framework: str) -> None:
    handed = json.loads(sources(framework))
    assert {"adapters", "adapters.worker", "adapters.base", "adapters.interpret", "adapters.timing"} <= handed.keys()
    assert not any("phrases" in name or "pool" in name for name in handed), "the controller's side stays there"
    allowed = sys.stdlib_module_names | FRAMEWORKS.get(framework, set())
    for name, text in handed.items():
        tree = ast.parse(text, feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert f"adapters.{node.module}" in handed, f"{name} imports {node.module}"
            elif isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] in allowed, name
            elif isinstance(node, ast.Import):
                assert {a.name.partition(".")[0] for a in node.names} <= allowed, name


def test_every_module_that_is_handed_over_is_checked_as_python_3_9() -> None:
    handed = {name.partition(".")[2] for framework in ADAPTERS for name in json.loads(sources(framework))} - {""} | {"boot"}
    checked = {Path(word).stem for word in (ROOT / "tox.ini").read_text().split() if word.startswith("adapters/") and word.endswith(".py")}
    assert checked == handed
    (spared,) = (
        key for key in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"] if "adapters" in key
    )
    assert set(spared.partition("{")[2].partition("}")[0].split(",")) == handed
