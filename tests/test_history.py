"""Answer by version: which releases are meant, what they answered, how it is told, and where an answer changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from reports import history
from reports.answer_by_version import json_text, markdown, terminal
from reports.asking import Asker
from reports.environments import Python
from reports.record import RecordError, read
from reports.releases import chosen, known
from reports.style import Style
from reports.verbs import ProblemError
from tests import fake_uv, sample
from tests.pairs import Cells, asked, written
from tests.test_page import Page
from tests.test_upgrade import STACK, Ask, ask, uv  # noqa: F401  fixtures

ADD, MIXED, SUB = "placement/add/device-device", "placement/add/host-accelerator", "placement/sub/device-device"
LISTED = ("0.3.9", "0.4.1", "0.4.2", "0.4.10", "0.5.0", "0.5.3", "0.6.0", "0.6.1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a framework's records, where the suite's own would be."""
    monkeypatch.setattr(history, "RECORDED", tmp_path / "recorded")
    monkeypatch.setattr(history, "MADE", tmp_path / "made")
    monkeypatch.setattr(history.files, "__defaults__", ((tmp_path / "recorded", tmp_path / "made"),))
    (tmp_path / "recorded" / "dummy").mkdir(parents=True)
    return tmp_path / "recorded" / "dummy"


def releases(folder: Path, **versions: Cells) -> list[Any]:
    """Return records of releases, v1_2 for 1.2."""
    return [read(written(folder / f"{name[1:].replace('_', '.')}.jsonl", cells, version=name[1:].replace("_", "."))) for name, cells in
            versions.items()]  # fmt: skip


# --- which releases --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "every", "found"),
    [
        (["0.4.1..0.6.1"], "minor", "0.4.1 0.4.2 0.4.10 0.5.3 0.6.1"),
        (["0.5.0..0.6.0"], "minor", "0.5.0 0.5.3 0.6.0"),
        (["0.4.2..0.5.3"], "patch", "0.4.2 0.4.10 0.5.0 0.5.3"),
        (["0.5.3.."], "patch", "0.5.3 0.6.0 0.6.1"),
        (["..0.4.1"], "patch", "0.3.9 0.4.1"),
        (["0.6.1,0.4.10", "0.5.0 0.5.0"], "minor", "0.4.10 0.5.0 0.6.1"),
    ],
)
def test_ranges_and_lists(words: list[str], every: str, found: str) -> None:
    assert " ".join(chosen("jax", words, every, lambda: LISTED)) == found


def test_only_of_jax_0_4_is_every_patch_a_minor_version() -> None:
    assert chosen("torch", ["0.4.1..0.5.3"], "minor", lambda: LISTED) == ["0.4.1", "0.4.10", "0.5.3"]


def test_a_list_asks_no_index() -> None:
    def never() -> list[str]:
        raise AssertionError

    assert chosen("jax", ["0.4.10,0.4.2"], "minor", never) == ["0.4.2", "0.4.10"]


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("0.4.3..0.6.0", "there is no jax 0.4.3 for the Pythons that are here; near it are 0.4.10, 0.4.2, 0.5.0"),
        ("0.6.0..0.4.1", "a range begins with the older release, 0.4.1..0.6.0"),
        ("latest", "'latest' is no version"),
        ("0.4.x..0.5.0", "'0.4.x' is no version"),
    ],
)
def test_what_is_no_release_is_a_sentence(word: str, words: str) -> None:
    with pytest.raises(ProblemError, match=words.replace(".", r"\.")):
        chosen("jax", [word], "minor", lambda: LISTED)


def test_the_index_is_asked_for_every_python_s_releases(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    pythons = [Python("3.11.7", "/one"), Python("3.9.1", "/other")]
    assert known("numpy", pythons) == list(fake_uv.RELEASES)
    told = uv.read_text()
    assert "/one" in told
    assert "/other" in told
    monkeypatch.setenv("FAKE_UV", "offline")
    with pytest.raises(ProblemError, match=r"the package index can't be asked for the releases of numpy: .*dns error"):
        known("numpy", pythons)


# --- what they answered ----------------------------------------------------------------------------


def test_spans_and_steps_in_the_order_of_versions(tmp_path: Path) -> None:
    found = history.build(releases(
        tmp_path, v1_10=asked("moves-to-first", ADD, MIXED), v1_9=asked("accel", ADD, MIXED), v1_2=asked("accel", ADD, MIXED),
    ))  # fmt: skip
    assert found.releases == {"dummy:accel": ("1.2", "1.9", "1.10")}
    add, mixed = (next(line for line in found.lines if line.case == case) for case in (ADD, MIXED))
    assert [(span.outcome, span.since, span.until) for span in add.spans] == [("works", "1.2", "1.10")]
    assert [(s.outcome, s.since, s.until) for s in mixed.spans] == [("raises", "1.2", "1.9"), ("moves-to-host", "1.10", "1.10")]
    assert [(step.before, step.version, step.change.kind) for step in mixed.steps] == [("1.9", "1.10", "loosened")]
    assert found.changed == (mixed,)
    assert mixed.told() == "raises until 1.9, moves-to-host since 1.10 (3 releases asked, 1.2 to 1.10)"
    assert add.told() == "works in all of them (3 releases asked, 1.2 to 1.10)"


def test_what_a_release_was_built_for_is_no_part_of_its_version(tmp_path: Path) -> None:
    one = read(written(tmp_path / "1.0.jsonl", asked("accel", MIXED), version="1.0+cu117"))
    assert history.build([one]).releases == {"dummy:accel": ("1.0",)}


def test_what_comes_back_and_what_changes_within_an_answer_is_told(tmp_path: Path) -> None:
    renamed = [{**cell, "facets": {**cell["facets"]}} for cell in asked("accel", MIXED)]
    for cell in renamed:
        for fact in cell["observation"]["steps"].values():
            if "error" in fact:
                fact["error"] = {**fact["error"], "type": "Renamed"}
    found = history.build(releases(
        tmp_path, v1=asked("accel", MIXED), v2=asked("moves-to-first", MIXED), v3=asked("accel", MIXED), v4=renamed,
    ))  # fmt: skip
    (line,) = found.lines
    text = line.told()
    assert text.startswith("raises until 1, moves-to-host in 2, raises since 3; error.type: ")
    assert "→ Renamed with 4 (4 releases asked, 1 to 4)" in text


def test_what_did_not_decide_says_nothing(tmp_path: Path) -> None:
    undecided = [{**cell, "status": "inconclusive", "answer": None, "class": None, "verdict": None, "norm": None, "observation": None}
                 for cell in asked("accel", MIXED)]  # fmt: skip
    found = history.build(releases(tmp_path, v1=asked("accel", MIXED), v2=undecided, v3=asked("accel", MIXED)))
    (line,) = found.lines
    assert [version for version, _ in line.cells] == ["1", "3"]
    assert line.steps == ()


def test_the_views_show_what_changed_or_all(tmp_path: Path) -> None:
    found = history.build(releases(tmp_path, v1_0=asked("accel", ADD, MIXED), v2_0=asked("moves-to-first", ADD, MIXED)))
    text = terminal(found, Style(), full=False)
    assert "dummy:accel: 2 questions answered by some of 2 releases, 1 of them not always alike" in " ".join(text.split())
    assert MIXED in text
    assert catalogue()[MIXED].question in text
    assert ADD not in text
    assert "2.0        ✓ moves-to-host  (loosened)" in text
    assert ADD in terminal(found, Style(), full=True)
    assert f"| `{MIXED}` " in markdown(found, full=False)
    assert "raises 1.0<br>moves-to-host 2.0 | 2.0: loosened |" in markdown(found, full=False)
    (line,) = json.loads(json_text(found, full=False))["lines"]
    assert [span["outcome"] for span in line["spans"]] == ["raises", "moves-to-host"]
    assert line["changes"][0]["kind"] == "loosened"


# --- what is kept ----------------------------------------------------------------------------------


def test_a_record_is_kept_small_and_without_this_machine_s_paths(tmp_path: Path) -> None:
    cells = asked("accel", ADD, MIXED)
    cells[0]["why"] = f"in {tmp_path / 'env'}/lib and {Path.home()}/x"
    path = history.keep(written(tmp_path / "1.0.jsonl", cells), tmp_path / "env", tmp_path / "kept")
    assert path.name == "1.0.jsonl.xz"
    record = read(path)
    assert record.complete
    assert record.cells["dummy:accel", ADD].why == "in ENVIRONMENT/lib and HOME/x"
    assert len(read(path, frozenset([ADD])).cells) == 1
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(RecordError, match="cut short"):
        read(path)
    path.write_bytes(data[:40] + b"nonsense" + data[48:])
    with pytest.raises(RecordError, match="can't be unpacked"):
        read(path)


def test_explain_tells_what_is_recorded(folder: Path) -> None:
    for version, kind in (("1.0", "accel"), ("2.0", "moves-to-first")):
        made = written(folder.parent / f"{version}.jsonl", asked(kind, ADD, MIXED), version=version)
        history.keep(made, folder, folder)
    (folder / "3.0.jsonl").write_text("no record")
    written(folder / "4.0.jsonl", asked("accel", MIXED), version="1.0+cu117")
    (no_record, why), (strange, of), *others = history.told("dummy", MIXED)
    assert others == [("dummy:accel", "raises until 1.0, moves-to-host since 2.0 (2 releases asked, 1.0 to 2.0)")]
    assert (no_record, strange) == ("not told", "not told")
    assert f"{folder / '3.0.jsonl'} is no record" in why
    assert f"{folder / '4.0.jsonl'} should tell of dummy 4.0 and holds dummy 1.0;" in of
    assert list(history.told("nobody", MIXED)) == []


def test_what_the_suite_comes_with_can_be_read_and_is_small() -> None:
    paths = list(history.RECORDED.rglob("*.jsonl.xz"))
    assert sum(path.stat().st_size for path in paths) < 15_000_000
    for path in paths:
        record = read(path, frozenset([ADD]))
        assert record.complete, path
        (version,) = {target.version.partition("+")[0] for target in record.targets.values()}
        assert (path.parent.name, path.name) == (next(iter(record.targets.values())).framework, f"{version}.jsonl.xz")


# --- the verbs -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_releases_are_asked_once_and_shown(uv: Path, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    made = tmp_path / "made"
    plain = Asker.ask

    def few(self: Asker) -> None:
        plain(Asker(self.what, self.selectors, self.record, (STACK, ADD)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Asker, "ask", few)  # the verb asks everything, which takes too long here
        status, out, err = ask("history", "numpy", "1.2,2.0,9.9", "--records", made, "--keep", tmp_path / "kept")
    assert status == 2, "one of them isn't there"
    assert err.count("there is no numpy==9.9") == 2
    assert "numpy 1.2 and numpy 2.0: 4 of 4 cells" in err, "one run asks both"
    assert "1.2        ⊘ raises" in out
    assert "2.0        ✓ works  (loosened)" in out
    assert sorted(path.name for path in (tmp_path / "kept" / "numpy").iterdir()) == ["1.2.jsonl.xz", "2.0.jsonl.xz"]
    uv.unlink()
    status, again, err = ask("history", "numpy", "--records", made, "--target", "numpy:cpu", "--case", STACK)
    assert (status, err) == (0, "")
    assert STACK in again
    assert not uv.exists()
    monkeypatch.setattr(history, "RECORDED", tmp_path / "nothing")
    status, text, _ = ask("history", "numpy", "--records", made, "--format", "html", "--case", STACK)
    page = Page(text)
    assert (status, page.open) == (0, [])
    assert [column["key"] for column in page.data["columns"]] == ["numpy:cpu 1.2", "numpy:cpu 2.0"]
    assert ["began" in kinds for kinds, _ in page.cells] == [False, True]
    (row,), (one,), told = page.data["cells"], page.data["cases"], page.data["texts"]
    assert [(target, told[n]) for target, n in one["h"]] == [
        ("numpy:cpu", "raises until 1.2, works since 2.0 (2 releases asked, 1.2 to 2.0)")
    ]
    assert told[row[1]["b"]] == "loosened, answer: raises → works"
    assert "b" not in row[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("history", "numpy", "2.0..1.0"), "a range begins with the older release"),
        (("history", "numpy", "9.0..9.1"), "there is no numpy 9.0"),
        (("history", "numpy", "9.9"), "there is no numpy==9.9"),
        (("history", "numpy", "--case", "nonsense"), "no case matches"),
        (("history", "numpy", "--target", "jax:cpu"), "name a target of numpy"),
        (("history", "candle"), "invalid choice: 'candle'"),
        (("bisect", "nonsense", "numpy", "1.0..2.0"), "no case matches"),
        (("bisect", "placement/add/*", "numpy", "1.0..2.0"), "one question is looked for at a time"),
        (("bisect", ADD, "numpy", "2.0"), "'2.0' is no range"),
        (("bisect", ADD, "numpy", "2.0..2.0"), "holds one release"),
    ],
)
@pytest.mark.usefixtures("uv")
def test_what_can_t_be_done_is_one_sentence(ask: Ask, arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:  # noqa: F811
    extra = ("--records", tmp_path) if arguments[0] == "history" else ()
    status, _, err = ask(*arguments, *extra)
    assert status == 2
    assert words in err


@pytest.mark.usefixtures("uv")
def test_the_releases_can_be_listed(ask: Ask) -> None:  # noqa: F811
    assert ask("history", "numpy", "--releases")[:2] == (0, "".join(f"{one}\n" for one in fake_uv.RELEASES))


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, uv: Path) -> list[str]:  # noqa: ARG001, F811
    """Let releases answer without being asked: before 2.0 they refuse; 1.2 doesn't decide. Returns what was asked."""
    from reports.cells import Target
    from reports.derive import Side
    from reports.verbs.bisect import Search

    told: list[str] = []

    def _ask(_self: Search, version: str) -> dict[str, Side]:
        told.append(version)
        (cell,) = asked("accel" if version < "2.0" else "moves-to-first", MIXED)
        if version == "1.2":
            cell |= {"status": "inconclusive", "answer": None, "class": None, "verdict": None, "norm": None, "observation": None}
        from reports.cells import Cell

        return {"numpy:cpu": Side(Target.from_json("dummy:accel", sample.target("accel")), {MIXED: Cell.from_json(cell)})}

    monkeypatch.setattr(Search, "_ask", _ask)
    return told


def test_the_range_is_halved_and_what_doesn_t_decide_is_left_out(ask: Ask, answering: list[str]) -> None:  # noqa: F811
    status, out, _ = ask("bisect", MIXED, "numpy", "1.0..2.1")
    assert status == 0
    assert out.splitlines() == [
        f"numpy:cpu {MIXED}: raises until 1.1, moves-to-host since 2.0 (loosened; 5 of 5 releases asked)",
        "between them couldn't be asked, or didn't decide: 1.2",
    ]
    assert answering[:2] == ["1.0", "2.1"]


@pytest.mark.usefixtures("answering")
def test_ends_that_answer_alike_are_status_1(ask: Ask) -> None:  # noqa: F811
    status, out, _ = ask("bisect", MIXED, "numpy", "2.0..2.1")
    assert (status, out) == (1, f"{MIXED}: numpy 2.0 and 2.1 answer alike: numpy:cpu moves-to-host\n")


def test_only_what_differs_in_time_from_another_release_is_asked_again(tmp_path: Path) -> None:
    loop = "time/loop/matmul"
    before, now = releases(tmp_path, v1_0=asked("accel", loop, MIXED), v2_0=asked("blocks", loop) + asked("moves-to-first", MIXED))
    assert list(history.doubtful(before, now)) == [("dummy:accel", loop)]
