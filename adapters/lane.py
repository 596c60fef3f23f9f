"""One worker of the pool: what is asked of it, one question after the other, and its replacement when it fails."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from adapters.process import LOST, NotStarted, Process, WorkerFailed
from adapters.targets import Spec, interpreter

#: Seconds that a worker may take for hello, and for one question, unless the user says otherwise.
HELLO, DEADLINE = 120.0, 30.0
#: Workers that fail to start again so many times in a row make the rest of their cells `unavailable`.
_GIVE_UP = 3
#: Signals that nothing in a process raises against itself: somebody ended it, or the system, for lack of memory. A shell says 128 more.
_ENDED = {code for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)) for code in (-number, 128 + number)}
#: A case that measures time does much of its work several times over, and may take so many deadlines.
_ALONE = 4

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """One question for one target."""

    target: str
    case: str
    program: dict[str, Any] = field(repr=False)
    #: Ask in a process of its own.
    fresh: bool = False
    #: Name of an environment, in a worker of its own.
    environment: str | None = None
    #: The target's roles, for a worker in a changed environment: it may not find them itself.
    roles: dict[str, Any] | None = field(default=None, repr=False)
    #: Ask while nothing else of the run works.
    alone: bool = False
    times: int = 1
    #: Another question, whose answer must be there before this one's can be judged.
    after: tuple[str, str] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return what a cell is known by."""
        return self.target, self.case


@dataclass(frozen=True)
class Settings:
    """What a run may cost."""

    jobs: int = 1
    deadline: float = DEADLINE
    hello: float = HELLO
    #: Every question in a process of its own.
    fresh: bool = False


class Lane:
    """One worker, replaced when it fails."""

    def __init__(self, spec: Spec, settings: Settings, say: Say, warm: list[str] | None = None) -> None:
        """Start the worker; with `warm` None it starts with its first question."""
        self.spec = spec
        self._settings = settings
        self._warm = warm or []
        self._say = say
        self._process: Process | None = None
        self._extra: Process | None = None
        self._hello: dict[str, Any] | None = None
        #: Version and build of what answered first; whoever answers later must be the same.
        self._first: tuple[str, str] | None = None
        self._why = ""
        self._failed = 0
        self._served = False
        self._closed = False
        self._said_hello = threading.Event()
        self._starting = threading.Thread(target=self._greet, daemon=True)
        if warm is not None:
            self._starting.start()

    def _greet(self) -> None:
        try:
            self._process, self._hello = self._start()
        except NotStarted as error:
            self._why = str(error)
            self._tell(f"  {self.spec.framework}: {self._why}")
        else:
            here = [kind for kind, facts in self._hello["devices"].items() if facts["available"]]
            self._tell(f"  {self.spec.framework} {self._hello['version']} is ready: {listed(here)}")
        self._said_hello.set()
        if self._process is not None:
            try:
                for device in self._warm:
                    self._process.warm(device, self._settings.hello)
            except WorkerFailed:  # the next question finds no worker and starts one
                self._process.kill()
                self._process = None

    def _start(self) -> tuple[Process, dict[str, Any]]:
        process = Process(self.spec)
        self._extra = process  # so that closing ends a worker that is still starting
        try:
            hello = process.hello(self._settings.hello)
            self._same(hello)
            self._served = True
            return process, hello
        except NotStarted:
            process.kill()
            raise
        finally:
            self._extra = None

    def _same(self, hello: dict[str, Any]) -> None:
        """Raise NotStarted where a framework was exchanged during the run: its answers would stand under the other's version."""
        now = hello["version"], json.dumps(hello["build"], sort_keys=True)
        self._first = self._first or now
        if now != self._first:
            changed = next(f"{old} → {new}" for old, new in zip(self._first, now, strict=True) if old != new)
            raise NotStarted(f"{self.spec.framework} in {interpreter(self.spec)} was exchanged during the run ({changed}): ask again")

    def _tell(self, text: str) -> None:
        if not self._closed:  # that a worker which was ended didn't start is nothing to tell
            self._say(text)

    def hello(self) -> tuple[dict[str, Any] | None, str]:
        """Return what the worker said of itself, or None and why it said nothing; waits for it."""
        self._said_hello.wait()
        return self._hello, self._why

    def ask(self, request: Request, device: str) -> list[dict[str, Any]]:
        """Return the replies to a question: observations, or a status and why; each with its seconds.

        `lost` is in what has no answer because a worker that once was there is so no more.
        """
        if self._starting.ident is not None:
            self._starting.join()
        replies = []
        for _ in range(request.times):
            started = time.monotonic()
            reply = self._once(request, device)
            replies.append({**reply, "seconds": round(time.monotonic() - started, 4)})
        return replies

    def _once(self, request: Request, device: str) -> dict[str, Any]:
        reply, failed = self._attempt(request, device)
        if failed is not None and failed.code in _ENDED and not self._closed:
            # Nothing that a framework does to itself. Where it is ended again, it is what the question makes the system do.
            reply, failed = self._attempt(request, device)
        if failed is None or not self.spec.wrapped or _surely_the_framework(failed):
            return reply
        # Was it the framework, or the way to it? A lost connection shows in that it can't be made again. Where it can, the same
        # question may come through; where it doesn't, nobody knows: ssh has one exit status for this and for a remote signal.
        command = interpreter(self.spec)
        self._tell(f"  {self.spec.framework}: {command}: {failed}; starting it again")
        if not self._starts(request):
            return {"status": "inconclusive", "why": f"{command} was lost: it {failed}; then {self._why}", "lost": True}
        if failed.code not in LOST:
            return reply
        reply, again = self._attempt(request, device)
        if again is not None and again.code in LOST:
            why = f"{command} was lost twice in the middle of this question: it {again}"
            return {"status": "inconclusive", "why": why, "lost": True}
        return reply

    def _attempt(self, request: Request, device: str) -> tuple[dict[str, Any], WorkerFailed | None]:
        """Return a reply, and what the worker did instead of giving one."""
        if request.fresh:
            with self._borrowed() as (process, why):
                return self._answer(process, request, device)[:2] if process else (self._unavailable(why), None)
        process = self._running()
        if process is None:
            return self._unavailable(self._why or "the worker didn't start again"), None
        reply, failed, healthy = self._answer(process, request, device)
        if not healthy:
            process.kill()
            self._process = None
        return reply, failed

    def _unavailable(self, why: str) -> dict[str, Any]:
        return {"status": "unavailable", "why": why, "lost": self._served}

    def _starts(self, request: Request) -> bool:
        """Say whether a worker for a question starts, now."""
        if not request.fresh:
            return self._running() is not None
        with self._borrowed() as (process, self._why):
            return process is not None

    def _running(self) -> Process | None:
        """Return the worker, started again where it has ended; None where it doesn't start."""
        if self._process is None and self._failed < _GIVE_UP and not self._closed:
            try:
                self._process, _ = self._start()
                self._failed = 0
            except NotStarted as error:
                self._failed += 1
                self._why = str(error)
        return self._process

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[tuple[Process | None, str]]:
        try:
            process, _ = self._start()
        except NotStarted as error:
            yield None, str(error)
            return
        self._extra = process
        try:
            yield process, ""
        finally:
            self._extra = None
            process.end()

    def _answer(self, process: Process, request: Request, device: str) -> tuple[dict[str, Any], WorkerFailed | None, bool]:
        deadline = self._settings.deadline * (_ALONE if request.alone else 1)
        try:
            process.warm(device, self._settings.hello)
            observation = process.run(device, request.program, request.roles, deadline)
        except WorkerFailed as failed:
            return {"status": failed.status, "why": str(failed)}, failed, False
        return {"observation": observation}, None, not observation.get("poisoned")

    def close(self, *, wait: bool = True) -> None:
        """End the worker, also one that is busy or starting."""
        self._closed = True
        for process in (self._process, self._extra):
            if process is not None:
                process.kill() if wait else process.strike()


def _surely_the_framework(failed: WorkerFailed) -> bool:
    """Say whether no command would have failed so by itself: the worker ended by a signal, or answered, however odd."""
    return failed.status == "inconclusive" or (failed.code is not None and (failed.code < 0 or 128 <= failed.code < 255))


def listed(names: list[str]) -> str:
    """Return names for a sentence, the first of many."""
    return ", ".join(names if len(names) <= 8 else [*names[:8], f"… ({len(names)})"])
