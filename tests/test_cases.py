"""A lint over the cases and the contracts: data is checked like code."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import cases.case
from adapters.compiled import CRATES
from cases import Case, catalogue
from cases.case import AREAS, ENVIRONMENTS, CatalogueError
from cases.contract import PINS, Contract, ContractError, check, contract_for, contracts, read
from cases.lab import Lab
from cases.reading import walk
from cases.words import EFFECTS, LOOKS, MISSING, OPERATIONS, ROLES, SCOPES, SPELLINGS

ROOT = Path(__file__).parent.parent
CASES = catalogue()
CLAIMS = tomllib.loads((ROOT / "tests" / "claims.toml").read_text("utf-8"))["claims"]
#: What a case must not speak of: its question is everybody's.
_NAMES = "torch|pytorch|jax|xla|candle|burn|cuda|mps|metal|tinygrad|tensorflow"
FRAMEWORKS = re.compile(rf"(?<![a-z])({_NAMES}|numpy)(?![a-z])", re.I)
#: NumPy is also how others give data away, which one operation asks for.
OTHERS = re.compile(rf"(?<![a-z])({_NAMES})(?![a-z])", re.I)
#: From one of two dtypes to the other, and one device for every operand: the same program under two names.
TWICE = {
    ("dtypes/int32/cast-from", "dtypes/float32/cast-to"),
    ("dtypes/int32/cast-to", "dtypes/float32/cast-from"),
    ("placement/where-condition/device-device", "placement/where-branch/device-device"),
}
ADAPTERS = ("torch", "jax", "numpy", "array_api_strict")


def arguments(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the devices, dtypes, references and data that a program passes to its operations."""
    stack: list[Any] = [[step.get("args", []), list(step.get("kw", {}).values())] for step in walk(case.program.steps)]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            yield one


# --- each case -----------------------------------------------------------------------------------


def test_a_condition_is_compared_since_not_every_framework_has_a_dtype_for_truths() -> None:
    choices = [case for name, case in CASES.items() if name.startswith("placement/where-")]
    assert choices
    assert not any("bool" in case.program.dtypes or "less" not in case.program.operations for case in choices)


def test_every_case_asks_a_question_and_says_why() -> None:
    for name, case in CASES.items():
        assert case.area in AREAS, name
        assert re.fullmatch(r"\S(.*\S)?\?", case.question), name
        assert "  " not in case.question, name
        assert re.fullmatch(r"\S.{20,}\.", case.why), name


def test_no_two_cases_ask_the_same_but_where_one_program_is_two_questions() -> None:
    asked: dict[tuple[str, str, str | None, bool], list[str]] = {}
    for name, case in CASES.items():
        asked.setdefault((json.dumps(case.program.marks), case.program.digest, case.environment, case.fresh), []).append(name)
    assert {tuple(names) for names in asked.values() if len(names) > 1} <= TWICE


def test_every_case_has_answers_of_several_classes() -> None:
    for name, case in CASES.items():
        assert len(case.answers.words) > 1, name
        assert len({case.answers.class_of(word) for word in case.answers.words}) > 1, name
        assert all(meaning.strip() for _, meaning in case.answers.words.values()), name


def test_every_case_has_a_control_that_leads_to_one_without() -> None:
    for name, case in CASES.items():
        seen = [name]
        while case.control is not None:
            assert case.control in CASES, f"{case.id}: no case {case.control}"
            assert case.control not in seen, f"{' -> '.join([*seen, case.control])} goes round"
            seen.append(case.control)
            case = CASES[case.control]


def test_a_control_needs_no_role_that_its_case_lacks() -> None:
    for name, case in CASES.items():
        if case.control is not None:
            needed = CASES[case.control].program.roles - {"device"}
            assert needed <= case.program.roles | {"host"}, f"{name}: its control {case.control} needs {sorted(needed)}"


def test_no_case_names_a_framework() -> None:
    for name, case in CASES.items():
        words = " ".join(text for _, text in case.answers.words.values())
        for text in (name, case.question, case.why, words, json.dumps(case.program.wire())):
            found = (OTHERS if "to_numpy" in case.program.operations else FRAMEWORKS).search(text)
            assert not found, f"{name}: {found} in {text[:200]!r}"


def test_no_module_of_cases_names_a_framework_in_its_code() -> None:
    for path in (ROOT / "cases").glob("*.py"):
        if path.name in ("contract.py", "errors.py"):  # contracts are about frameworks, and the texts of errors are theirs
            continue
        assert not OTHERS.search(path.read_text("utf-8")), path.name


def test_every_claim_that_a_case_names_is_on_the_list() -> None:
    assert all(re.fullmatch(r"D[123]\.\d+", claim) and question.endswith("?") for claim, question in CLAIMS.items())
    for name, case in CASES.items():
        assert set(case.claims) <= set(CLAIMS), f"{name}: {set(case.claims) - set(CLAIMS)}"


# --- the language --------------------------------------------------------------------------------


def test_every_operation_is_used_by_some_case() -> None:
    steps = [step for case in CASES.values() for step in walk(case.program.steps) if "op" in step]
    timed = {step["kw"]["op"] for step in steps if step["op"] == "time"}
    assert set(OPERATIONS) | set(LOOKS) == {step["op"] for step in steps} | timed


def test_every_construct_is_used_by_some_case() -> None:
    steps = [step for case in CASES.values() for step in walk(case.program.steps)]
    assert {step["scope"] for step in steps if "scope" in step} == set(SCOPES)
    assert any(step.get("attempt") for step in steps)
    assert any(not step.get("attempt") for step in steps)
    assert set(EFFECTS) <= {step.get("op") for step in steps}
    assert {case.environment for case in CASES.values()} == {None, *ENVIRONMENTS}
    assert any(case.fresh for case in CASES.values())
    assert any(case.alone for case in CASES.values())


def test_every_device_and_spelling_is_used_by_some_case() -> None:
    places = [arg for case in CASES.values() for arg in arguments(case) if "device" in arg]
    assert {place["device"] for place in places} == {*ROLES, *MISSING}
    assert {place["spelled"] for place in places} == set(SPELLINGS)


def test_every_axis_of_an_operand_is_used_by_some_case(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[str, set[Any]] = {}
    make = Lab.tensor

    def spy(lab: Lab, *args: Any, **axes: Any) -> Any:
        for axis, value in axes.items():
            used.setdefault(axis, set()).add(value) if axis != "imag" else None
        return make(lab, *args, **axes)

    monkeypatch.setattr(Lab, "tensor", spy)
    for case in CASES.values():
        case.trace(Lab())
    assert used["commitment"] >= {"uncommitted", "scoped"}
    assert used["memory"] >= {"pinned-host"}
    assert used["layout"] >= {"offset-view", "expanded", "transposed"}
    assert used["alignment"] >= {"misaligned"}
    assert used["shared"] >= {True}
    assert {"aligned", "misaligned"} <= {
        step["args"][1] for case in CASES.values() for step in walk(case.program.steps) if step.get("op") == "buffer"
    }


def test_a_case_whose_control_is_not_a_case_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = CASES["placement/add/device-device"]
    stray = Case("placement/stray", one.question, one.why, one.answers, one.trace, control="placement/nowhere")
    monkeypatch.setitem(cases.case._CASES, stray.id, stray)
    catalogue.cache_clear()
    try:
        with pytest.raises(CatalogueError, match="placement/stray: its control 'placement/nowhere' is not a case"):
            catalogue()
    finally:
        monkeypatch.undo()
        catalogue.cache_clear()


def test_a_case_that_misuses_the_language_is_named_when_its_program_is_looked_at() -> None:
    one = CASES["placement/add/device-device"]
    stray = Case("placement/stray", one.question, one.why, one.answers, lambda lab: lab.attempt.sing(), control=None)
    with pytest.raises(CatalogueError, match="case placement/stray: no operation 'sing'"):
        stray.program  # noqa: B018


@pytest.mark.parametrize("control", [{"alone": True}, {"environment": "wide-dtypes"}])
def test_a_case_that_would_wait_for_a_later_control_is_refused(monkeypatch: pytest.MonkeyPatch, control: dict[str, Any]) -> None:
    one = CASES["placement/add/device-device"]
    for stray in (
        Case("placement/stray", one.question, one.why, one.answers, one.trace, control="placement/late"),
        Case("placement/late", one.question, one.why, one.answers, one.trace, control=None, **control),
    ):
        monkeypatch.setitem(cases.case._CASES, stray.id, stray)
    catalogue.cache_clear()
    try:
        with pytest.raises(CatalogueError, match="placement/stray: its control 'placement/late' is asked later"):
            catalogue()
    finally:
        monkeypatch.undo()
        catalogue.cache_clear()


# --- adapters, which are read and not imported ---------------------------------------------------


def methods(module: str, *classes: str) -> set[str]:
    """Return the public methods of classes in an adapter's module (of all, when none is named)."""
    tree = ast.parse((ROOT / "adapters" / f"{module}.py").read_text("utf-8"))
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and (not classes or node.name in classes)]
    return {f.name for body in bodies for f in body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")}


def rows(crate: str) -> set[str]:
    """Return the operations in the tables of a worker in Rust."""
    sources = (ROOT / "adapters" / "rust" / crate / "src").glob("*.rs")
    return {name for path in sources for name in re.findall(r"^        (\w+)\(\w+: .*\)(?: as|\n| =>)", path.read_text("utf-8"), re.M)}


def called() -> set[str]:
    """Return what the worker itself asks an adapter for beside the operations of the case language."""
    tree = ast.parse((ROOT / "adapters" / "timing.py").read_text("utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in attributes if ast.unparse(node.value) in ("adapter", "self.adapter")}


def test_every_operation_is_offered_by_some_adapter() -> None:
    offered = set().union(*(methods(module) for module in ADAPTERS), *(rows(crate) for crate in CRATES))
    assert set(OPERATIONS) - offered == set()


@pytest.mark.parametrize("module", ADAPTERS)
def test_no_adapter_offers_an_operation_that_the_language_does_not_have(module: str) -> None:
    known = methods("base", "Adapter") | set(OPERATIONS) | called() | {scope.replace("-", "_") for scope in SCOPES}
    assert methods(module) - known == set()


# --- contracts -----------------------------------------------------------------------------------


def test_contracts_name_existing_cases_and_answers_and_give_sources() -> None:
    check(CASES, {name: case.answers.words for name, case in CASES.items()})
    for contract in contracts().values():
        for entry in (*contract.promises, *contract.deviations):
            assert entry.source.startswith("https://"), f"{contract.framework}: {entry}"


# JAX has no modules: what others keep in one is a tree of arrays there.
@pytest.mark.parametrize(
    ("framework", "area"), [*(("torch", area) for area in AREAS), *(("jax", area) for area in AREAS if area != "modules")]
)  # fmt: skip
def test_every_area_has_sourced_entries(framework: str, area: str) -> None:
    assert any(pins(entry.strength, entry.cases, area) for entry in contract_for(framework).promises)


def pins(strength: str, globs: tuple[str, ...], area: str) -> bool:
    """Say whether an entry promises something of a case of an area."""
    return strength in PINS and any(fnmatchcase(name, glob) for name in CASES if name.startswith(area + "/") for glob in globs)


def test_every_promise_and_deviation_can_speak() -> None:
    for contract in contracts().values():
        for kind, entries in (("promise", contract.promises), ("deviation", contract.deviations)):
            silent = [e for i, e in enumerate(entries) if not speaks(entries[:i], e)]
            assert not silent, f"{contract.framework}: a {kind} is hidden by earlier ones: {silent[0]}"


def speaks(earlier: tuple[Any, ...], entry: Any) -> bool:
    """Say whether some case of an entry is not already spoken for, on the same targets in any version."""
    broad = [e for e in earlier if not str(e.versions) and set(e.targets) >= set(entry.targets)]
    names = [name for name in CASES if any(fnmatchcase(name, glob) for glob in entry.cases)]
    return any(not any(fnmatchcase(name, glob) for e in broad for glob in e.cases) for name in names)


def contract_of(tmp_path: Path, text: str) -> Contract:
    """Read a contract file with this text."""
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    return read(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("framework = 3", "mine.toml: wants framework"),
        ("framework = ", "mine.toml: Invalid value"),
        ('framework = "x"\n[[promise]]\nkases = ["a"]', "mine.toml: promise 1: unknown key 'kases'"),
        ('framework = "x"\n[[promise]]\ncases = ["a"]\naccepts = ["works"]\nsays = "so"', r"wants cases, a source \(https://"),
        ('framework = "x"\n[[promise]]\ncases = ["a"]\nsource = "https://a"\nsays = "so"', "accepts goes with the strengths"),
        ('framework = "x"\n[[promise]]\nstrength = "hoped"', "strength 'hoped' is none of"),
        ('framework = "x"\n[[deviation]]\ncases = ["a"]\nanswer = "b"\nsource = "https://a"\nsays = "so"\nversions = "new"', "deviation 1"),
        ('framework = "x"\n[[deviation]]\ncases = ["a"]\nsource = "https://a"\nevidence = "seen"', "evidence 'seen' is neither measured"),
    ],
)
def test_a_contract_out_of_order_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        contract_of(tmp_path, text)


def test_a_contract_that_names_no_case_or_an_impossible_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = 'framework = "x"\n[[promise]]\ncases = ["{}"]\naccepts = ["{}"]\nsource = "https://a"\nsays = "so"'
    for case, answer, sentence in (
        ("placement/nowhere/*", "works", "no case matches 'placement/nowhere/\\*'"),
        ("placement/add/device-device", "sings", "case placement/add/device-device can't answer sings"),
    ):
        wrong = contract_of(tmp_path, entry.format(case, answer))
        monkeypatch.setattr("cases.contract.contracts", lambda wrong=wrong: {"x": wrong})
        with pytest.raises(ContractError, match=sentence):
            check(CASES, {name: case.answers.words for name, case in CASES.items()})
