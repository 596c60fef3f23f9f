"""A whole worker, made from PROTOCOL.md alone: `python -m tests.small_worker [FAULT]`.

Its framework is plain lists (`tests.small_lists`). With the name of a fault it breaks one rule of the page, to
show that `python -m adapters check` finds that out. It knows nothing of the suite's code.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.small_lists import DEVICES, DTYPES, NONE, OPERATIONS, MalformedError, Run, broken

greetings = 0


def hello(request: dict[str, Any]) -> dict[str, Any]:
    global greetings
    greetings += 1
    if not isinstance(request.get("framework"), str):
        raise MalformedError("hello names no framework")
    if broken("refuses-hello"):
        raise MalformedError("not today")
    if request["framework"] != "lists" and not broken("any-framework"):
        return {"type": "unavailable", "missing": False, "why": f"this worker is for lists, not for {request['framework']}"}
    if broken("unavailable"):
        return {"type": "unavailable", "missing": True, "why": "lists are not here"}
    told = {
        "type": "hello", "protocol": 2 if broken("later-protocol") else 1, "framework": "tuples" if broken("other-name") else "lists",
        "version": "1.0", "build": {"compiler": 3} if broken("number-in-build") else {}, "machine": {}, "environment": {},
        "environments": {}, "operations": sorted(OPERATIONS), "dtypes": list(DTYPES), "devices": DEVICES,
    }  # fmt: skip
    if broken("no-devices"):
        del told["devices"]
    if broken("counts-greetings"):
        told["build"] = {"greetings": str(greetings)}
    return told


def run(request: dict[str, Any]) -> dict[str, Any]:
    kind, program = request.get("device"), request.get("program")
    given = None if broken("ignores-roles") else request.get("roles")
    roles = given or DEVICES.get(kind if isinstance(kind, str) else "", DEVICES["gpu"] if broken("any-device") else {}).get("roles")
    if roles is None or not isinstance(kind, str):
        raise MalformedError(f"no device kind {kind} here")
    if broken("no-program-is-one") and program is None:
        program = {"steps": []}
    if not isinstance(program, dict):
        raise MalformedError("run without a program")
    one = Run(roles)
    one.steps(program.get("steps"))
    steps = {**one.facts, "s99": {"value": NONE}} if broken("invents-steps") else one.facts
    return {"type": "observation", "observation": {"steps": steps, **({"spelled": one.spelled} if one.spelled else {})}}


def warm(request: dict[str, Any]) -> dict[str, Any]:
    run({**request, "program": {"steps": []}})
    return {"type": "observation", "observation": {"steps": {}}} if broken("misnames-warm") else {"type": "warm"}


def answer(line: bytearray) -> dict[str, Any]:
    if broken("dies-of-rubbish"):
        json.loads(line)
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"type": "error", "id": 0 if broken("rubbish-is-0") else None, "error": f"no JSON: {error}"}
    if not isinstance(request, dict):
        return {"type": "warm", "id": 0} if broken("takes-lists") else {"type": "error", "id": None, "error": "no JSON object"}
    number, kind = request.get("id"), request.get("type")
    whole = isinstance(number, int) and number >= 0 and (broken("truth-is-id") or not isinstance(number, bool))
    if not whole and not broken("echoes-ids"):
        return {"type": "error", "id": None, "error": "no id"}
    try:
        if broken("strict-keys") and request.keys() - {"id", "type", "framework", "adapter", "device", "program", "roles", "deadline"}:
            raise MalformedError("a key that isn't known")
        if kind not in ("hello", "run", "warm"):
            return {"type": "error", "id": None if broken("forgets-ids") else number, "error": f"no type {kind}"}
        if kind != "hello" and not greetings and not broken("early"):
            raise MalformedError("before hello")
        return {"id": number, **{"hello": hello, "run": run, "warm": warm}[kind](request)}
    except MalformedError as error:
        return {"type": "error", "id": number, "error": f"Traceback:\n{error}" if broken("tells-tracebacks") else str(error)}


def lines(incoming: int) -> Iterator[list[bytearray]]:
    rest = bytearray()
    while True:
        more = os.read(incoming, 1 << 20)
        rest += more
        too_long = len(rest) > (1 << 16 if broken("short-lines") else 12 << 20) and broken("short-lines", "cuts-lines")
        if too_long or (rest and broken("eager")):
            rest += b"\n"
        if b"\n" in rest[-len(more) - 1 :]:
            *whole, rest = rest.split(b"\n")
            yield whole[::-1] if broken("reorders") else whole
        if not more:
            if rest and broken("dies-of-half-a-line"):
                json.loads(rest)
            return


def main() -> None:
    incoming, outgoing = 0, 1
    if not broken("keeps-descriptors"):
        incoming, outgoing = os.dup(0), os.dup(1)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(2, 1)

    def say(reply: dict[str, Any]) -> None:
        left = json.dumps(reply).encode() + b"\n"
        while left:
            left = left[os.write(outgoing, left) :]

    if broken("starts-once"):
        Path(os.environ["SMALL_WORKER_MARK"]).touch(exist_ok=False)
    if broken("chatters"):
        os.write(outgoing, b"welcome to lists\n")
    for batch in lines(incoming):
        for line in batch:
            if b'"bye"' in line and not broken("stays"):
                if broken("answers-bye"):
                    say({"type": "bye", "id": 0})
                sys.exit(3 if broken("bye-is-3") else 0)
            if line.strip() or not broken("hangs"):
                time.sleep(60 if broken("hangs") and greetings else 0)
                reply = answer(line)
                say(reply)
                if broken("answers-twice") and reply["type"] == "error":
                    say(reply)
    if broken("last-words"):
        say({"type": "warm", "id": 0})
    time.sleep(60 if broken("outlives-input") else 0)


if __name__ == "__main__":
    main()
