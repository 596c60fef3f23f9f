"""What PROTOCOL.md says of messages and of the process, a function for each rule: its docstring is the rule (controller side)."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from adapters.conversation import NotChecked, Talk, Wrong, parsed, short

#: What is no JSON: words, bytes that are no text, half an object, a number that JSON doesn't know, and more depth than a parser has.
_NO_JSON = (b"good morning", b"\xff\xfe\x00", b'{"type": "run", "id": 1', b'{"type": "run", "id": nope}', b"[" * 100_000)
_NO_OBJECT = (b"[]", b"3", b'"hello"', b"null")
_NO_IDS = ("seven", 1.5, -1, True, None, [1])
#: A line that is as long as a large program's, and one that is longer than any.
_LONG, _TOO_LONG = 5 * 2**20, 20 * 2**20
#: Commands whose worker runs on another machine, or in another room of this one.
_ELSEWHERE = ("ssh", "docker", "podman", "kubectl")


def hello(talk: Talk) -> None:
    """Say hello with what is here, as the schema says."""
    # That it fits the schema, with this protocol's number in it, was seen before anything was asked.
    if talk.hello["framework"] != talk.spec.framework:
        raise Wrong(f"asked for {talk.spec.framework}, it says that it is for {short(talk.hello['framework'])}")


def again(talk: Talk) -> None:
    """Answer a second hello as the first."""
    reply = talk.ask(talk.request("hello"))
    changed = [key for key in talk.hello.keys() | reply.keys() if key != "id" and talk.hello.get(key) != reply.get(key)]
    if changed:
        key = min(changed)
        raise Wrong(f"{key} was {short(talk.hello.get(key))} and is {short(reply.get(key))}")
    talk.alive()


def foreign(talk: Talk) -> None:
    """Answer hello for another framework with unavailable, and change nothing."""
    reply = talk.ask(talk.request("hello", framework="no-such-framework", adapter=None))
    if reply["type"] != "unavailable":
        raise Wrong(f"it answers {short(reply)}")
    talk.alive()


def warm(talk: Talk) -> None:
    """Answer warm with warm, once the device is."""
    if talk.kind is None:
        raise NotChecked("no device is here")
    reply = talk.ask(talk.request("warm", device=talk.kind))
    if reply["type"] != "warm":
        raise Wrong(f"it answers {short(reply)}")


def no_json(talk: Talk) -> None:
    """Answer a line that is no JSON with an error whose id is null, and go on."""
    for line in _NO_JSON:
        talk.refused(line)
    talk.alive()


def no_object(talk: Talk) -> None:
    """Answer JSON that is no object with an error whose id is null."""
    for line in _NO_OBJECT:
        talk.refused(line)
    talk.alive()


def ids(talk: Talk) -> None:
    """Answer a request without a whole number from 0 on as its id with an error whose id is null."""
    request = talk.request("run", device=talk.kind or "cpu", program={"steps": []})
    for bad in _NO_IDS:
        talk.refused({**request, "id": bad}, named=False)
    talk.refused({key: value for key, value in request.items() if key != "id"}, named=False)
    talk.alive()


def unknown_type(talk: Talk) -> None:
    """Answer a request of an unknown type, or of none, with an error that has its id."""
    request = talk.request("dance")
    for changed in (request, {**request, "type": 3}, {**request, "type": ["run"]}, {"id": request["id"]}):
        talk.refused(changed)
    talk.alive()


def lacking(talk: Talk) -> None:
    """Answer a request that lacks what its type needs, or whose program is none, with an error that has its id."""
    kind = talk.kind or "cpu"
    for request in ({"type": "hello"}, {"type": "run", "device": kind}, {"type": "run", "program": {"steps": []}}, {"type": "warm"}):
        talk.refused({**request, "id": talk.request("")["id"]})
    for steps in (None, [{"op": "barrier"}], [{"id": "s1"}], [{"id": "s1", "op": "barrier", "scope": "inference", "body": []}]):
        talk.refused(talk.request("run", device=kind, program={"steps": steps}))
    talk.alive()


def unknown_device(talk: Talk) -> None:
    """Answer a request for a device kind that isn't there with an error that has its id."""
    talk.refused(talk.request("run", device="no-such-device", program={"steps": []}))
    talk.refused(talk.request("warm", device="no-such-device"))
    talk.alive()


def unknown_key(talk: Talk) -> None:
    """Pass over a key that isn't known."""
    if talk.kind is None:
        raise NotChecked("no device is here")
    talk.run(talk.kind, [], novelty={"from": "a later protocol"})


def long_line(talk: Talk) -> None:
    """Answer a request of five megabytes like a short one."""
    if talk.kind is None:
        raise NotChecked("no device is here")
    request = talk.request("run", device=talk.kind, program={"steps": []})
    reply = talk.say(json.dumps(request).encode().replace(b", ", b"," + b" " * _LONG, 1))
    if reply["type"] != "observation" or reply["id"] != request["id"]:
        raise Wrong(f"it is answered with {short(reply)}")


def too_long_line(talk: Talk) -> None:
    """Answer twenty megabytes that are no request with one error whose id is null."""
    talk.refused(b"x" * _TOO_LONG)
    talk.alive()


def half_line(talk: Talk) -> None:
    """Wait with half a line until the rest has come."""
    process = talk.process()
    request = talk.request("dance")
    data = json.dumps(request).encode() + b"\n"
    process.tell(data[:9], talk.deadline)
    process.silent()
    process.tell(data[9:], talk.deadline)
    reply = talk.reply(process)
    if reply["id"] != request["id"]:
        raise Wrong(f"it is answered with {short(reply)}")


def in_order(talk: Talk) -> None:
    """Answer requests that come together in order, each once."""
    process = talk.process()
    requests = [talk.request("hello"), talk.request("dance"), talk.request("hello", framework="no-such-framework")]
    process.tell(b"".join(json.dumps(request).encode() + b"\n" for request in requests), talk.deadline)
    for request in requests:
        reply = talk.reply(process)
        if reply["id"] != request["id"]:
            raise Wrong(f"request {request['id']} is answered with {short(reply)}")
    process.silent()


def descriptors(talk: Talk) -> None:
    """Keep standard input and output from the framework, so that nothing that it prints is a reply."""
    if not sys.platform.startswith("linux"):
        raise NotChecked("only Linux shows what a process has open")
    if talk.spec.argv and Path(talk.spec.argv[0]).name in _ELSEWHERE:
        raise NotChecked(f"what runs behind {talk.spec.argv[0]} can't be looked at")
    leader, requests, replies = talk.process().streams
    for group in (opened := {pid: dict(_pipes(pid)) for pid in _session(leader)}).values():
        ours = {fd for fd, pipe in group.items() if pipe in (_pipe(os.fstat(requests)), _pipe(os.fstat(replies)))}
        if len(ours) >= 2 and not ours & {0, 1, 2}:
            return
    if not any(opened.values()):
        raise NotChecked("this system doesn't show what its processes have open")
    raise Wrong("what the framework reads or prints there is taken from the protocol: its descriptors 0 and 1 are still those of the suite")


def _session(leader: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # Behind the name, which is in brackets and may hold anything: state, parent, group, session.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                    yield int(entry.name)
            except OSError:
                continue  # it has ended


def _pipes(pid: int) -> Iterator[tuple[int, tuple[int, int]]]:
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found = entry.stat()
            if stat.S_ISFIFO(found.st_mode):
                yield int(entry.name), _pipe(found)
    except OSError:
        return  # it has ended, or isn't ours to look at


def _pipe(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def bye(talk: Talk) -> None:
    """Answer bye with nothing, and end with exit status 0."""
    process = talk.process()
    process.tell(json.dumps({"type": "bye", "id": 0}).encode() + b"\n", talk.deadline)
    _last_words(process.ended(talk.deadline))
    talk.end()


def early(talk: Talk) -> None:
    """Answer what is asked before hello with an error, and hello afterwards as ever."""
    process = talk.fresh()
    talk.refused(talk.request("run", device=talk.kind or "cpu", program={"steps": []}), process=process)
    talk.refused(talk.request("warm", device=talk.kind or "cpu"), process=process)
    talk.greet()
    talk.alive()


def closed(talk: Talk) -> None:
    """End with exit status 0, and nothing to say, when the input ends."""
    process = talk.process()
    process.hang_up()
    _last_words(process.ended(talk.deadline))
    talk.end()


def cut_off(talk: Talk) -> None:
    """End with exit status 0 when the input ends in the middle of a line."""
    process = talk.fresh()
    process.tell(b'{"type": "hel', talk.deadline)
    process.hang_up()
    for line in process.ended(talk.deadline):
        if parsed(line).get("type") != "error":  # it may say that this was no request
            raise Wrong(f"it says {short(line)}")
    talk.end()


def _last_words(lines: list[bytes]) -> None:
    if lines:
        raise Wrong(f"it says {short(lines[0])}")


#: In the order in which they are checked, before the programs and after them; the last ones end the process or begin with a new one.
RULES: tuple[Callable[[Talk], None], ...] = (
    hello, again, foreign, warm, no_json, no_object, ids, unknown_type, lacking, unknown_device, unknown_key, long_line, too_long_line,
    half_line, in_order, descriptors,
)  # fmt: skip
ENDS: tuple[Callable[[Talk], None], ...] = (bye, early, closed, cut_off)
