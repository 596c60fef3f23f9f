"""One worker process: start it, hand it its sources, ask it, end it with its group.

The worker speaks JSON lines (see PROTOCOL.md). Whatever it does instead (dies, hangs, answers another
request, half a line or rubbish) becomes a sentence; the caller replaces the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from functools import cache
from pathlib import Path
from typing import IO, Any

from adapters.guard import GUARD
from adapters.hello import misfit
from adapters.targets import Spec, interpreter
from adapters.worker import ADAPTERS, PROTOCOL

_HERE = Path(__file__).parent
#: Longest line that a worker may answer, in bytes.
LONGEST = 16 * 2**20
#: So many lines may come before the worker's first word.
_BANNER = 200
#: Exit statuses with which a command says that it failed itself: ssh that lost its connection, docker that lost its daemon.
LOST = (125, 255)
#: What a program says beside the reason for which it ended: where it was, and how to hear more.
_FRAME = re.compile(r"\s*(note: |\(at |stack backtrace:|@ |\d+: |at |\*\*\* Check failure)")
#: What a Vulkan driver says wherever nobody sits at a screen: it ends nothing.
_CHATTER = re.compile(r"error: XDG_RUNTIME_DIR is ")
_IMPORTS = re.compile(r"^from \.(\w+) import ", re.MULTILINE)


class WorkerFailed(Exception):
    """A worker that can't go on; the message says what it did.

    `status` is `crashed` or `hung`, or `inconclusive` where it was the worker or the way to it that broke the protocol,
    which is nothing that the framework did. `code` is the exit status, None for a worker that didn't end.
    """

    def __init__(self, status: str, why: str, code: int | None = None) -> None:
        """Keep the status beside the sentence."""
        super().__init__(why)
        self.status, self.code = status, code


class NotStarted(Exception):
    """A worker that didn't start, or has not the framework; the message says why and what to do."""


@cache
def sources(framework: str) -> bytes:
    """Return the modules that a worker needs, as one JSON object: its own, the adapter's, and what these import beside them."""
    own = ADAPTERS.get(framework, "")
    todo = ["worker", *filter(None, [own.partition(":")[0].rpartition(".")[2]])]
    found = {"adapters": (_HERE / "__init__.py").read_text("utf-8")}
    while todo:
        name = todo.pop()
        text = found[f"adapters.{name}"] = (_HERE / f"{name}.py").read_text("utf-8")
        todo += [other for other in _IMPORTS.findall(text) if f"adapters.{other}" not in found]
    return json.dumps(found).encode()


class Process:
    """A running worker."""

    def __init__(self, spec: Spec) -> None:
        """Start the interpreter or the program; nothing is waited for. Raises NotStarted."""
        self.spec = spec
        boot = (_HERE / "boot.py").read_text("utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in spec.unset}
        environment = {**kept, **dict(spec.environment)}
        # A measurement must not depend on the suite's own choices for Python.
        environment.pop("PYTHONSTARTUP", None)
        if spec.adapter:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), environment.get("PYTHONPATH")]))
        typed = spec.wrapped and not spec.compiled
        handed = [] if spec.compiled else ["-q", "-i"] if typed else ["-u", "-c", boot]
        command = [*(spec.argv or (sys.executable,)), *handed]
        try:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                bufsize=0, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise NotStarted(f"{interpreter(spec)} can't be started: {error.strerror or error}") from error
        GUARD.watch(self._popen.pid)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._rest = b""
        self._said: deque[bytes] = deque(maxlen=40)
        self._next = 0
        self._warmed: set[str] = set()
        self._listeners = [
            threading.Thread(target=self._listen, args=(self._popen.stdout,), daemon=True),
            threading.Thread(target=self._drain, args=(self._popen.stderr,), daemon=True),
        ]
        for thread in self._listeners:
            thread.start()
        if typed:
            # Through a command that splits words again (ssh) only the interpreter's prompt is safe; it
            # reads ahead, so that the sources follow once it has said that it is ready.
            self._send(b"exec(" + ascii(boot).encode() + b")\n")

    # --- the conversation -----------------------------------------------------------------------

    def hand_over(self, deadline: float) -> None:
        """Give an interpreter the worker's sources; a program of its own needs none. Raises NotStarted."""
        if not self.spec.compiled:
            self._ready(interpreter(self.spec), deadline)
            data = sources(self.spec.framework)
            self._send(b"%d\n" % len(data) + data)

    def hello(self, deadline: float) -> dict[str, Any]:
        """Hand over the sources and wait for the framework. Raises NotStarted."""
        until = time.monotonic() + deadline
        where = interpreter(self.spec)
        try:
            self.hand_over(deadline)
            request = {"type": "hello", "framework": self.spec.framework, "adapter": self.spec.adapter}
            reply = self._ask(request, max(until - time.monotonic(), 1.0))
        except WorkerFailed as failed:
            raise NotStarted(f"{self.spec.framework} in {where}: {failed}") from failed
        if reply.get("type") == "unavailable":
            there = f"{where} -m pip install {self.spec.framework}"
            if not self.spec.wrapped:
                there += f", or where there is no pip: uv pip install --python {where} {self.spec.framework}"
            hint = f"; install it there ({there})" if reply.get("missing") else ""
            cannot = "can't be used" if self.spec.compiled else "can't be imported"
            raise NotStarted(f"{self.spec.framework} {cannot} in {where}: {reply.get('why')}{hint}")
        if reply.get("type") != "hello" or reply.get("protocol") != PROTOCOL:
            raise NotStarted(f"{self.spec.framework} in {where}: no hello of protocol {PROTOCOL}: {reply.get('error', reply)}"[:600])
        if wrong := misfit(reply):
            raise NotStarted(f"{self.spec.framework}: its hello isn't made as the protocol says: {wrong}")
        return reply

    def _ready(self, where: str, deadline: float) -> None:
        try:
            until = time.monotonic() + deadline
            said = self._line(deadline)
            for _ in range(_BANNER):  # a shell behind ssh may greet before Python starts
                if said.strip() == b"ready":
                    return
                said = self._line(max(until - time.monotonic(), 0.1))
        except WorkerFailed as failed:
            if self.spec.wrapped and failed.code in LOST:
                raise NotStarted(f"{where} {failed}") from failed
            said = str(failed).encode()
        words = self._last_words() or said.decode("utf-8", "replace")[:200]
        raise NotStarted(f"{where} is no Python that can be a worker (3.9 or later): {words}")

    def warm(self, device: str, deadline: float) -> None:
        """Let a simulation do its slow first operation before a question's time counts. Raises WorkerFailed."""
        if device not in self._warmed:
            self._warmed.add(device)
            self._ask({"type": "warm", "device": device}, deadline)

    def run(self, device: str, program: dict[str, Any], roles: dict[str, Any] | None, deadline: float) -> dict[str, Any]:
        """Ask for one observation. Raises WorkerFailed; the process is then of no more use.

        `roles` are the target's, for a worker in an environment that hides them.
        """
        request = {"type": "run", "device": device, "program": program, **({"roles": roles} if roles else {})}
        reply = self._ask(request, deadline)
        if reply.get("type") == "error":
            raise WorkerFailed("inconclusive", f"the worker itself failed: {str(reply.get('error')).strip().splitlines()[-1][:300]}")
        observation = reply.get("observation")
        if reply.get("type") != "observation" or not isinstance(observation, dict) or not isinstance(observation.get("steps"), dict):
            raise WorkerFailed("inconclusive", f"no observation but: {json.dumps(reply)[-600:]}")
        return observation

    def _ask(self, request: dict[str, Any], deadline: float) -> dict[str, Any]:
        self._next += 1
        # What it said before belongs to other questions, and must not be quoted as the reason why it ended in this one.
        self._said.clear()
        self._send(json.dumps({**request, "id": self._next, "deadline": deadline}).encode() + b"\n")
        line = self._line(deadline)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise WorkerFailed("inconclusive", f"answered rubbish: {line[:80]!r}") from error
        if not isinstance(reply, dict) or reply.get("id") != self._next:
            got = reply.get("id") if isinstance(reply, dict) else reply
            raise WorkerFailed("inconclusive", f"answered request {got!r} when asked {self._next}")
        return reply

    def _send(self, data: bytes) -> None:
        assert self._popen.stdin is not None
        # A dead worker is noticed by what it doesn't answer; another thread may have closed the pipe meanwhile.
        with contextlib.suppress(OSError, ValueError):
            view = memoryview(data)
            while view:
                view = view[self._popen.stdin.write(view) or 0 :]

    def _line(self, deadline: float) -> bytes:
        try:
            line = self._lines.get(timeout=deadline)
        except queue.Empty:
            raise WorkerFailed("hung", f"no answer within {deadline:g} s{self._begun()}") from None
        if line is None:
            raise WorkerFailed("crashed", f"{self._epitaph()}{self._begun()}", self._popen.returncode)
        return line

    def _begun(self) -> str:
        """Return what was said of a line that has no end, for a sentence."""
        return f", but a line without an end: {self._rest[:80]!r}" if self._rest.strip() else ""

    def _listen(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read(65536):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put(line)
                if len(self._rest) > LONGEST:
                    self._lines.put(b"(a line without an end)")
                    break
        self._lines.put(None)

    def _drain(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read(4096):
                self._said.append(chunk)

    # --- the end --------------------------------------------------------------------------------

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5)
        code = self._popen.returncode
        if code is None:
            return "closed its output"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-code).name}{self._quoted()}"
        when = " in the middle of a question" if self._next else ""
        return f"ended with exit status {code}{when}{self._quoted()}"

    def _quoted(self) -> str:
        words = self._last_words()
        return f": {words}" if words else ""

    def _last_words(self) -> str:
        self._listeners[1].join(0.5)
        lines = b"".join(self._said).decode("utf-8", "replace").replace(">>> ", "").strip().splitlines()
        lines = [line for line in lines if line.strip() and not _CHATTER.match(line)]
        telling = [line for line in lines if not _FRAME.match(line)] or lines
        return telling[-1].strip()[:300] if telling else ""

    def end(self) -> None:
        """Say goodbye and end the whole process group."""
        self._send(b'{"type": "bye", "id": 0}\n')
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):
            self._popen.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(0.2)
        self.kill()

    def strike(self) -> None:
        """End the process group at once, and wait for nothing."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # the group may be gone, or be a zombie's
                os.killpg(self._popen.pid, signal.SIGKILL)
        else:
            self._popen.kill()

    def kill(self) -> None:
        """End the process group at once, and wait until it is gone."""
        self.strike()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5)
            GUARD.forget(self._popen.pid)
        for thread in self._listeners:
            thread.join(1)
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent to a dead worker is of no use
                    stream.close()
