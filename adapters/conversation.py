"""A conversation with a worker that is being checked (controller side).

It may be told anything, and each of its replies is held against the schema.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from adapters.process import NotStarted, Process, WorkerFailed
from adapters.targets import Spec, interpreter

#: The reply's type -> its part of the schema.
_PARTS = {"hello": "hello", "observation": "observation-reply", "unavailable": "unavailable", "warm": "warm", "error": "error-reply"}
#: So long nothing may be said where there is nothing to say.
QUIET = 0.2


class Wrong(Exception):
    """What a worker gets wrong, in a sentence."""


class NotChecked(Exception):
    """A rule that this worker, or this machine, gives no occasion to check; the message says why."""


class Told(Process):
    """A worker process that is told lines as they are."""

    def tell(self, data: bytes, within: float) -> None:
        """Write to its input; a worker that doesn't read would keep the writer for ever. Raises WorkerFailed."""
        writing = threading.Thread(target=self._send, args=(data,), daemon=True)
        writing.start()
        writing.join(within)
        if writing.is_alive():
            raise WorkerFailed("hung", f"it has not read {len(data)} bytes within {within:g} s")

    def heard(self, within: float) -> bytes:
        """Return the next line that it says. Raises WorkerFailed."""
        return self._line(within)

    def silent(self) -> None:
        """Let a moment pass in which it has nothing to say. Raises Wrong."""
        with contextlib.suppress(queue.Empty):
            line = self._lines.get(timeout=QUIET)
            raise Wrong(self._epitaph() if line is None else f"it says {short(line)} when nothing was asked")

    def hang_up(self) -> None:
        """Close its input."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def ended(self, within: float) -> list[bytes]:
        """Return the lines that it said last, once it has ended with exit status 0. Raises Wrong."""
        try:
            status = self._popen.wait(within)
        except subprocess.TimeoutExpired:
            raise Wrong(f"it is still there after {within:g} s") from None
        if status:
            raise Wrong(self._epitaph())
        last = []
        try:
            while (line := self._lines.get(timeout=within)) is not None:
                last.append(line)
        except queue.Empty:
            raise Wrong("it has ended, and a process that it started still holds its output") from None
        return last

    @property
    def streams(self) -> tuple[int, int, int]:
        """Return its process number, and our ends of its standard input and output."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        return self._popen.pid, self._popen.stdin.fileno(), self._popen.stdout.fileno()


class Talk:
    """The conversation with one worker, which is replaced when it can't go on."""

    def __init__(self, spec: Spec, deadline: float, hello: float) -> None:
        """Take whom to talk to, and the seconds that an answer and a hello may take; nothing is started yet."""
        self.spec = spec
        self.deadline = deadline
        self._patience = hello
        self._next = 0
        self._process: Told | None = None
        self._greeted = False
        #: What the worker said hello with, as it said it first.
        self.hello: dict[str, Any] = {}
        #: The device kinds that are here and are asked about.
        self.kinds: tuple[str, ...] = ()

    @property
    def kind(self) -> str | None:
        """Return a device kind that is here, for questions that need any."""
        return self.kinds[0] if self.kinds else None

    # --- the process ----------------------------------------------------------------------------

    def fresh(self) -> Told:
        """Return a process that was asked nothing yet. Raises NotStarted."""
        self.end()
        self._process = Told(self.spec)
        self._process.hand_over(self._patience)
        return self._process

    def process(self) -> Told:
        """Return a process that has said hello. Raises NotStarted."""
        if self._process is None or not self._greeted:
            self.greet()
        assert self._process is not None
        return self._process

    def greet(self) -> None:
        """Say hello to the process that is there, or to a new one. Raises NotStarted, or Wrong for an answer that is none."""
        process = self._process or self.fresh()
        try:
            process.tell(json.dumps(self.request("hello")).encode() + b"\n", self._patience)
            line = process.heard(self._patience)
        except WorkerFailed as failed:
            raise NotStarted(f"{interpreter(self.spec)} doesn't answer hello: {failed}") from failed
        reply = parsed(line)
        if reply.get("type") == "unavailable":
            raise NotStarted(f"{interpreter(self.spec)} has no {self.spec.framework}: {reply.get('why')}")
        if reply.get("type") != "hello":
            raise Wrong(f"hello is answered with {short(reply)}")
        self._greeted = True
        self.hello = self.hello or reply

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
        self._process, self._greeted = None, False

    # --- asking ---------------------------------------------------------------------------------

    def request(self, kind: str, **more: Any) -> dict[str, Any]:
        """Return a request with the next id."""
        self._next += 1
        if kind == "hello":
            more = {"framework": self.spec.framework, "adapter": self.spec.adapter, **more}
        return {"type": kind, "id": self._next, "deadline": self._patience if kind == "hello" else self.deadline, **more}

    def ask(self, request: Mapping[str, Any], process: Told | None = None) -> dict[str, Any]:
        """Return the reply to a request, with its id. Raises Wrong and WorkerFailed."""
        reply = self.say(json.dumps(request).encode(), process)
        if reply["id"] != request["id"]:
            raise Wrong(f"request {request['id']} is answered with the id {short(reply['id'])}: {short(reply)}")
        return reply

    def say(self, line: bytes, process: Told | None = None) -> dict[str, Any]:
        """Return the reply to any line. Raises Wrong and WorkerFailed."""
        process = process or self.process()
        process.tell(line + b"\n", self.deadline)
        return self.reply(process)

    def reply(self, process: Told) -> dict[str, Any]:
        """Return the next reply. Raises Wrong, also for one that doesn't fit the schema, and WorkerFailed."""
        reply = parsed(process.heard(self.deadline))
        why = misfit(reply)
        if why:
            raise Wrong(why)
        return reply

    def refused(self, line: bytes | Mapping[str, Any], *, named: bool = True, process: Told | None = None) -> None:
        """Say what can't be answered, and expect an error, with the request's id or, where it has none that is one, null. Raises Wrong."""
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        reply = self.say(data, process)
        if reply["type"] != "error":
            raise Wrong(f"{short(data)} is answered with {short(reply)}")
        wanted = line["id"] if named and not isinstance(line, bytes) else None
        if reply["id"] != wanted:
            raise Wrong(f"{short(data)} is answered with the id {short(reply['id'])}, not {short(wanted)}")
        if not reply["error"].strip() or "\n" in reply["error"].strip():
            raise Wrong(f"{short(data)} is answered with no sentence: {short(reply['error'])}")

    def run(self, kind: str, steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Return the observation of a program. Raises Wrong and WorkerFailed."""
        reply = self.ask(self.request("run", device=kind, program={"steps": steps}, **more))
        if reply["type"] != "observation":
            # Without its id, so that what is wrong on several devices is said once.
            raise Wrong(f"a program is answered with {short({key: told for key, told in reply.items() if key != 'id'})}")
        observation: dict[str, Any] = reply["observation"]
        unknown = observation["steps"].keys() - set(_ids(steps))
        if unknown:
            raise Wrong(f"it tells of a step {min(unknown)} that the program doesn't have")
        for name, fact in observation["steps"].items():
            if "adapter_failed" in fact:
                raise Wrong(f"step {name} failed in the worker itself: {short(fact['adapter_failed'])}")
        if observation.get("poisoned"):
            self.end()
        return observation

    def alive(self) -> None:
        """Make sure that it still answers what it should. Raises Wrong and WorkerFailed."""
        if self.kind is None:
            reply = self.ask(self.request("hello"))
            if reply["type"] != "hello":
                raise Wrong(f"hello is then answered with {short(reply)}")
        else:
            self.run(self.kind, [])


def _ids(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        yield step["id"]
        yield from _ids(step.get("body", []))


def parsed(line: bytes) -> dict[str, Any]:
    """Return a line as a JSON object. Raises Wrong."""
    try:
        found = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"it says {short(line)}, which is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Wrong(f"it says {short(line)}, which is no JSON object")
    return found


def _no_constant(name: str) -> NoReturn:
    # Python writes and reads these, and JSON has no such thing.
    raise ValueError(f"{name} is no number")


def misfit(reply: Mapping[str, Any]) -> str:
    """Return where a reply doesn't fit the schema; "" when it does."""
    import jsonschema

    kind = reply.get("type")
    part = _PARTS.get(kind) if isinstance(kind, str) else None
    if part is None:
        return f"it answers with a message of type {short(kind)}"
    found = jsonschema.exceptions.best_match(_validator(part).iter_errors(reply))
    return f"its {kind} doesn't fit protocol.schema.json: {found.json_path}: {short(found.message)}" if found else ""


@cache
def _validator(part: str) -> Any:
    import jsonschema

    schema = json.loads((Path(__file__).parent / "protocol.schema.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]})


def short(thing: Any) -> str:
    """Return anything for a sentence: on one line, and not too long."""
    text = thing.decode("utf-8", "replace") if isinstance(thing, bytes) else thing if isinstance(thing, str) else json.dumps(thing)
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:150] + " […]"
