"""A command that loses its connection, as ssh does: nothing that the framework did, and the end of the run says so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.lane import Lane, Request, Settings
from adapters.targets import Spec
from tests.running import ask, cells

PROGRAM: dict[str, Any] = {"steps": []}
#: Connects so many times, and then no more. The worker behind it behaves in one way at first, in another later.
LOSES = """#!/bin/sh
tries=$(cat "$0.tries" 2>/dev/null || echo 0); tries=$((tries + 1)); echo $tries > "$0.tries"
if [ $tries -gt {times} ]; then echo "connect to host mac port 22: Connection refused" >&2; exit 255; fi
if [ $tries -eq 1 ]; then mode=$2; else mode=$3; fi
{python} {broken} $mode
{end}
"""
LOST = 'echo "client_loop: send disconnect: Broken pipe" >&2; exit 255'


def script(folder: Path, times: int, end: str) -> tuple[str, ...]:
    """Return the words of a command that stands before an interpreter."""
    path = folder / "lossy"
    path.write_text(LOSES.format(times=times, end=end, python=sys.executable, broken=Path(__file__).parent / "broken.py"))
    path.chmod(0o755)
    return (str(path), "mac")


def replies(
    argv: tuple[str, ...], mode: str, count: int = 1, *, later: str = "", fresh: bool = False, deadline: float = 30
) -> list[dict[str, Any]]:
    """Ask through a command; the worker behind it behaves as modes of `broken.py` say."""
    lane = Lane(Spec("numpy", None, (*argv, mode, later or mode)), Settings(deadline=deadline), lambda _: None)
    request = Request("mac=numpy:cpu", "case", PROGRAM, fresh=fresh)
    try:
        return [lane.ask(request, "cpu")[0] for _ in range(count)]
    finally:
        lane.close()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_connection_that_is_lost_for_good_is_not_what_the_framework_did(tmp_path: Path, fresh: bool) -> None:
    first, second = replies(script(tmp_path, 1, LOST), "exit-0", 2, fresh=fresh)
    assert (first["status"], first["lost"]) == ("inconclusive", True)
    assert "was lost: it ended with exit status 255 in the middle of a question: client_loop: send disconnect" in first["why"]
    assert first["why"].endswith("ended with exit status 255: connect to host mac port 22: Connection refused")
    assert (second["status"], second["lost"]) == ("unavailable", True)


def test_a_question_in_which_the_connection_is_lost_once_is_asked_again(tmp_path: Path) -> None:
    (reply,) = replies(script(tmp_path, 2, LOST), "exit-0", later="flood")
    assert reply["observation"] == {"steps": {}}


def test_a_question_in_which_the_connection_is_lost_again_is_not_decided(tmp_path: Path) -> None:
    (reply,) = replies(script(tmp_path, 9, LOST), "exit-0")
    assert (reply["status"], reply["lost"]) == ("inconclusive", True)
    assert "was lost twice in the middle of this question" in reply["why"]


def test_silence_that_a_lost_connection_explains_is_no_hang(tmp_path: Path) -> None:
    (reply,) = replies(script(tmp_path, 1, LOST), "hang", deadline=0.5)
    assert (reply["status"], reply["lost"]) == ("inconclusive", True)
    (reply,) = replies(script(tmp_path, 9, LOST), "hang", deadline=0.5)
    assert reply["status"] == "hung"


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize(("end", "words"), [("kill -SEGV $$", "SIGSEGV"), ("exit 134", "status 134"), ("exit 139", "status 139")])
def test_a_crash_behind_a_command_stays_one(tmp_path: Path, times: int, end: str, words: str) -> None:
    (reply,) = replies(script(tmp_path, times, end), "exit-0")
    assert reply["status"] == "crashed"
    assert words in reply["why"]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_worker_that_somebody_killed_is_asked_again(tmp_path: Path, fresh: bool) -> None:
    one = (script(tmp_path, 9, "exit $?")[0],)
    (reply,) = replies(one, "killed", later="flood", fresh=fresh)
    assert reply["observation"] == {"steps": {}}


def test_a_worker_that_every_try_ends_is_a_crash(tmp_path: Path) -> None:
    (reply,) = replies(script(tmp_path, 9, "exit $?"), "killed")
    assert (reply["status"], "status 137" in reply["why"]) == ("crashed", True)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_framework_that_is_exchanged_during_a_run_answers_no_more_in_its_name(tmp_path: Path, fresh: bool) -> None:
    first, second = replies(script(tmp_path, 9, "exit $?"), "exit-0", 2, later="another", fresh=fresh)
    assert (first["status"], second["status"], second["lost"]) == ("inconclusive", "unavailable", True)
    assert "was exchanged during the run (1.0 → 2.0)" in second["why"]


def test_only_a_command_with_something_behind_it_can_lose_that() -> None:
    assert not Spec("numpy", None, None).wrapped
    assert not Spec("numpy", None, ("/usr/bin/python3",)).wrapped
    assert Spec("numpy", None, ("ssh", "mac", "python3")).wrapped
    assert Spec("candle", None, ("ssh", "mac", "worker")).wrapped


@pytest.mark.slow
@pytest.mark.parametrize(("device", "expect"), [("accel", 2), ("acce[l]", 0)], ids=["named", "matched"])
def test_the_end_of_a_run_says_which_target_was_lost_and_what_it_misses(tmp_path: Path, device: str, expect: int) -> None:
    command = tmp_path / "lossy"
    # The connection is lost as soon as three answers are in the record.
    command.write_text(f"""#!/bin/sh
    [ -e "$0.once" ] && {{ echo "Connection refused" >&2; exit 255; }}
    touch "$0.once"; exec 3<&0; shift; "$@" <&3 & worker=$!
    until [ "$(grep -c '"status":"answered"' {tmp_path}/record.jsonl 2>/dev/null || true)" -gt 2 ] 2>/dev/null; do sleep 0.02; done
    kill -9 $worker; echo "Broken pipe" >&2; exit 255
    """)
    command.chmod(0o755)
    target = f"mac=dummy:{device}@{command} mac {sys.executable}"
    chosen = ("--case", "moving/*", "--repeat", "30", f"--record={tmp_path / 'record.jsonl'}")
    said = " ".join(ask("--adapter", "dummy=tests.dummy:Dummy", "--target", target, *chosen, expect=expect).split())
    assert "mac=dummy:accel was lost part-way, so that " in said
    missing = sum(status in ("unavailable", "inconclusive") for status in cells(tmp_path / "record.jsonl").values())
    assert missing > 1
    assert f"{missing} cells have no answer" in said
    assert ("ERROR: mac=dummy:accel was lost" in said) == (expect == 2)
