"""`python -m reports upgrade`: environments by a uv that installs nothing, two releases asked and compared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reports import asking, environments
from reports.asking import Asker, settled, splice
from reports.environments import Python, Release, environment, interpreters, release
from reports.gate import Settings, gate
from reports.record import Record, read
from reports.verbs import ProblemError, main
from tests import fake_uv
from tests.pairs import Cells, asked, pair, written

ADD, MIXED = "placement/add/device-device", "placement/add/host-accelerator"
STACK = "placement/stack/device-device"
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the small uv before any other, with a cache folder of its own; returns the file of what was asked of it."""
    place = fake_uv.install(tmp_path / "uv")
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "uv" / "asked"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what runs a verb in this process: status, output, and what is said on standard error."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> tuple[int, str, str]:
        return main([*map(str, arguments)]), *capsys.readouterr()

    return run


# --- environments ----------------------------------------------------------------------------------


def test_an_environment_is_made_once_and_moved_to_its_place(uv: Path) -> None:
    found = environment(release("numpy==2.0"), interpreters())
    assert found.interpreter.exists()
    assert found.pins == ("numpy==2.0",)
    assert found.folder.parent == environments.root()
    assert "--exclude-newer 2023-11-04T21:51:56Z" in uv.read_text(), "what it needs is of its days"
    uv.unlink()
    assert environment(release("numpy==2.0"), [Python(interpreters()[0].version, "")]) == found
    assert "compile" not in uv.read_text()
    assert [path.name for path in environments.root().iterdir()] == [found.folder.name], "nothing half made is left"


@pytest.mark.usefixtures("uv")
def test_what_is_installed_beside_it_makes_another_environment() -> None:
    pythons = interpreters()
    one, other = (environment(release("numpy==2.0", beside), pythons) for beside in ((), ("six<2",)))
    assert one.folder != other.folder
    assert other.pins == ("numpy==2.0", "six<2")


@pytest.mark.usefixtures("uv")
def test_another_python_is_taken_where_this_one_has_no_wheel_and_for_both_sides() -> None:
    pythons = interpreters()
    assert [python.version for python in pythons][1:] == [fake_uv.OTHER]
    one, other = environments.pair(release("numpy==1.1"), release("numpy==2.0"), pythons)
    assert (one.python.version, other.python.version) == (fake_uv.OTHER, fake_uv.OTHER)
    one, other = environments.pair(release("numpy==2.1"), release("numpy==1.1"), pythons)
    assert (one.python.version, other.python.version) == (fake_uv.OTHER, fake_uv.OTHER)
    with pytest.raises(ProblemError, match=r"numpy==1\.1 fits no Python that is here \(3\.\d+\.\d+\): .*no wheels"):
        environment(release("numpy==1.1", ("six",)), pythons[:1])


@pytest.mark.usefixtures("uv")
def test_an_environment_whose_python_is_gone_is_made_anew() -> None:
    found = environment(release("numpy==2.0"), interpreters())
    found.interpreter.unlink()
    assert environment(release("numpy==2.0"), interpreters()).interpreter.exists()
    (found.folder / "environment.json").write_text("{")
    assert environment(release("numpy==2.0"), interpreters()).interpreter.exists()


@pytest.mark.usefixtures("uv")
def test_what_ended_runs_have_left_is_swept_and_what_running_ones_make_is_not() -> None:
    environments.root().mkdir(parents=True)
    (environments.root() / ".numpy-1-99999999").mkdir()
    (environments.root() / f".numpy-1-{os.getppid()}").mkdir()
    environment(release("numpy==2.0"), interpreters())
    assert sorted(path.name[0] for path in environments.root().iterdir()) == [".", "n"]


@pytest.mark.parametrize("text", ["numpy", "numpy>=1", "numpy==1.*", "numpy==1,<2", "nump y", "numpy @ file:///x", "candle==1", ""])
def test_what_is_no_release_is_a_sentence(text: str) -> None:
    with pytest.raises(ProblemError):
        release(text)


def test_extras_and_what_a_framework_always_wants() -> None:
    assert release("jax==0.5.0").requirements == ("jax[cpu]==0.5.0",)
    assert release("jax[cuda12]==0.5.0").requirements == ("jax[cuda12]==0.5.0",)
    assert release("torch==2.0", ("numpy<2",)).requirements == ("torch==2.0", "numpy", "numpy<2")


# --- the verb --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("uv")
def test_two_releases_are_asked_and_compared(ask: Ask, tmp_path: Path) -> None:
    command = ("upgrade", "numpy==2.0", "numpy==1.0", "--case", STACK, "--brief", "--records", tmp_path / "made")
    status, out, err = ask(*command)
    assert status == 1, err
    assert "NEW is the older version (numpy:cpu 2.0 → 1.0): are the two records swapped?" in " ".join(out.split())
    assert "1 change: 1 denied" in out
    assert "denied: tightened" in out
    assert [path.name for path in sorted((tmp_path / "made").iterdir())] == ["new.jsonl", "old.jsonl", "page.html"]
    assert f"page:    {tmp_path / 'made' / 'page.html'}" in err
    assert "old (numpy 2.0, Python 3." in err
    status, out, err = ask(*command, "--allow", "all", "--discard", "--target", "numpy:c*")
    assert (status, "1 change: 1 allowed" in out, "making" in err) == (0, True, False)
    assert list(environments.root().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("numpy==2.0", "numpy==2.0"), "the same release, numpy==2.0"),
        (("numpy==2.0", "jax==0.5.0"), "two frameworks"),
        (("numpy==9.9", "numpy==2.0"), "there is no numpy==9.9"),
        (("numpy==2.0", "numpy==2.1", "--python", "3.8"), "no Python 3.8 is here"),
        (("numpy==2.0", "numpy==2.1", "--target", "jax:cpu"), "name a target of numpy"),
        (("numpy==2.0", "numpy==2.1", "--target", "x=numpy:cpu"), "without label"),
        (("numpy==2.0", "numpy==2.1", "--case", "nonsense/*"), "no case matches"),
        (("numpy==2.0", "numpy==2.1", "--with", "a b c"), "is no requirement"),
        (("numpy==2.0", "numpy==2.1", "--repeat", "0"), "no number of times"),
        (("numpy==2.0", "numpy==2.1", "--deadline", "x", "--case", ADD), "--deadline wants seconds"),
        (("numpy==2.0", "numpy==2.1", "--target", "numpy:gpu", "--case", ADD), "a target that was named didn't start"),
        (("numpy==2.0", "numpy==2.1", "--case", ADD, "--records", "/proc/none"), "can't be written"),
        (("numpy==2.0", "numpy==2.1", "--update"), "--update wants --accept"),
    ],
)
@pytest.mark.usefixtures("uv")
def test_what_can_t_be_done_is_one_sentence(ask: Ask, arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    extra = () if "--records" in arguments else ("--records", tmp_path / "made")
    status, _, err = ask("upgrade", *arguments, *extra)
    assert status == 2
    assert words in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("uv")
def test_without_uv_or_index_it_says_so(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV", "offline")
    status, _, err = ask("upgrade", "numpy==2.0", "numpy==2.1")
    assert (status, "numpy==2.0: the package index can't be asked (Failed to fetch" in err) == (2, True)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    status, _, err = ask("upgrade", "numpy==2.0", "numpy==2.1")
    assert (status, err) == (2, "python -m reports upgrade: environments are made by uv, which isn't here: pip install uv\n")


# --- asked again -----------------------------------------------------------------------------------


def test_what_isn_t_settled_is_asked_again_and_the_record_has_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undecided = [{**cell, "status": "inconclusive", "answer": None, "class": None, "verdict": None, "norm": None, "why": "busy"}
                 for cell in asked("accel", MIXED)]  # fmt: skip
    for cell in undecided:
        cell["observation"] = None
    pair(tmp_path, asked("accel", ADD, MIXED), asked("accel", ADD) + undecided)
    told: list[list[tuple[str, str]]] = []

    def run(_self: Asker, what: str, words: list[str], record: Path) -> None:
        told.append([(what, word) for word in words if "::" in word])
        written(record, asked("accel", MIXED))

    monkeypatch.setattr(Asker, "_run", run)
    paths = tmp_path / "old.jsonl", tmp_path / "new.jsonl"

    def judged(old: Record, new: Record) -> object:
        return gate(old, new, Settings())

    found = settled(paths, (None, Asker("new", (), paths[1])), judged)  # type: ignore[arg-type]
    assert told == [[("new, again", f"cases/__init__.py::dummy:accel::{MIXED}")]]
    assert (found.status, found.findings) == (0, ())
    assert read(paths[1]).complete


def test_what_wavers_still_after_it_was_asked_again_stays_unsettled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wavering: Cells = [{**cell, "answers": ["raises", "moves-to-accelerator"]} for cell in asked("accel", MIXED)]
    pair(tmp_path, asked("accel", MIXED), wavering)
    monkeypatch.setattr(Asker, "_run", lambda _self, _what, _words, record: written(record, asked("accel", MIXED)))
    paths = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    found = settled(paths, (Asker("old", (), paths[0]), Asker("new", (), paths[1])), lambda old, new: gate(old, new, Settings()))
    assert [finding.change.kind for finding in found.findings] == ["unsettled"]


def test_a_second_run_s_cells_stand_before_the_footer(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.jsonl", asked("accel", ADD)), written(tmp_path / "b.jsonl", asked("moves-to-first", ADD))
    splice(one, other)
    lines = [json.loads(line)["type"] for line in one.read_text().splitlines()]
    assert lines == ["header", "cell", "cell", "footer"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_a_release_that_offers_nothing_of_what_is_asked_is_asked_all_the_same(tmp_path: Path) -> None:
    dummy = "--adapter=dummy=tests.dummy:Dummy"
    Asker("odd", ("dummy:host-only",), tmp_path / "r.jsonl", ("placement/add/host-accelerator",), options=(dummy,)).ask()
    assert [cell.status for cell in read(tmp_path / "r.jsonl").cells.values()] == ["not-applicable"]


def test_a_run_that_could_not_says_why_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="odd: target nonsense:cpu: no framework 'nonsense'"):
        Asker("odd", ("nonsense:cpu",), tmp_path / "r.jsonl").ask()
    assert asking.ROOT.is_dir()
    assert Release("numpy", "1.0").requirements == ("numpy==1.0",)
