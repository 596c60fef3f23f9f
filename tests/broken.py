"""A worker that breaks the protocol on purpose: `python tests/broken.py MODE`.

It stands in for an interpreter behind `@`, and knows nothing of the suite's code.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def say(text: bytes) -> None:
    os.write(1, text)


def reply(request: dict[str, Any], **facts: Any) -> bytes:
    return json.dumps({"id": request["id"], **facts}).encode() + b"\n"


def hello(request: dict[str, Any], **changes: Any) -> bytes:
    host = {"name": "cpu", "expression": "cpu", "evidence": "measured"}
    facts = {
        "type": "hello", "protocol": 1, "framework": request["framework"], "version": "1.0", "build": {}, "machine": {}, "environment": {},
        "operations": ["tensor", "full", "ramp", "add"], "dtypes": ["float32"], "environments": {},
        "devices": {"cpu": {"available": True, "roles": {"host": host}}},
    }  # fmt: skip
    return reply(request, **{**facts, **changes})


def misbehave(mode: str, request: dict[str, Any]) -> None:
    if mode == "wrong-id":
        say(reply({"id": request["id"] + 7}, type="observation", observation={"steps": {}}))
    elif mode == "half-line":
        say(b'{"id": 2, "type": "obs')
        os._exit(0)
    elif mode == "rubbish":
        say(b"\x00\xff not json\n" * 3)
    elif mode == "no-observation":
        say(reply(request, type="observation", observation=[]))
    elif mode == "odd-step":
        say(reply(request, type="observation", observation={"steps": {step["id"]: "fine" for step in request["program"]["steps"]}}))
    elif mode == "odd-size":  # no answer is made of it, but a record with it could not be shown
        say(reply(request, type="observation", observation={"steps": {"s1": {"value": {"kind": "times", "size": "big"}}}}))
    elif mode == "deep-step":
        say(reply(request, type="observation", observation={"steps": {"s1": {"deep": json.loads("[" * 99 + "]" * 99)}}}))
    elif mode == "endless-line":
        block = b"x" * 65536
        while True:
            say(block)
    elif mode == "half-line-hang":
        say(b'{"id": 2, "type": "obs')
        time.sleep(600)
    elif mode == "quiet-segfault":  # it spoke in the question before
        if request["id"] == 2:
            os.write(2, b"a panic that was caught\n")
            time.sleep(0.3)
            say(reply(request, type="observation", observation={"steps": {}}))
        else:
            os.kill(os.getpid(), 11)
    elif mode == "killed":
        os.kill(os.getpid(), 9)
    elif mode == "closes-output":
        os.close(1)
        time.sleep(60)
    elif mode == "hang":
        time.sleep(600)
    elif mode == "segfault":
        os.kill(os.getpid(), 11)
    elif mode == "aborts-with-frames":
        os.write(2, b"memory allocation of 9 bytes failed\nstack backtrace:\n   0: abort\n             at /here.rs:1:2\n")
        os.write(2, b"(at there.rs:1)\nerror: XDG_RUNTIME_DIR is invalid or not set in the environment.\n")
        os.write(2, b"note: run with BACKTRACE=full\n    @     0x657a05  _start\n")
        os.abort()
    elif mode == "exit-0":
        os._exit(0)
    elif mode == "flood":
        os.write(2, b"rubbish on standard error\n" * 200_000)
        say(reply(request, type="observation", observation={"steps": {}}))
    else:
        sys.exit(f"no mode {mode}")


def main() -> None:
    mode = sys.argv[1]
    source = sys.stdin.buffer
    source.readline()  # what would be typed at an interpreter's prompt
    if mode == "silent":
        time.sleep(600)
    if mode == "not-python":
        sys.exit("what do you want of me?")
    if mode == "endless-banner":
        say(b"Welcome to this machine.\n" * 1000)
    if mode == "banner":
        say(b"Welcome to this machine.\r\n\nYour environment is ready\n>>> ")
    say(b"\nready\n")
    source.read(int(source.readline()))
    for line in source:
        request = json.loads(line)
        if request["type"] == "bye":
            return
        if request["type"] == "hello":
            if mode == "dies-at-hello":
                sys.exit("no library here")
            odd: dict[str, dict[str, Any]] = {
                "newer-protocol": {"protocol": 99}, "another": {"version": "2.0"}, "odd-hello": {"operations": "all of them"},
            }  # fmt: skip
            say(hello(request, **odd.get(mode, {})))
        elif request["type"] == "warm":
            say(reply(request, type="warm"))
        else:
            misbehave(mode, request)


if __name__ == "__main__":
    main()
