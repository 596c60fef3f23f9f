"""The gate as a command: settings, output, exit status, and one sentence for what can't be done."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import catalogue
from reports.gate import settings
from reports.kinds import KINDS
from reports.verbs import ProblemError, main
from tests.pairs import NAME, asked, pair, written
from tests.test_gate import ADD, MIXED, ROOT

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what runs the verb in this process: status, output, and what is said on standard error."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main(["gate", *map(str, arguments)])
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of two records with one change that is denied and one that is only listed."""
    pair(tmp_path, asked("accel", ADD, MIXED), asked("garbles-computing", ADD) + asked("moves-to-first", MIXED))
    return tmp_path / "old.jsonl", tmp_path / "new.jsonl"


# --- settings ---------------------------------------------------------------------------------------------


def test_levels_come_from_the_file_and_the_last_word_on_the_command_line_counts(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[tool.device-semantics.gate]\ndeny = ["loosened", "warning"]\nallow = ["all"]\naccept = "a.toml"\nuses = ["src"]\n')
    found = settings(path, [("warning", "warn"), ("silent", "deny")])
    assert {name: found.levels[name] for name in ("loosened", "warning", "silent", "dtype")} == {
        "loosened": "deny", "warning": "warn", "silent": "deny", "dtype": "allow",
    }  # fmt: skip
    assert (found.accept, found.uses) == (tmp_path / "a.toml", (tmp_path / "src",))
    own = tmp_path / "gate.toml"
    own.write_text('warn = ["dtype"]\n')
    assert settings(own).levels == {name: kind.level for name, kind in KINDS.items()} | {"dtype": "warn"}
    assert settings(own, [("all", "allow"), ("dtype", "deny")]).levels == dict.fromkeys(KINDS, "allow") | {"dtype": "deny"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("deny = [", "can't be read"),
        ('deny = ["sloppy"]', "there is no kind 'sloppy'; there are silent, crash"),
        ('deny = "silent"', "deny wants a list of texts"),
        ('deny = ["silent"]\nwarn = ["silent"]', "silent has two levels"),
        ('denny = ["silent"]', "holds 'denny'; it takes deny, warn, allow, accept and uses"),
        ("accept = 3", "accept wants a text"),
        ("[tool.device-semantics]\ngate = 3", "is no table"),
    ],
)
def test_a_configuration_that_isn_t_in_order_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    with pytest.raises(ProblemError) as raised:
        settings(path)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


# --- the command ------------------------------------------------------------------------------------------


def test_the_command_lists_changes_and_fails(records: tuple[Path, Path], ask: Ask) -> None:
    status, out, err = ask(*records)
    assert (status, err) == (1, "")
    assert "2 changes: 1 denied, 1 to look at (2 cells compared, 2 of them answered)" in out
    assert "denied: silent, " in out
    assert f"dummy:accel {ADD}" in out
    assert catalogue()[MIXED].question.split("?")[0][:60] in " ".join(out.split())
    assert ask(*records, "--case", MIXED)[0] == 0
    assert ask(*records, "--case", MIXED, "--deny", "loosened")[0] == 1
    assert ask(*records, "--warn", "all")[0] == 0
    assert ask(*records, "--allow", "all", "--deny", "silent")[0] == 1


def test_the_exit_status_is_that_of_the_process(records: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "reports", "gate", *map(str, records)]
    assert [
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, check=False).returncode for more in ([], ["--warn", "all"])
    ] == [1, 0]


def test_the_command_reads_pyproject_where_it_stands(
    records: tuple[Path, Path], tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.device-semantics.gate]\nwarn = ["silent"]\n')
    assert ask(*records)[0] == 1
    assert ask(*records, "--config", tmp_path / "pyproject.toml")[0] == 0
    monkeypatch.chdir(tmp_path)
    assert ask(*records)[0] == 0


def test_the_output_goes_where_it_is_wanted(records: tuple[Path, Path], tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "new" / "found.json"
    assert ask(*records, "--format", "json", "--output", path) == (1, f"{path}\n", "")
    assert json.loads(path.read_text("utf-8"))["status"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "the following arguments are required: OLD, NEW"),
        (("OLD",), "the following arguments are required: NEW"),
        (("OLD", "OLD"), "OLD and NEW are the same file"),
        (("OLD", "LINK"), "OLD and NEW are the same file"),
        (("OLD", "nope.jsonl"), "no record at nope.jsonl"),
        (("EMPTY", "NEW"), "is empty"),
        (("OLD", "README.md"), "README.md is no record of this suite"),
        (("OLD", "DAMAGED"), "line 2 is damaged"),
        (("OLD", "FUTURE"), "has schema 99 and this suite reads up to"),
        (("OLD", "OTHER"), "nothing could be compared: dummy:accel: NEW has no such target"),
        (("OLD", "NEW", "--deny", "sloppy"), "there is no kind 'sloppy'; there are silent, crash"),
        (("OLD", "NEW", "--target", "torch:*"), "no target matches 'torch:*'"),
        (("OLD", "NEW", "--case", "time/*"), "no case matches 'time/*'"),
        (("OLD", "NEW", "--format", "pdf"), "invalid choice: 'pdf'"),
        (("OLD", "NEW", "--config", "nope.toml"), "nope.toml can't be read (No such file or directory)"),
        (("OLD", "NEW", "--accept", "nope.toml"), "the accept file nope.toml can't be read"),
        (("OLD", "NEW", "--update"), "--update wants --accept FILE"),
        (("OLD", "NEW", "--uses", "nope"), "--uses nope: there is no such file or folder"),
        (("OLD", "NEW", "--output", "README.md/x"), "README.md/x can't be written"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_status_2(
    records: tuple[Path, Path], tmp_path: Path, ask: Ask, arguments: tuple[str, ...], says: str
) -> None:
    old, new = records
    paths = {"OLD": old, "NEW": new, **{name: tmp_path / name for name in ("EMPTY", "LINK", "DAMAGED", "FUTURE", "OTHER")}}
    paths["EMPTY"].write_text("")
    paths["LINK"].symlink_to(old)
    paths["DAMAGED"].write_text(new.read_text("utf-8").replace('"type":"cell"', '"type":"sell"', 1))
    paths["FUTURE"].write_text(new.read_text("utf-8").replace('"schema":1', '"schema":99', 1))
    written(paths["OTHER"], asked("accel", ADD), target="other:accel")
    status, out, err = ask(*(paths.get(argument, argument) for argument in arguments))
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_where_the_scripts_are_is_told_for_the_same_choice(records: tuple[Path, Path], ask: Ask) -> None:
    _, said, _ = ask(*records, "--case", MIXED, "--target", NAME)
    hint = " ".join(said.split()).partition("each as a complete script: ")[2]
    assert hint.startswith("python -m reports gate ")
    status, scripts, _ = ask(*shlex.split(hint)[4:])
    assert status == 0
    assert (MIXED in scripts, ADD in scripts) == (True, False)


def test_where_nothing_changed_nothing_is_fetched_that_only_changes_need(records: tuple[Path, Path], tmp_path: Path) -> None:
    same = tmp_path / "same.jsonl"
    same.write_bytes(records[0].read_bytes())
    code = "import sys; from reports.verbs import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "gate", records[0], same], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "no change" in done.stdout
    fetched = set(done.stdout.split())
    assert not fetched & {"tabulate", "adapters", "reports.native", "reports.uses", "importlib.metadata"}
    assert "reports.compare" in fetched
