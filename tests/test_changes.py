"""Two answers to one question: every difference has its kind, the most dangerous names it, and no difference is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from cases.judge import judge
from reports.cells import Cell
from reports.changes import Change, change
from reports.compare import Comparison, compare
from reports.kinds import KINDS, danger
from tests import sample
from tests.defects import struck
from tests.pairs import Cells, asked, edited, failing, pair
from tests.test_answers import HARMLESS, used

ADD = "placement/add/device-device"
MIXED = "placement/add/host-accelerator"
PEER = "placement/add/accelerator-peer"


def compared(folder: Path, old: Cells, new: Cells, **changes: Any) -> Comparison:
    return compare(*pair(folder, old, new, **changes))


def one(folder: Path, old: Cells, new: Cells) -> Change:
    """Return the one change of a pair."""
    (found,) = compared(folder, old, new).changes
    return found


def dead(case: str, status: str = "crashed") -> dict[str, Any]:
    """Return the cell of a worker that died or never answered."""
    gone: dict[str, Any] = {"status": status, "answer": None, "class": None, "facets": {}, "verdict": "deviates", "why": "gone"}
    cell = {**sample.cell("accel", case), **gone}
    del cell["observation"]
    return cell


#: Kind -> case, what answered before, what answers now.
DEFECTS = {
    "silent": (ADD, "accel", "garbles-computing"),
    "damage": (MIXED, "accel", "garbles-filling"),
    "placement": (ADD, "accel", "lands-on-next-filling"),
    "dtype": (ADD, "accel", "widens-computing"),
    "memory": ("moving/pinned/again", "accel", "ignores-pinning"),
    "aliasing": ("moving/to-same/object", "accel", "copies-on-same-to"),
    "identity": ("moving/to-same/object", "accel", "rewraps-on-same-to"),
    "tightened": (ADD, "accel", "refuses-computing"),
    "vanished": (PEER, "accel", "no-peer"),
    "surfaces": (MIXED, "accel", "checks-late"),
    "timing": ("time/loop/matmul", "accel", "blocks"),
    "error-class": ("placement/add-in-place/host-accelerator", "accel", "refuses-writing"),
    "answer": ("moving/ordinal/handle-host", "accel", "numbers-the-host"),
    "loosened": (MIXED, "accel", "moves-to-first"),
    "mended": (ADD, "garbles-computing", "accel"),
    "error-text": (MIXED, "accel", "lands-on-next-filling"),
    "warning": ("placement/sharded/add-host/left", "accel", "narrows-with-warning-uploading"),
    "appeared": (PEER, "no-peer", "accel"),
    "unsettled": (ADD, "accel", "refuses-filling"),
}
EDITED: dict[str, tuple[dict[str, Any], str, dict[str, Any], dict[str, Any]]] = {
    "commitment": (sample.cell("accel", ADD), "result", {"committed": False}, {"committed": True}),
    "dtype": (sample.cell("accel", ADD), "result", {}, {"weak": True}),
    "memory": (sample.cell("accel", ADD), "result", {"memory": "device"}, {"memory": "unpinned-host"}),
}


@pytest.mark.parametrize("kind", DEFECTS)
def test_a_defect_in_the_new_version_is_named_by_its_kind(tmp_path: Path, kind: str) -> None:
    case, old, new = DEFECTS[kind]
    found = one(tmp_path, asked(old, case), asked(new, case))
    assert (found.kind, found.case) == (kind, case)
    assert found.old
    assert found.new


@pytest.mark.parametrize("kind", EDITED)
def test_a_facet_that_the_dummy_lacks_is_named_by_its_kind(tmp_path: Path, kind: str) -> None:
    cell, mark, old, new = EDITED[kind]
    found = one(tmp_path, [edited(cell, mark, **old)], [edited(cell, mark, **new)])
    assert (found.kind, found.others) == (kind, ())


def test_a_value_in_reduced_precision_is_no_wrong_one_and_a_change(tmp_path: Path) -> None:
    cell = sample.cell("accel", ADD)
    value = cell["observation"]["steps"][catalogue()[ADD].program.marks["value"]]["value"]
    rough = edited(cell, "value", elements=[e * 1.001 for e in value["elements"]])
    rough = edited(rough, "again", elements=[e * 1.001 for e in value["elements"]])
    found = compared(tmp_path, [cell], [rough]).changes
    # What an addition may be off by is less than that: it is wrong by its answer.
    assert [change.kind for change in found] == ["silent"]
    made = Cell.from_json(cell)
    other = replace(made, facets={**made.facets, "value": "right in reduced precision"})
    named = change("x", made, other)
    assert named is not None
    assert (named.kind, named.old, named.new) == ("precision", "works", "works")


@pytest.mark.parametrize("status", ["crashed", "hung"])
def test_a_worker_that_dies_or_hangs_is_the_worst_but_a_wrong_value(tmp_path: Path, status: str) -> None:
    assert one(tmp_path, asked("accel", ADD), [dead(ADD, status)]).kind == "crash"
    assert one(tmp_path, asked("accel", MIXED), [dead(MIXED, status)]).kind == "crash"
    assert one(tmp_path, [dead(ADD, status)], asked("accel", ADD)).kind == "mended"
    assert one(tmp_path, [dead(ADD, status)], asked("garbles-computing", ADD)).kind == "silent"


def unmodelled(case: str) -> dict[str, Any]:
    """Return the cell of a simulation that can't express the question."""
    cell = sample.cell("accel", case)
    cell["observation"]["steps"][catalogue()[case].program.marks["result"]] = {"not_modelled": "there are no values"}
    return judge(catalogue()[case], sample.target("accel"), {"observation": cell["observation"]})


def test_what_a_simulation_no_longer_models_is_not_called_gone(tmp_path: Path) -> None:
    gone = [unmodelled(ADD)]
    found = one(tmp_path, asked("accel", ADD), gone)
    assert (found.kind, found.others, found.new, found.now) == ("unmodelled", (), "not-modelled", "there are no values")
    assert KINDS[found.kind].level == "deny", "it fails closed"
    assert "no longer models" in KINDS[found.kind].says
    back = one(tmp_path, gone, asked("accel", ADD))
    assert (back.kind, back.others, back.old) == ("modelled", (), "not-modelled")
    wrong = one(tmp_path, gone, asked("garbles-computing", ADD))
    assert (wrong.kind, wrong.others) == ("silent", ("modelled",))
    assert not compared(tmp_path, gone, gone).changes


def test_what_appears_and_is_wrong_at_once_is_named_by_that(tmp_path: Path) -> None:
    found = one(tmp_path, asked("no-peer", PEER), [dead(PEER)])
    assert (found.kind, found.others) == ("crash", ("appeared",))


def test_the_most_dangerous_kind_names_a_change_and_the_others_are_listed(tmp_path: Path) -> None:
    found = one(tmp_path, asked("accel", ADD), asked("lands-on-next-computing", ADD))
    assert (found.kind, found.others) == ("silent", ("placement",))
    found = one(
        tmp_path, asked("accel", "placement/sub/device-device"), asked("narrows-with-warning-computing", "placement/sub/device-device")
    )
    assert (found.kind, found.others) == ("dtype", ("warning",))
    assert danger("silent") < danger("dtype") < danger("warning")


def test_a_mended_answer_is_explained_by_that_and_not_by_where_it_is_now(tmp_path: Path) -> None:
    found = one(tmp_path, asked("lands-on-next-computing", ADD), asked("accel", ADD))
    assert (found.kind, found.others) == ("mended", ())


def test_a_wrong_answer_that_is_refused_now_stops_code_that_ran(tmp_path: Path) -> None:
    found = one(tmp_path, asked("garbles-computing", ADD), asked("refuses-computing", ADD))
    assert (found.kind, found.others) == ("tightened", ("mended",))


def test_an_error_that_comes_up_beside_the_same_answer_is_a_change(tmp_path: Path) -> None:
    case = "moving/ordinal/value-host"
    found = one(tmp_path, asked("accel", case), asked("fails-late-uploading", case))
    assert (found.kind, found.old, found.new) == ("surfaces", "none", "none")


def test_an_error_of_a_derived_class_is_still_caught_and_a_module_that_moved_is_seen(tmp_path: Path) -> None:
    derived = failing(MIXED, type="MixedDevicesError", bases=["DeviceError"])
    found = one(tmp_path, asked("accel", MIXED), [derived])
    assert (found.kind, found.detail) == ("error-class", "`except DeviceError` still catches it")
    moved = one(tmp_path, asked("accel", MIXED), [failing(MIXED, module="tests.elsewhere")])
    (difference,) = moved.differences
    assert (difference.kind, difference.old, difference.new) == ("error-class", "tests.fake.DeviceError", "tests.elsewhere.DeviceError")


def test_texts_are_compared_by_what_they_name_and_not_letter_by_letter(tmp_path: Path) -> None:
    text = next(f["error"]["text"] for f in sample.cell("accel", MIXED)["observation"]["steps"].values() if "error" in f)
    assert not compared(tmp_path, asked("accel", MIXED), [failing(MIXED, text=f"{text} (object at 0x7f3a, /tmp/x)")]).changes
    found = one(tmp_path, asked("accel", MIXED), [failing(MIXED, text="that can't be")])
    assert found.kind == "error-text"
    assert found.now.endswith("that can't be")


def test_times_are_never_compared(tmp_path: Path) -> None:
    case = "time/loop/matmul"
    slower = sample.cell("accel", case, seconds=9.0)
    for fact in slower["observation"]["steps"].values():
        for times in fact.get("value", {}).get("rounds", []):
            times.update(returned=times["returned"] * 3, synchronised=times["synchronised"] * 3)
    assert not compared(tmp_path, asked("accel", case), [slower]).changes


def test_what_one_side_can_t_see_is_not_called_a_change_of_it(tmp_path: Path) -> None:
    case = "moving/write-original/to-same"
    cell = sample.cell("accel", "placement/add-in-place/device-device")
    found = one(tmp_path, [edited(cell, "identity", object=False, storage=None)], [edited(cell, "identity", object=False, storage=False)])
    assert (found.kind, found.differences[0].what) == ("unsettled", "identity")
    made = Cell.from_json(sample.cell("accel", case))
    hidden = replace(made, facets={**made.facets, "value": "not observable"})
    named = change("x", hidden, replace(made, facets={**made.facets, "value": "right"}))
    assert named is not None
    assert named.kind == "unsettled"
    refused = Cell.from_json(sample.cell("accel", MIXED))
    blind, seen = (replace(refused, facets={**refused.facets, "operands": word}) for word in ("unknown", "damaged"))
    damage = change("x", blind, seen)
    assert damage is not None
    assert damage.kind == "unsettled"


# --- what isn't settled --------------------------------------------------------------------------


def wavering(case: str, kind: str, *answers: str) -> dict[str, Any]:
    return sample.cell(kind, case, answers=list(answers))


def test_an_answer_that_wavers_is_neither_a_change_nor_silence(tmp_path: Path) -> None:
    for old, new in (
        (asked("accel", MIXED), [wavering(MIXED, "accel", "moves-to-host", "raises")]),
        ([wavering(MIXED, "accel", "moves-to-host", "raises")], asked("accel", MIXED)),
        ([wavering(MIXED, "accel", "moves-to-host", "raises")], [wavering(MIXED, "accel", "moves-to-host", "raises")]),
    ):
        found = one(tmp_path, old, new)
        assert (found.kind, found.others) == ("unsettled", ())


def test_an_answer_that_was_never_seen_before_is_a_change_however_the_old_one_wavered(tmp_path: Path) -> None:
    old = [wavering(MIXED, "accel", "moves-to-host", "raises")]
    assert one(tmp_path, old, asked("moves-to-last", MIXED)).kind == "loosened"


def test_a_wrong_answer_that_comes_now_and_then_is_no_mere_wavering(tmp_path: Path) -> None:
    found = one(tmp_path, asked("accel", ADD), [wavering(ADD, "accel", "garbage", "works")])
    assert (found.kind, found.others) == ("silent", ("unsettled",))
    found = one(tmp_path, asked("accel", ADD), [wavering(ADD, "accel", "hung", "works")])
    assert (found.kind, found.others) == ("crash", ("unsettled",))


def test_what_neither_side_can_decide_is_no_change(tmp_path: Path) -> None:
    assert not compared(tmp_path, asked("refuses-filling", ADD, MIXED), asked("refuses-filling", ADD, MIXED)).changes


# --- silence where nothing changed, and no miss -----------------------------------------------------


@pytest.mark.parametrize("kind", ["accel", "no-peer", "host-only", "garbles-computing", "refuses-everything", "blocks"])
def test_the_same_answers_give_nothing(tmp_path: Path, kind: str) -> None:
    cases = list(catalogue())[::7]
    found = compared(tmp_path, asked(kind, *cases), asked(kind, *cases))
    assert found.changes == []
    assert len(found.compared) == len(cases)


def test_every_difference_that_a_defect_makes_is_a_change_and_nothing_else_is() -> None:
    numbers = {"size", "chain", "rounds"}

    def seen(cell: Cell) -> tuple[object, ...]:
        return cell.status, cell.answer, {key: value for key, value in cell.facets.items() if key not in numbers}

    names = [name for name, case in catalogue().items() if not case.environment and not case.fresh][::29]
    different = 0
    for name in names:
        healthy = Cell.from_json(sample.cell("accel", name))
        for kind in HARMLESS:
            if used(catalogue()[name]) & struck(kind):
                broken = Cell.from_json(sample.cell(kind, name))
                found = change("dummy:accel", healthy, broken)
                assert (found is not None) == (seen(healthy) != seen(broken)), f"{name} on {kind}: {found}"
                assert found is None or all(difference.kind in KINDS for difference in found.differences)
                different += found is not None
    assert different > 300


def test_two_defects_at_once_are_told_by_the_worse_of_both(tmp_path: Path) -> None:
    single = {kind: new for kind, (case, old, new) in DEFECTS.items() if case == ADD and old == "accel" and kind != "unsettled"}
    for kind, broken in single.items():
        for other, also in single.items():
            cells = asked(broken, ADD) + asked(also, "placement/sub/device-device")
            found = compared(tmp_path, asked("accel", ADD, "placement/sub/device-device"), cells).changes
            assert sorted({kind, other}, key=danger) == list(dict.fromkeys(one.kind for one in found))


def test_every_kind_has_words_a_level_and_advice() -> None:
    for name, kind in KINDS.items():
        assert kind.level in ("deny", "warn", "allow")
        assert kind.says, name
        assert kind.advice, name
        assert not {kind.says[-1], kind.advice[-1]} & set(".!")
