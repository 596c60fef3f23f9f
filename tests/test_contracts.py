"""Contract files that are not in order: one sentence says which, where and why, whoever asks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cases import contract
from cases.contract import ContractError, contracts, read
from tests import sample
from tests.damage import ask

ENTRY = 'framework = "x"\n[[promise]]\ncases = ["a"]\naccepts = ["b"]\nsource = "https://a"\nsays = "so"\n'
CASE = "placement/create/device"


def refused(path: Path, text: str) -> str:
    """Return what is said of a contract file with this text."""
    path.write_text(text, "utf-8")
    with pytest.raises(ContractError) as raised:
        read(path)
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["a"]', '"placement/*"', "promise 1: cases is 'placement/*', not a list of texts"),
        ('["a"]', "[5]", "promise 1: cases is [5], not a list of texts"),
        ('["b"]', "5", "promise 1: accepts is 5, not a list of texts"),
        ('["b"]', "[[]]", "promise 1: accepts is [[]], not a list of texts"),
        ('"so"', "5", "promise 1: says is 5, not a text"),
        ('"https://a"', "[]", "promise 1: source is [], not a text"),
        ('"so"', '"so"\ntargets = "cuda"', "promise 1: targets is 'cuda', not a list of texts"),
        ('"so"', '"so"\ntargets = []', "promise 1: wants cases, a source (https://…) and what it says"),
        ('"so"', '"so"\nstrength = ["guaranteed"]', "promise 1: strength is ['guaranteed'], not a text"),
        ('"so"', '"so"\nversions = 2.0', "promise 1: versions is 2.0, not a text"),
        ("[[promise]]", "[promise]", "promise is no list of tables; write [[promise]] over each"),
        ("[[promise]]", "promise = 5\n[[deviation]]", "promise is no list of tables; write [[promise]] over each"),
        ("[[promise]]", "deviation = [5]\n[[promise]]", "deviation is no list of tables; write [[deviation]] over each"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    read_first = tmp_path / "good.toml"
    read_first.write_text(ENTRY)
    assert read(read_first).promises[0].cases == ("a",)
    assert refused(tmp_path / "mine.toml", ENTRY.replace(old, new, 1)) == f"mine.toml: {says}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the contracts that is read instead of them."""
    copy = tmp_path / "contracts"
    shutil.copytree(contract.FOLDER, copy)
    monkeypatch.setattr(contract, "FOLDER", copy)
    contracts.cache_clear()
    monkeypatch.setattr(contract, "contracts", contracts.__wrapped__)
    return copy


def test_two_files_for_one_framework_are_refused(folder: Path) -> None:
    shutil.copy(folder / "torch.toml", folder / "zz.toml")
    with pytest.raises(ContractError, match=r"^zz\.toml: another file speaks of torch already; put all of it into one$"):
        contract.contracts()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mine.toml", ENTRY, "contract x: no case matches 'a'"),
        ("mine.toml", ENTRY.replace('"a"', f'"{CASE}"'), f"contract x: case {CASE} can't answer b"),
        ("mine.toml", "framework = ", "mine.toml: Invalid value"),
        ("mine.toml", 'framework = "torch"', "torch.toml: another file speaks of torch already"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["cases", "explain", "show", "matrix"])
def test_every_verb_checks_the_contracts(folder: Path, tmp_path: Path, verb: str, name: str, text: str, says: str) -> None:
    record = sample.record(tmp_path / "r.jsonl", ["accel"], [CASE])
    asked: dict[str, list[object]] = {"cases": [], "explain": [CASE, "--record", record], "show": [record], "matrix": [record]}
    (folder / name).write_text(text)
    status, out, err = ask(verb, *asked[verb])
    assert (status, out) == (2, "")
    assert err.startswith(f"python -m reports {verb}: {says}")
    assert err.count("\n") == 1
