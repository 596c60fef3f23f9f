"""Changes that were accepted: what fits, what is stale, what has run out, and the skeleton of new entries."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reports import accept
from reports.gate import Report, Settings, gate
from reports.kinds import KINDS
from reports.verbs import ProblemError, main
from tests.pairs import asked, pair

ADD = "placement/add/device-device"
MIXED = "placement/add/host-accelerator"
TODAY = date(2026, 5, 1)
ENTRY = {
    "case": "placement/add/*", "kind": "silent", "old": "works", "new": "garbage", "reason": "known, and nobody adds",
    "expires": date(2026, 6, 1),
}  # fmt: skip

ENDLESS = {key: value for key, value in ENTRY.items() if key != "expires"}


def written(path: Path, *entries: dict[str, Any]) -> Path:
    def value(item: Any) -> str:
        return item.isoformat() if isinstance(item, date) else str(item).lower() if isinstance(item, bool) else repr(item)

    text = "".join("[[accept]]\n" + "".join(f"{key} = {value(item)}\n" for key, item in entry.items()) for entry in entries)
    path.write_text(text, "utf-8")
    return path


def report(folder: Path, *entries: dict[str, Any], new: str = "garbles-computing", levels: dict[str, str] | None = None) -> Report:
    path = written(folder / "accepted.toml", *entries)
    chosen = Settings({name: kind.level for name, kind in KINDS.items()} | (levels or {}), path)
    return gate(*pair(folder, asked("accel", ADD), asked(new, ADD)), chosen, accept.read(path), today=TODAY)


def kinds(found: Report) -> list[str]:
    return [finding.change.kind for finding in found.findings]


def test_an_accepted_change_is_no_finding_and_is_told_with_its_reason(tmp_path: Path) -> None:
    found = report(tmp_path, ENTRY)
    assert (found.status, found.findings) == (0, ())
    ((change, entry),) = found.accepted
    assert (change.case, entry.reason, entry.line) == (ADD, "known, and nobody adds", 1)
    assert found.headline.startswith("1 change: 1 accepted (")


@pytest.mark.parametrize(
    "other",
    [
        {"case": "placement/sub/*"}, {"kind": "dtype"}, {"old": "raises"}, {"new": "moves-elsewhere"}, {"target": "torch:*"},
    ],
)  # fmt: skip
def test_what_fits_only_in_part_is_not_accepted(tmp_path: Path, other: dict[str, str]) -> None:
    found = report(tmp_path, ENTRY | other)
    assert "silent" in kinds(found)
    assert found.status == 1


def test_cases_and_kinds_can_be_lists_and_words_globs(tmp_path: Path) -> None:
    wide = ENTRY | {"case": ["moving/*", "placement/*"], "kind": ["silent", "placement"], "old": "*", "target": "dummy:*"}
    assert report(tmp_path, wide, new="garbles-computing").status == 0
    assert report(tmp_path, wide | {"new": "*"}, new="lands-on-next-computing").status == 0


def test_every_kind_of_a_change_has_to_be_accepted_unless_it_is_allowed(tmp_path: Path) -> None:
    one = ENTRY | {"new": "moves-elsewhere"}
    assert kinds(report(tmp_path, one, new="lands-on-next-computing")) == ["silent", "stale"]
    assert report(tmp_path, one, new="lands-on-next-computing", levels={"placement": "allow"}).status == 0


def test_an_entry_that_fits_nothing_any_more_is_a_finding(tmp_path: Path) -> None:
    found = report(tmp_path, ENTRY, new="accel")
    (finding,) = found.findings
    assert (found.status, finding.change.kind, finding.level) == (1, "stale", "deny")
    assert "no such change is there any more" in finding.change.detail
    assert finding.entry is not None
    found = report(tmp_path, ENTRY | {"case": "placement/ad/*"}, new="accel")
    assert "there is no such case" in found.findings[0].change.detail


def test_a_second_entry_for_the_same_is_a_finding_and_says_so(tmp_path: Path) -> None:
    found = report(tmp_path, ENTRY, ENTRY)
    (finding,) = found.findings
    assert (finding.change.kind, len(found.accepted)) == ("stale", 1)
    assert "an entry before it accepts the same already" in finding.change.detail


def test_an_entry_about_what_was_not_compared_is_not_called_stale(tmp_path: Path) -> None:
    assert report(tmp_path, ENTRY | {"case": "moving/*"}, new="accel").status == 0
    assert report(tmp_path, ENTRY | {"target": "torch:*"}, new="accel").status == 0


@pytest.mark.parametrize(
    ("end", "over"),
    [
        ({"expires": date(2026, 4, 30)}, "ran out on 2026-04-30"), ({"expires": date(2026, 5, 1)}, ""),
        ({"until": "2.0"}, "ran out with version 2.0"), ({"until": "1.9"}, "ran out with version 1.9"), ({"until": "2.1"}, ""),
    ],
)  # fmt: skip
def test_an_entry_past_its_end_accepts_nothing_and_is_a_finding(tmp_path: Path, end: dict[str, Any], over: str) -> None:
    entry = ENDLESS | end
    found = report(tmp_path, entry)
    assert kinds(found) == (["silent", "expired"] if over else [])
    if over:
        assert over in found.findings[1].change.detail
        assert kinds(report(tmp_path, entry, new="accel")) == ["expired"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (ENTRY | {"kind": "sloppy"}, "unknown kind 'sloppy'; there are silent"),
        (ENTRY | {"kind": ["silent", "sloppy"]}, "unknown kind 'sloppy'"),
        (ENTRY | {"why": "so"}, "unknown key 'why'; there are case, "),
        (ENTRY | {"reason": " "}, "say why it is accepted, as reason"),
        (ENTRY | {"case": []}, "case wants a text, or a list of them"),
        (ENTRY | {"case": 3}, "case wants a text, or a list of them"),
        (ENTRY | {"old": 3}, "old wants a text"),
        (ENTRY | {"until": "2.0"}, "say when it ends: expires, a date"),
        (ENDLESS, "say when it ends: expires, a date"),
        (ENTRY | {"expires": "2026-06-01"}, "expires wants a date without quotes"),
        (ENDLESS | {"until": "soon"}, "until wants a version, such as '0.11', not 'soon'"),
        (ENDLESS | {"until": 2}, "until wants a version"),
    ],
)  # fmt: skip
def test_an_entry_that_isn_t_in_order_is_one_sentence_with_its_line(tmp_path: Path, entry: dict[str, Any], says: str) -> None:
    path = written(tmp_path / "accepted.toml", ENTRY, entry)
    with pytest.raises(ProblemError) as raised:
        accept.read(path)
    assert says in str(raised.value)
    assert f"{path}, entry 2 (line {len(ENTRY) + 2}): " in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["accept = 3", "[accept]\ncase = 'x'", "[[accepted]]", "[[accept]", "\x00"])
def test_a_file_of_another_form_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text(text)
    with pytest.raises(ProblemError, match=r"^the accept file .* (can't be read|holds something else)"):
        accept.read(path)


def test_update_writes_entries_that_want_a_reason_and_then_accept_just_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = asked("lands-on-next-computing", ADD, "placement/sub/device-device") + asked("moves-to-first", MIXED)
    pair(tmp_path, asked("accel", ADD, "placement/sub/device-device", MIXED), cells)
    path = tmp_path / "deep" / "accepted.toml"
    command = ["gate", str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl"), "--accept", str(path)]
    assert main([*command, "--update"]) == 1
    assert f"{path}: 3 changes added; give each a reason" in capsys.readouterr().err
    entries = tomllib.loads(path.read_text("utf-8"))["accept"]
    assert [entry["case"] for entry in entries] == [[ADD, "placement/sub/device-device"], MIXED]
    assert entries[0]["kind"] == ["silent", "placement"]
    assert all(entry["expires"] > date.today() for entry in entries)
    assert main(command) == 2
    assert "entry 1 (line 2): say why it is accepted, as reason" in capsys.readouterr().err
    path.write_text(path.read_text("utf-8").replace('reason = ""', 'reason = "looked at"'), "utf-8")
    assert main(command) == 0
    assert "3 changes: 3 accepted" in capsys.readouterr().out
    before = path.read_text("utf-8")
    assert main([*command, "--update"]) == 0
    assert path.read_text("utf-8") == before


def test_a_skeleton_s_texts_stand_for_themselves(tmp_path: Path) -> None:
    (change,) = gate(*pair(tmp_path, asked("accel", ADD), asked("garbles-computing", ADD)), Settings()).comparison.changes
    odd = type(change)(**{**vars(change), "target": 'a"[x]*:b\n\x7f\ud800'})
    path = tmp_path / "accepted.toml"
    path.write_text(accept.skeleton([odd], TODAY).replace('reason = ""', 'reason = "x"'), "utf-8")
    (entry,) = accept.read(path)
    assert entry.fits(odd, Settings().levels)
    assert not entry.fits(change, Settings().levels)
