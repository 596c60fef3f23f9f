"""Adapters are read, never imported; what a worker says of devices is shown and never evaluated."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.known import known, parse, spelling
from adapters.phrases import Phrases
from adapters.reproducer import Reproducer
from adapters.source import UnclearError, class_of, module
from cases import catalogue
from tests import sample
from tests.damage import ask

ADAPTER = """
from pathlib import Path
from adapters.base import Adapter

Path(__file__).with_name("ran").touch()

class Mine(Adapter):
    imports = "import mine"
    dtypes = {"float32": "mine.f32"}

    def tensor(self, data, dtype, device):
        return mine.tensor(data, dtype, device)

    def count(self, x):
        return self.count(x) if x else 0
"""
CASE = "placement/create/device"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a package whose modules leave a file behind when they are run."""
    folder = tmp_path / "mine_package"
    folder.mkdir()
    (folder / "__init__.py").write_text('from pathlib import Path\nPath(__file__).with_name("ran").touch()\n')
    (folder / "adapter.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(tmp_path)
    for kept in (module, class_of):
        kept.cache_clear()
    yield folder
    for kept in (module, class_of):
        kept.cache_clear()


def code(accelerator: str) -> str:
    """Return a question as a script for a target whose accelerator is written like this."""
    roles = {"host": {"expression": "torch.device('cpu')"}, "accelerator": {"expression": accelerator}}
    target = {"framework": "torch", "device": "mine", "version": "2.9", "roles": roles}
    return Reproducer(Phrases(target)).script(catalogue()[CASE].program.wire())


# --- modules ---------------------------------------------------------------------------------------


def test_a_record_runs_no_module_that_it_names(package: Path, tmp_path: Path) -> None:
    roles = {role: {**facts, "expression": "mine.device(0)"} for role, facts in sample.target("accel")["roles"].items()}
    path = sample.record(tmp_path / "r.jsonl", ["accel"], adapter="mine_package.adapter:Mine", roles=roles)
    assert "mine.tensor(" in ask("matrix", path, "--format", "html")[1]
    for arguments in (["show", path], ["matrix", path], ["explain", CASE, "--record", path, "--target", "dummy:accel"]):
        assert ask(*arguments)[0] == 0
    assert not (package / "ran").exists()
    assert not {name for name in sys.modules if name.startswith("mine_package")}


def test_no_finder_is_asked_but_that_of_what_is_installed_to_be_edited(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(name: str, *_: Any) -> None:
        raise AssertionError(f"somebody's finder ran for {name}")

    def finder(home: str, find: Any) -> Any:
        return SimpleNamespace(__module__=home, find_spec=find)

    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [finder("somebodys", never), *sys.meta_path])
    with pytest.raises(UnclearError, match=r"no module mine_package\.adapter here"):
        module("mine_package.adapter")
    edited = finder("__editable___mine_1_0_finder", lambda name, _: PathFinder.find_spec(name, [str(package.parent)]))
    monkeypatch.setattr(sys, "meta_path", [finder("somebodys", never), edited, *sys.meta_path])
    assert "Mine" in module("mine_package.adapter").classes


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", ["", ".", "..mine_package", "a b", "mine_package.", "mine_package.adapter.more", "\x00", "sys"])
def test_what_is_no_module_with_a_source_is_said(name: str) -> None:
    with pytest.raises(UnclearError):
        class_of(f"{name}:Mine")


@pytest.mark.parametrize(
    "text",
    [
        "class Mine(Mine): pass", "class Mine(Mine", "from .adapter import Mine", "from ...above import Mine\nclass Mine(Base): pass",
        "(" * 5000, "Mine = 5",
    ],
)  # fmt: skip
def test_a_source_that_means_nothing_is_said(package: Path, text: str) -> None:
    (package / "adapter.py").write_text(text)
    with contextlib.suppress(UnclearError):
        assert Phrases(sample.target("accel", adapter="mine_package.adapter:Mine")).imports == ""


@pytest.mark.usefixtures("package")
def test_a_method_that_calls_itself_is_not_written_out_for_ever() -> None:
    phrases = Phrases(sample.target("accel", adapter="mine_package.adapter:Mine"))
    with pytest.raises(UnclearError, match="count calls itself"):
        phrases.phrase("count", ["x"], {}, prefix="s1")


def test_a_device_kind_that_the_adapter_does_not_know_has_its_code_shown() -> None:
    compile(code("torch.device('mine:0')"), "script", "exec")


# --- devices as a worker writes them ---------------------------------------------------------------

NAMES = {"torch", "jax", "xp", "Device", "_Unnamed"}


@pytest.mark.parametrize(
    "text",
    [
        "torch.device('cuda:0')", "torch.device('cuda', 0)", "jax.devices('cpu')[1]", "jax.local_devices(backend='gpu')[-1]", "'cpu'",
        "xp.Device('device1')", "xp.asarray(0).device", "_Unnamed()", "Device('dev', (0, 1))", "torch.cuda", "None",
    ],
)  # fmt: skip
def test_a_device_is_a_text_or_calls_of_names_that_the_adapter_has(text: str) -> None:
    assert spelling(text, NAMES) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "torch.device(", "Device::vulkan(DeviceKind::DefaultDevice)", "os.system('x')", "__import__('os').system('x')", "9**9**9",
        "'a'.center(999999999)", "torch.device('a' * 999999999)", "list(range(999999999))", "torch.device(().__class__)",
        "[torch for torch in [1]]", "lambda: torch", "f'{torch}'", "torch.device(f'{1:>999999999}')", "().__class__", "[].append(1)",
        "torch" + ".a" * 200, "torch" + "()" * 50, "(" * 200 + "torch" + ")" * 200, "torch.device('\x00')", "torch if 1 else 2",
        "torch := 5",
    ],
)  # fmt: skip
def test_what_else_a_device_is_written_as_is_shown_and_never_evaluated(text: str) -> None:
    with pytest.raises(UnclearError, match="the worker writes a device as"):
        spelling(text, NAMES)
    shown = code(text)
    assert "; it can't be written as plain code (the worker writes a device as" in shown
    compile(shown, "script", "exec")


def test_a_line_break_in_a_device_begins_no_line_of_code() -> None:
    for text in ("torch.device('cuda')\n", "torch.device(\n'cuda') # so", "torch\nimport os", "x)\nimport os #"):
        shown = code(text)
        assert not any(line.startswith("import os") for line in shown.splitlines()), text
        assert ("device=torch.device('cuda'))" in shown) == ("cuda" in text)


def test_how_a_worker_writes_what_is_not_there_is_held_to_the_same() -> None:
    book = Phrases(sample.target("accel", spelled={"absent/object": "Device('ghost')", "misspelt/object": "os.system('x')"}))
    assert book.device("absent") == "Device('ghost')"
    with pytest.raises(UnclearError, match="the worker writes a device as"):
        book.device("misspelt")


# --- what is evaluated -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "().__class__.__base__.__subclasses__()", "getattr((), 'count')", "(i for i in ()).gi_frame", "(lambda: 0).__globals__",
        "[].__class__", "str.__subclasses__", "open", "f'{().__class__}'",
    ],
)  # fmt: skip
def test_nothing_leads_out_of_plain_values(text: str) -> None:
    with pytest.raises(UnclearError):
        known(parse(text))


@pytest.mark.parametrize(("text", "value"), [("{'a': 1}.get('a')", 1), ("'a-b'.partition('-')[2]", "b"), ("[n for n in (1, 2)]", [1, 2])])
def test_plain_values_are_known(text: str, value: Any) -> None:
    assert known(parse(text)) == value


def test_what_is_no_expression_is_unclear() -> None:
    for text in ("a b", "\x00", "(" * 5000):
        with pytest.raises(UnclearError, match="is no Python expression"):
            parse(text)
    assert isinstance(parse("a"), ast.Name)
