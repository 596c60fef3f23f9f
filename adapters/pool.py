"""All the workers of one run: it lives on the pytest controller, asks, and hands on each answer.

Each worker has a lane: a thread that asks it one question after the other. Questions are asked
ahead, so nothing depends on who waits for which cell. A worker that fails costs one cell and is
replaced. Cases that measure time are asked at the end of the run, alone: nobody gets an answer meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from adapters.process import NotStarted, Process, WorkerFailed
from adapters.targets import Absent, Selector, Spec, Wanted

#: Seconds that a worker may take for hello, and for one question, unless the user says otherwise.
HELLO, DEADLINE = 120.0, 30.0
#: Workers that fail to start again so many times in a row make the rest of their cells `unavailable`.
_GIVE_UP = 3

Target = dict[str, Any]


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

    @property
    def key(self) -> tuple[str, str]:
        """Return what a cell is known by."""
        return self.target, self.case


#: Makes a cell of a request and the replies to it, and writes it down. Called by one thread at a time.
Writer = Callable[[Request, list[dict[str, Any]]], dict[str, Any]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What a run may cost."""

    jobs: int = 1
    deadline: float = DEADLINE
    hello: float = HELLO
    #: Every question in a process of its own.
    fresh: bool = False


class Pool:
    """Workers, what they offer, and the cells that were asked of them."""

    def __init__(self, wanted: list[Wanted], absent: list[Absent], settings: Settings, say: Say = lambda _: None) -> None:
        """Start a worker for each wanted one; nothing is waited for."""
        self._settings = settings
        self._say = say
        self._absent = absent
        self._slots = threading.BoundedSemaphore(max(settings.jobs, 1))
        self._writing = threading.Lock()
        self._quiet = threading.Event()
        self._quiet.set()
        self._done: dict[tuple[str, str], dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._lanes: dict[Spec, Lane] = {}
        self._hosts = [(w, self._lane(w.spec, w)) for w in wanted]
        self._threads: list[threading.Thread] = []
        self._targets: list[Target] | None = None
        self._finding = threading.Lock()

    def _lane(self, spec: Spec, wanted: Wanted | None = None) -> Lane:
        if spec not in self._lanes:
            self._lanes[spec] = Lane(spec, self._settings, warm=_warm(wanted), say=self._say)
        return self._lanes[spec]

    @property
    def starting(self) -> str:
        """Return the frameworks whose workers were started, for a sentence."""
        return ", ".join(dict.fromkeys(wanted.spec.framework for wanted, _ in self._hosts)) or "none"

    # --- targets --------------------------------------------------------------------------------

    def targets(self) -> list[Target]:
        """Return every target that was asked for, here or not; waits until all workers said hello."""
        with self._finding:
            if self._targets is None:
                found: dict[str, Target] = {}
                for wanted, lane in self._hosts:
                    hello, why = lane.hello()
                    for selector in wanted.selectors:
                        for target in _chosen(selector, wanted, hello, why):
                            if target["target"] in found and found[target["target"]]["spec"] != target["spec"]:
                                raise NotStarted(f"two targets are called {target['target']}: give one a label, as in old={target['target']}")
                            explicit = target["explicit"] or found.get(target["target"], {}).get("explicit", False)
                            found[target["target"]] = {**target, "explicit": explicit}
                for absent in self._absent:
                    found.setdefault(absent.name, _unavailable(absent.name, absent.why, absent.explicit))
                self._targets = list(found.values())
            return self._targets

    # --- cells ----------------------------------------------------------------------------------

    def ask(self, requests: list[Request], writer: Writer) -> None:
        """Ask every question ahead, in this order for each worker; those that time something last."""
        by_name = {t["target"]: t for t in self.targets()}
        lanes: dict[Spec, list[Request]] = {}
        alone: list[tuple[Lane, Request]] = []
        for request in requests:
            target = by_name[request.target]
            spec: Spec = target["spec"]
            if request.environment is not None:
                spec = spec.within(target["environment_of"][request.environment])
                request = replace(request, roles=target["roles"])
            request = replace(request, fresh=request.fresh or self._settings.fresh)
            if request.alone:
                alone.append((self._lane(spec), request))
            else:
                lanes.setdefault(spec, []).append(request)
        working = [
            threading.Thread(target=self._work, args=(self._lane(spec), todo, by_name, writer), daemon=True)
            for spec, todo in lanes.items()
        ]
        timing = threading.Thread(target=self._time, args=(working, alone, by_name, writer), daemon=True)
        self._threads = [*working, timing]
        for thread in self._threads:
            thread.start()

    def _work(self, lane: Lane, todo: list[Request], targets: dict[str, Target], writer: Writer) -> None:
        for request in todo:
            with self._slots:
                if self._closed:
                    return
                replies = lane.ask(request, targets[request.target]["device"])
            self._finish(request, replies, writer)

    def _time(self, working: list[threading.Thread], alone: list[tuple[Lane, Request]], targets: dict[str, Target], writer: Writer) -> None:
        for thread in working:
            thread.join()
        for lane, request in alone:
            if self._closed:
                return
            # Whoever waits for a cell gets none meanwhile, so that pytest's own processes rest too.
            self._quiet.clear()
            try:
                replies = lane.ask(request, targets[request.target]["device"])
            finally:
                self._quiet.set()
            self._finish(request, replies, writer)

    def _finish(self, request: Request, replies: list[dict[str, Any]], writer: Writer) -> None:
        with self._writing:
            if self._closed:
                return
            cell = writer(request, replies)
        self._keep(request.key, cell)

    def _keep(self, key: tuple[str, str], cell: dict[str, Any]) -> None:
        with self._changed:
            self._done[key] = cell
            self._changed.notify_all()

    def give(self, key: tuple[str, str], cell: dict[str, Any]) -> None:
        """Keep a cell that was known without asking."""
        self._keep(key, cell)

    def cell(self, target: str, case: str) -> dict[str, Any] | None:
        """Return a cell, waiting for it; None when the run ended before."""
        with self._changed:
            while (target, case) not in self._done and not self._closed:
                self._changed.wait(1.0)
            found = self._done.get((target, case))
        while not self._quiet.wait(1.0) and not self._closed:
            pass
        return found

    def finished(self) -> bool:
        """Say whether every question was asked."""
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """End every worker with its process group; what was not asked stays unasked."""
        self._closed = True
        self._quiet.set()
        with self._changed:
            self._changed.notify_all()
        for lane in list(self._lanes.values()):
            lane.close()


class Lane:
    """One worker, replaced when it fails."""

    def __init__(self, spec: Spec, settings: Settings, warm: list[str], say: Say) -> None:
        """Start nothing yet for a changed environment; the framework's own worker starts at `hello`."""
        self.spec = spec
        self._settings = settings
        self._warm = warm
        self._say = say
        self._process: Process | None = None
        self._extra: Process | None = None
        self._hello: dict[str, Any] | None = None
        self._why = ""
        self._failed = 0
        self._closed = False
        self._starting = threading.Thread(target=self._greet, daemon=True)
        if warm or not spec.environment:
            self._starting.start()

    def _greet(self) -> None:
        try:
            self._process, self._hello = self._start(self._warm)
        except NotStarted as error:
            self._why = str(error)
            self._say(f"  {self.spec.framework}: {self._why}")
        else:
            here = [kind for kind, facts in self._hello["devices"].items() if facts["available"]]
            self._say(f"  {self.spec.framework} {self._hello['version']} is ready: {_listed(here)}")

    def _start(self, warm: list[str]) -> tuple[Process, dict[str, Any]]:
        process = Process(self.spec)
        self._extra = process  # so that closing ends a worker that is still starting
        try:
            return process, process.hello(warm, self._settings.hello)
        except NotStarted:
            process.kill()
            raise
        finally:
            self._extra = None

    def hello(self) -> tuple[dict[str, Any] | None, str]:
        """Return what the worker said of itself, or None and why it said nothing; waits for it."""
        if self._starting.ident is None:
            self._starting.start()
        self._starting.join()
        return self._hello, self._why

    def ask(self, request: Request, device: str) -> list[dict[str, Any]]:
        """Return the replies to a question: observations, or a status and why; each with its seconds."""
        replies = []
        for _ in range(request.times):
            started = time.monotonic()
            reply = self._once(request, device)
            replies.append({**reply, "seconds": round(time.monotonic() - started, 4)})
        return replies

    def _once(self, request: Request, device: str) -> dict[str, Any]:
        if request.fresh:
            with self._borrowed() as (process, why):
                return self._answer(process, request, device)[0] if process else {"status": "unavailable", "why": why}
        if self._process is None and self._failed < _GIVE_UP and not self._closed:
            try:
                self._process, _ = self._start([])
                self._failed = 0
            except NotStarted as error:
                self._failed += 1
                self._why = str(error)
        if self._process is None:
            return {"status": "unavailable", "why": self._why or "the worker didn't start again"}
        reply, healthy = self._answer(self._process, request, device)
        if not healthy:
            self._process.kill()
            self._process = None
        return reply

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[tuple[Process | None, str]]:
        try:
            process, _ = self._start([])
        except NotStarted as error:
            yield None, str(error)
            return
        self._extra = process
        try:
            yield process, ""
        finally:
            self._extra = None
            process.end()

    def _answer(self, process: Process, request: Request, device: str) -> tuple[dict[str, Any], bool]:
        try:
            observation = process.run(device, request.program, request.roles, self._settings.deadline)
        except WorkerFailed as failed:
            return {"status": failed.status, "why": str(failed)}, False
        return {"observation": observation}, not observation.get("poisoned")

    def close(self) -> None:
        """End the worker, also one that is busy or starting."""
        self._closed = True
        for process in (self._process, self._extra):
            if process is not None:
                process.kill()


def _listed(names: list[str]) -> str:
    """Return names for a sentence, the first of many."""
    return ", ".join(names if len(names) <= 8 else [*names[:8], f"… ({len(names)})"])


def _warm(wanted: Wanted | None) -> list[str]:
    """Return the device kinds whose first operation is slow and that somebody wants."""
    if wanted is None:
        return []
    kinds = ("fake-cuda", "fake-mps")
    return [kind for kind in kinds if any(fnmatchcase(kind, s.device) for s in wanted.selectors)]


def _chosen(selector: Selector, wanted: Wanted, hello: dict[str, Any] | None, why: str) -> Iterator[Target]:
    framework = wanted.spec.framework
    if hello is None:
        name = selector.name(framework, selector.device)
        yield {**_unavailable(name, why, selector.explicit), "spec": wanted.spec}
        return
    kinds = [k for k in hello["devices"] if "*" in wanted.group.devices or k in wanted.group.devices]
    matching = [kind for kind in kinds if fnmatchcase(kind, selector.device)]
    if not matching:
        name = selector.name(framework, selector.device)
        there = _listed(kinds) or "none"
        yield {**_unavailable(name, f"no device {selector.device!r} in {framework}; there are {there}", True), "spec": wanted.spec}
    for kind in matching:
        facts = hello["devices"][kind]
        name = selector.name(framework, kind)
        if not facts["available"]:
            yield {**_unavailable(name, facts["why"], selector.explicit), "spec": wanted.spec}
            continue
        yield {
            "target": name, "framework": framework, "device": kind, "label": selector.label, "available": True,
            "version": hello["version"], "build": hello["build"], "machine": hello["machine"],
            # What the suite itself has set for the framework's devices says nothing of the user's machine.
            "environment": {k: v for k, v in hello["environment"].items() if (k, v) not in wanted.spec.environment}, "roles": facts["roles"], "operations": hello["operations"],
            "dtypes": hello["dtypes"], "environments": sorted(hello["environments"]),
            "environment_of": hello["environments"], "spec": wanted.spec, "explicit": selector.explicit,
        }  # fmt: skip


def _unavailable(name: str, why: str, explicit: bool) -> Target:
    return {"target": name, "available": False, "why": why, "explicit": explicit, "spec": None}
