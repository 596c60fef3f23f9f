"""The gate: two records, levels, exit status, and that it fails closed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cases import Case, catalogue
from reports.compare import compare
from reports.formats import text
from reports.gate import Report, Settings, gate
from reports.native import Native
from reports.record import read
from reports.style import Style
from reports.verbs import ProblemError
from tests import sample
from tests.pairs import NAME, Cells, asked, lines, pair, written

ROOT = Path(__file__).parent.parent
ADD = "placement/add/device-device"
SUB = "placement/sub/device-device"
MIXED = "placement/add/host-accelerator"
TODAY = date(2026, 5, 1)


def report(folder: Path, old: Cells, new: Cells, chosen: Settings | None = None, **changes: Any) -> Report:
    return gate(*pair(folder, old, new, **changes), chosen or Settings(), today=TODAY)


def kinds(found: Report) -> list[str]:
    return [finding.change.kind for finding in found.findings]


# --- clean, found, could not -----------------------------------------------------------------------


def test_nothing_changed_is_clean_and_says_how_much_was_compared(tmp_path: Path) -> None:
    found = report(tmp_path, asked("accel", ADD, MIXED), asked("accel", ADD, MIXED))
    assert (found.status, found.findings) == (0, ())
    assert found.headline == "no change: 2 cells compared, 2 of them answered"


def test_what_is_denied_fails_and_what_is_warned_of_is_listed(tmp_path: Path) -> None:
    found = report(tmp_path, asked("accel", ADD, MIXED), asked("garbles-computing", ADD) + asked("moves-to-first", MIXED))
    assert (found.status, kinds(found)) == (1, ["silent", "loosened"])
    assert found.headline == "2 changes: 1 denied, 1 to look at (2 cells compared, 2 of them answered)"
    found = report(tmp_path, asked("accel", MIXED), asked("moves-to-first", MIXED))
    assert (found.status, kinds(found)) == (0, ["loosened"])


def test_a_finding_tells_question_code_promise_and_what_to_look_for(tmp_path: Path) -> None:
    (finding,) = report(tmp_path, asked("accel", ADD), asked("garbles-computing", ADD)).findings
    assert finding.question == catalogue()[ADD].question
    assert finding.look_for
    assert "\n".join(finding.code) in finding.script
    compile(finding.script, "script", "exec")


def test_of_many_findings_that_are_alike_the_code_of_one_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    plain = Native.script

    def script(self: Native, case: Case, *more: Any) -> tuple[list[str], str]:
        made.append(case.id)
        return plain(self, case, *more)

    monkeypatch.setattr(Native, "script", script)
    found = report(tmp_path, asked("accel", ADD, SUB), asked("refuses-computing", ADD, SUB))
    told = text.render(found, Style(width=100), full=True)
    assert [finding.change.case for finding in found.findings] == [ADD, SUB]
    assert f"likewise: {SUB}" in told
    assert made == [ADD]


def test_two_answers_are_compared_without_a_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.derive.verdicts", lambda *_: pytest.fail("held against a contract"))
    assert kinds(report(tmp_path, asked("accel", MIXED), asked("moves-to-first", MIXED))) == ["loosened"]


def test_the_strictest_kind_of_a_change_decides_whatever_names_it(tmp_path: Path) -> None:
    cells = asked("lands-on-next-computing", ADD)  # silent, and placement
    allowed = Settings({**Settings().levels, "silent": "allow"})
    assert report(tmp_path, asked("accel", ADD), cells, allowed).status == 1
    allowed = Settings({**allowed.levels, "placement": "warn"})
    found = report(tmp_path, asked("accel", ADD), cells, allowed)
    assert (found.status, [finding.level for finding in found.findings]) == (0, ["warn"])
    allowed = Settings({**allowed.levels, "placement": "allow"})
    found = report(tmp_path, asked("accel", ADD), cells, allowed)
    assert (found.status, found.findings, len(found.allowed)) == (0, (), 1)
    assert found.headline.startswith("1 change: 1 allowed")


def test_what_is_in_somebody_s_code_is_counted_and_stands_first(tmp_path: Path) -> None:
    words = {"host": "torch.device('cpu')", "accelerator": "torch.device('cuda')"}
    roles = {
        name: facts | {"expression": words.get(name, "torch.device('cuda:1')")} for name, facts in sample.target("accel")["roles"].items()
    }
    torch: dict[str, Any] = {"target": "torch:cuda", "framework": "torch", "device": "cuda", "adapter": None, "roles": roles}
    old = written(tmp_path / "old.jsonl", asked("accel", ADD, SUB, MIXED), **torch)
    new = written(tmp_path / "new.jsonl", asked("garbles-computing", ADD, SUB) + asked("moves-to-first", MIXED), **torch)
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "a.py"
    source.write_text("import torch\n\na = torch.ones(3)\nb = a - a\n")
    found = gate(read(old), read(new), Settings(uses=(tmp_path / "src",)))
    assert found.headline.startswith("3 changes, 1 of them in your code: 2 denied, 1 to look at (")
    assert [(finding.change.case, finding.used) for finding in found.findings] == [(SUB, True), (ADD, False), (MIXED, False)]
    (use,) = found.findings[0].uses
    assert (use.path, use.line, use.text) == (source, 4, "b = a - a")


# --- answers derived again ---------------------------------------------------------------------------


def test_words_of_another_suite_are_no_change_where_the_observations_are_alike(tmp_path: Path) -> None:
    old = asked("accel", ADD, MIXED)
    old[0] |= {"answer": "fine", "class": "neutral", "facets": {"colour": "red"}}
    assert report(tmp_path, old, asked("accel", ADD, MIXED)).findings == ()


def test_what_was_observed_counts_and_not_the_words_that_were_written_down(tmp_path: Path) -> None:
    new = asked("garbles-computing", ADD)
    new[0] |= {key: sample.cell("accel", ADD)[key] for key in ("answer", "class", "facets")}
    assert kinds(report(tmp_path, asked("accel", ADD), new)) == ["silent"]


def test_a_refusal_stands_only_where_its_control_works_on_either_side(tmp_path: Path) -> None:
    # Without sums at all, that a mixed one is refused says nothing: neither that it changed, nor that it didn't.
    new = asked("refuses-computing", ADD, MIXED)
    found = report(tmp_path, asked("accel", ADD, MIXED), new)
    assert [(f.change.case, f.change.kind) for f in found.findings] == [(ADD, "tightened"), (MIXED, "unsettled")]
    # The control wasn't selected: the record says beside the answer what it came to.
    alone = [cell | {"control": "raises"} for cell in new[1:]]
    found = report(tmp_path, asked("accel", MIXED), alone)
    assert kinds(found) == ["unsettled"]
    works = [cell | {"control": "works"} for cell in asked("moves-to-first", MIXED)]
    assert kinds(report(tmp_path, [asked("accel", MIXED)[0] | {"control": "works"}], works)) == ["loosened"]


def test_an_observation_that_nobody_can_read_is_unsettled(tmp_path: Path) -> None:
    old = asked("accel", ADD)
    old[0]["observation"] = {"steps": {step: {"value": {"kind": "tensor", "elements": 3}} for step in old[0]["observation"]["steps"]}}
    assert kinds(report(tmp_path, old, asked("accel", ADD))) == ["unsettled"]


def test_a_question_that_this_catalogue_doesn_t_know_is_compared_as_it_was_recorded(tmp_path: Path) -> None:
    old = [{**sample.cell("accel", ADD), "case": "placement/gone/host", "target": NAME}]
    assert report(tmp_path, asked("accel", ADD) + old, asked("accel", ADD) + old).findings == ()
    new = [{**old[0], "answer": "raises", "class": "refuses"}]
    assert kinds(report(tmp_path, asked("accel", ADD) + old, asked("accel", ADD) + new)) == ["tightened"]


@pytest.mark.parametrize("odd", [[], {"a": 1}, 3, "text", True, None])
def test_facets_of_an_unknown_question_may_be_anything(tmp_path: Path, odd: object) -> None:
    names = ("value", "operands", "error.type", "error.surfaces", "identity", "device works", "warnings", "result.device", "colour")
    old = {**sample.cell("accel", ADD), "case": "placement/gone/host", "target": NAME, "facets": {}}
    found = report(tmp_path, [old], [old | {"facets": dict.fromkeys(names, odd)}])
    assert [finding.change.case for finding in found.findings] == ([] if odd is None else ["placement/gone/host"])


# --- it fails closed ---------------------------------------------------------------------------------


def test_a_missing_cell_and_a_smaller_case_set_are_denied(tmp_path: Path) -> None:
    found = report(tmp_path, asked("accel", ADD, SUB, MIXED), asked("accel", ADD))
    (finding,) = found.findings
    assert (found.status, finding.change.kind, finding.change.cases) == (1, "missing", (SUB, MIXED))
    assert finding.change.detail == f"2 cases, such as {SUB}: NEW wasn't asked"


@pytest.mark.parametrize("status", ["not-run", "unavailable"])
def test_a_cell_that_was_not_asked_is_missing_however_it_says_so(tmp_path: Path, status: str) -> None:
    gone = {**asked("accel", SUB)[0], "status": status, "answer": None, "class": None, "verdict": None, "norm": None, "why": "stopped"}
    del gone["observation"]
    assert kinds(report(tmp_path, asked("accel", ADD, SUB), [*asked("accel", ADD), gone])) == ["missing"]
    assert kinds(report(tmp_path, [*asked("accel", ADD), gone], asked("accel", ADD, SUB))) == ["incomparable"]


def test_more_cases_than_before_are_said(tmp_path: Path) -> None:
    found = report(tmp_path, asked("accel", ADD), asked("accel", ADD, SUB))
    (finding,) = found.findings
    assert (found.status, finding.change.kind, finding.change.cases) == (0, "incomparable", (SUB,))


def test_another_question_under_the_same_id_is_incomparable(tmp_path: Path) -> None:
    old = asked("garbles-computing", ADD)
    old[0]["program"] = "0" * 16
    found = report(tmp_path, old + asked("accel", SUB), asked("accel", ADD, SUB))
    assert kinds(found) == ["incomparable"]
    assert "asked otherwise" in found.findings[0].change.detail


@pytest.mark.parametrize("cut", [0, 1])
def test_a_record_that_was_cut_short_is_denied_on_either_side(tmp_path: Path, cut: int) -> None:
    both = pair(tmp_path, asked("accel", ADD, SUB), asked("accel", ADD, SUB))
    path = both[cut].path
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-2]), "utf-8")
    found = gate(read(tmp_path / "old.jsonl"), read(tmp_path / "new.jsonl"), Settings())
    assert found.status == 1
    assert set(kinds(found)) == {"incomplete", "incomparable" if cut == 0 else "missing"}


def test_a_target_that_is_gone_or_didn_t_start_is_denied(tmp_path: Path) -> None:
    def without(why: str | None) -> Report:
        pair(tmp_path, asked("accel", ADD), asked("accel", ADD))
        other = sample.target("no-peer")
        lines(tmp_path / "old.jsonl", lambda n, one: one if n else one | {"targets": one["targets"] | {"dummy:no-peer": other}})
        if why:
            absent = {"target": "dummy:no-peer", "available": False, "why": why}
            lines(tmp_path / "new.jsonl", lambda n, one: one if n else one | {"targets": one["targets"] | {"dummy:no-peer": absent}})
        return gate(read(tmp_path / "old.jsonl"), read(tmp_path / "new.jsonl"), Settings())

    found = without(None)
    assert (found.status, kinds(found), found.findings[0].change.detail) == (1, ["missing"], "NEW has no such target")
    found = without("no driver")
    assert (found.status, found.findings[0].change.detail) == (1, "in NEW it didn't start: no driver")


def test_another_kind_of_evidence_machine_and_environment_are_denied(tmp_path: Path) -> None:
    roles = {name: {**facts, "evidence": "measured"} for name, facts in sample.target("accel")["roles"].items()}
    found = report(tmp_path, asked("accel", ADD), asked("accel", ADD), roles=roles)
    assert (found.status, kinds(found)) == (1, ["evidence"])
    assert "accelerator simulated → measured" in found.findings[0].change.detail
    cells = [cell | {"evidence": "documented"} for cell in asked("accel", ADD)]
    assert kinds(report(tmp_path, asked("accel", ADD), cells)) == ["evidence"]
    machine = {"python": "3.12", "system": "Darwin", "cores": "8"}
    found = report(tmp_path, asked("accel", ADD), asked("accel", ADD), machine=machine)
    assert (found.status, kinds(found)) == (1, ["machine"])
    assert found.findings[0].change.detail == "system: Linux → Darwin"
    assert "Python 3.11 on one side, 3.12 on the other" in found.comparison.notes
    found = report(tmp_path, asked("accel", ADD), asked("accel", ADD), build={"flavour": "plain", "gpu": "Some GPU"})
    assert kinds(found) == ["machine"]
    found = report(tmp_path, asked("accel", ADD), asked("accel", ADD), environment={"DUMMY_WIDE": "1"})
    assert (found.status, kinds(found)) == (1, ["environment"])
    assert found.findings[0].change.detail == "DUMMY_WIDE: not set → 1"


def test_where_nothing_could_be_compared_the_gate_could_not_do_it(tmp_path: Path) -> None:
    with pytest.raises(
        ProblemError, match=r"nothing could be compared: dummy:accel: 1 case, such as placement/sub/device-device: NEW wasn't"
    ):
        report(tmp_path, asked("accel", SUB), asked("accel", ADD))
    with pytest.raises(ProblemError, match="nothing could be compared: dummy:accel: NEW has no such target"):
        report(tmp_path, asked("accel", ADD), asked("accel", ADD), target="other:accel")
    with pytest.raises(ProblemError, match="nothing could be compared: neither record has an answer"):
        report(tmp_path, asked("no-peer", "placement/add/accelerator-peer"), asked("no-peer", "placement/add/accelerator-peer"))


# --- which target is which -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dummy:accel", "dummy:accel@.venvs/new/bin/python"), ("dummy:accel@a/python", "dummy:accel@b/python"),
        ("old=dummy:accel", "new=dummy:accel"), ("dummy:accel", "new=dummy:accel"),
    ],
)  # fmt: skip
def test_targets_of_one_framework_and_device_are_compared_whatever_their_interpreter_and_label(
    tmp_path: Path, before: str, after: str
) -> None:
    old = written(tmp_path / "old.jsonl", asked("accel", ADD), target=before)
    new = written(tmp_path / "new.jsonl", asked("garbles-computing", ADD), target=after)
    (change,) = compare(read(old), read(new)).changes
    assert (change.kind, change.target) == ("silent", "dummy:accel"), "labels say which record it is from, and not what it is"
    assert compare(read(old), read(new), ["dummy:a*"]).changes == [change]


def test_where_two_targets_could_be_meant_neither_is_taken(tmp_path: Path) -> None:
    old = written(tmp_path / "old.jsonl", asked("accel", ADD))
    new = written(tmp_path / "new.jsonl", asked("accel", ADD), target="a=dummy:accel")
    lines(new, lambda n, one: one if n else one | {"targets": one["targets"] | {"b=dummy:accel": {**one["targets"]["a=dummy:accel"]}}})
    found = compare(read(old), read(new))
    assert found.pairs == []
    assert found.changes[0].kind == "missing"
    assert "it isn't clear which of NEW's targets it is: a=dummy:accel, b=dummy:accel" in found.changes[0].detail


def test_globs_restrict_what_is_compared(tmp_path: Path) -> None:
    both = pair(tmp_path, asked("accel", ADD, SUB), asked("garbles-computing", ADD, SUB))
    assert [one.case for one in compare(*both, cases=["*/sub/*"]).changes] == [SUB]
    assert compare(*both, targets=["torch:*"]).pairs == []


def test_records_that_look_swapped_are_said(tmp_path: Path) -> None:
    cells = asked("accel", ADD)
    old = read(written(tmp_path / "a.jsonl", cells, version="2.10"))
    new = read(written(tmp_path / "b.jsonl", cells, version="2.9"))
    assert compare(old, new).notes == ["NEW is the older version (dummy:accel 2.10 → 2.9): are the two records swapped?"]
    assert compare(new, old).notes == []
