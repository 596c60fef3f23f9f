"""The workflow that users copy: its verbs and options are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports.verbs import VERBS, main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "gate.yml").read_text("utf-8")


def test_its_verbs_have_the_options_that_it_gives_them(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [(verb, re.findall(r" (--[a-z-]+)", rest)) for verb, rest in re.findall(r"python -m reports (\w+)(.*)", TEXT)]
    assert {verb for verb, _ in commands} == {"upgrade", "history"}
    for verb, options in commands:
        assert verb in VERBS
        main([verb, "--help"])
        known = capsys.readouterr().out
        assert all(option in known for option in options)
        assert options


def test_its_pytest_has_the_options_that_it_is_given() -> None:
    options = (ROOT / "reports" / "options.py").read_text("utf-8")
    (command,) = re.findall(r"run: pytest (.*)", TEXT)
    assert all(f'"{option}"' in options for option in re.findall(r"(--[a-z-]+)", command))


def test_it_names_no_registry_and_indents_by_spaces() -> None:
    assert "\t" not in TEXT
    assert "index-url" not in TEXT
