"""The selector language, and what is known of targets before anything is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.hello import misfit
from adapters.pool import _chosen
from adapters.targets import Group, Selector, SelectorError, Spec, Wanted, adapters, install, parse, plan
from tests.running import ask, cells

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.-*?", min_size=1, max_size=12)
LABELS = st.none() | st.text("abcXYZ019_.+-", min_size=1, max_size=8)
COMMANDS = st.none() | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=30).map(str.strip).filter(bool)


@given(st.builds(Selector, WORDS, WORDS, LABELS, COMMANDS))
def test_a_selector_reads_back_as_it_was_written(selector: Selector) -> None:
    assert parse(str(selector)) == selector


def test_the_parts_of_the_documented_examples() -> None:
    assert parse("torch:cpu") == Selector("torch", "cpu")
    assert parse("torch:*") == Selector("torch", "*")
    assert parse("old=jax:cpu@PATH/TO/python") == Selector("jax", "cpu", "old", "PATH/TO/python")
    assert parse("mac=torch:mps@ssh mac python3") == Selector("torch", "mps", "mac", "ssh mac python3")
    assert parse("jax:cpu@env -i X=1 python3").command == "env -i X=1 python3"


@pytest.mark.parametrize("text", ["", "torch", "torch:", ":cpu", "a b=torch:cpu", "torch:cpu@", "torch:cpu@ ", "=torch:cpu", "torch:c pu"])
def test_a_selector_of_another_form_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SelectorError, match=r"^target '"):
        parse(text)


def test_only_a_selector_without_globs_names_one_target() -> None:
    assert parse("torch:cpu").explicit
    assert not parse("torch:*").explicit
    assert not parse("*:cpu").explicit


def test_names_tell_labels_and_commands_apart() -> None:
    assert parse("torch:cpu").name("torch", "cpu") == "torch:cpu"
    assert parse("old=torch:*@python3").name("torch", "meta") == "old=torch:meta"
    assert parse("torch:*@python3").name("torch", "meta") == "torch:meta@python3"


def test_an_unknown_framework_says_which_there_are() -> None:
    with pytest.raises(SelectorError, match=r"no framework 'trch'; there are .*torch"):
        plan([parse("trch:cpu")], adapters())


def test_a_missing_interpreter_says_what_to_give() -> None:
    with pytest.raises(SelectorError, match="no interpreter or command '/no/such/python'"):
        plan([parse("torch:cpu@/no/such/python")], adapters())


def test_an_unbalanced_quote_in_a_command_is_refused() -> None:
    with pytest.raises(SelectorError, match="can't be split"):
        plan([parse("torch:cpu@python3 '")], adapters())


def test_devices_that_cannot_share_a_process_get_workers_of_their_own() -> None:
    wanted, absent = plan([parse(f"jax:*@{sys.executable}")], adapters())
    assert {w.group.devices for w in wanted} == {("cpu",), ("gpu",), ("tpu",)}
    assert not absent
    specs = {w.group.devices: w.spec for w in wanted}
    assert specs[("cpu",)] != specs[("gpu",)] == specs[("tpu",)]


def test_the_default_device_of_a_process_is_what_the_target_says_and_not_what_a_shell_has_set() -> None:
    (burn,), _ = plan([parse(f"burn:flex@{sys.executable}")], adapters())
    (jax,), _ = plan([parse(f"jax:cpu@{sys.executable}")], adapters())
    assert (burn.spec.unset, dict(jax.spec.environment)) == (("BURN_DEVICE",), {"JAX_PLATFORMS": "cpu"})


def test_targets_that_share_a_process_are_started_once() -> None:
    wanted, _ = plan([parse(f"numpy:cpu@{sys.executable}"), parse(f"numpy:*@{sys.executable}")], adapters())
    assert len(wanted) == 1
    assert len(wanted[0].selectors) == 2


def test_an_adapter_from_outside_is_named_with_its_class() -> None:
    assert adapters(["mine=my_package.adapter:Mine"])["mine"] == "my_package.adapter:Mine"
    for bad in ("mine", "mine=", "mine=module", "=module:Class", "mine=a:b:c"):
        with pytest.raises(SelectorError, match=r"is neither NAME=module:Class.* nor NAME=PROGRAM"):
            adapters([bad])


def test_a_device_kind_has_environments_of_its_own_beside_those_of_its_framework() -> None:
    kind = {"available": True, "roles": {}, "environments": {"default-accelerator": {"DEVICE": "b"}}}
    hello = {
        "version": "1", "build": {}, "machine": {}, "environment": {}, "operations": [], "dtypes": [],
        "environments": {"default-misspelt": {"DEVICE": "bb"}}, "devices": {"a": {"available": True, "roles": {}}, "b": kind},
    }  # fmt: skip
    wanted = Wanted(Spec("x", None, None), Group(("*",)), ())
    a, b = _chosen(parse("x:*"), wanted, hello, "")
    assert a["environments"] == ["default-misspelt"]
    assert b["environments"] == ["default-accelerator", "default-misspelt"]
    assert b["environment_of"]["default-accelerator"] == {"DEVICE": "b"}
    assert misfit(hello) == ""
    assert misfit({**hello, "devices": {"b": {**kind, "environments": []}}}).startswith("device b is")


@pytest.mark.parametrize(("uv", "command"), [("/usr/bin/uv", f"uv pip install --python {sys.executable} x"), (None, "pip install x")])
def test_what_installs_something_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch, uv: str | None, command: str) -> None:
    monkeypatch.setattr("adapters.targets.importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("adapters.targets.shutil.which", lambda _: uv)
    assert install("x") == command


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """Return a worker in a language that the suite doesn't know of."""
    path = tmp_path / "lists-worker"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{Path(__file__).parent.parent}" exec {sys.executable} -m tests.small_worker\n')
    path.chmod(0o755)
    return path


def test_a_program_from_outside_is_a_worker_to_which_nothing_is_handed_over(brought: Path) -> None:
    known = adapters([f"lists={brought}"])
    (wanted,), _ = plan([parse("lists:gpu")], known)
    assert (wanted.spec.argv, wanted.spec.adapter, wanted.spec.compiled) == ((str(brought),), None, True)
    assert wanted.spec.within({"A": "1"}).compiled
    (elsewhere,), _ = plan([parse(f"lists:gpu@env A=1 {brought}")], known)
    assert (elsewhere.spec.argv, elsewhere.spec.compiled) == (("env", "A=1", str(brought)), True)


@pytest.mark.slow
def test_a_program_from_outside_is_a_target(brought: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    ask("--adapter", f"lists={brought}", "--target", "lists:gpu", "--case", "moving/*/zeros", f"--record={record}")
    assert cells(record)[("lists:gpu", "moving/default-device/zeros")] == "on-accelerator"
    assert cells(record)[("lists:gpu", "moving/no-device/zeros")] == "on-host"
