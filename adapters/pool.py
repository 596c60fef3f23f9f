"""All the workers of one run: it lives on the pytest controller, asks, and hands on each answer.

Each worker has a lane: a thread that asks it one question after the other. Questions are asked
ahead, so nothing depends on who waits for which cell. A worker that fails costs one cell and is
replaced. Cases that measure time are asked at the end of the run, alone: nobody gets an answer meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from adapters.lane import Lane, Request, Say, Settings, listed
from adapters.process import NotStarted
from adapters.targets import Absent, Selector, Spec, Wanted

Target = dict[str, Any]
#: Makes a cell of a request and the replies to it, and writes it down. Called by one thread at a time.
Writer = Callable[[Request, list[dict[str, Any]]], dict[str, Any]]


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
        #: Cells that somebody waits for: most are there before anybody asks, and each that comes would wake all who wait for another.
        self._awaited: dict[tuple[str, str], threading.Event] = {}
        self._changing = threading.Lock()
        self._closed = False
        #: Why no more answers can be handed on, None while they can.
        self.failure: Exception | None = None
        self._lanes: dict[Spec, Lane] = {}
        self._hosts = [(w, self._lane(w.spec, w)) for w in wanted]
        self._targets: list[Target] | None = None
        self._finding = threading.Lock()

    def _lane(self, spec: Spec, wanted: Wanted | None = None) -> Lane:
        if spec not in self._lanes:
            self._lanes[spec] = Lane(spec, self._settings, self._say, None if wanted is None else _warm(wanted))
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
                                other = replace(selector, label=f"{selector.label or 'other'}2")
                                raise NotStarted(f"two targets are called {target['target']}: give each its own label, as in {other}")
                            explicit = target["explicit"] or found.get(target["target"], {}).get("explicit", False)
                            found[target["target"]] = {**target, "explicit": explicit}
                for absent in self._absent:
                    found.setdefault(absent.name, _unavailable(absent.name, absent.why, absent.explicit))
                self._targets = list(found.values())
            return self._targets

    # --- cells ----------------------------------------------------------------------------------

    def ask(self, requests: list[Request], known: list[tuple[Request, dict[str, Any]]], writer: Writer) -> None:
        """Ask every question ahead, in this order for each worker; those that time something last.

        A question that waits for another's answer comes after it, or nobody would ever ask that one.
        What is `known` without asking is handed on too, while the workers are busy.
        """
        by_name = {t["target"]: t for t in self.targets()}
        lanes: dict[Spec, list[Request]] = {}
        alone: list[tuple[Lane, Request]] = []
        for request in _in_turn(requests):
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
            threading.Thread(target=self._work, args=(self._lane(spec), todo, by_name, writer), daemon=True) for spec, todo in lanes.items()
        ]
        working.append(threading.Thread(target=self._give, args=(known, writer), daemon=True))
        timing = threading.Thread(target=self._time, args=(working, alone, by_name, writer), daemon=True)
        for thread in (*working, timing):
            thread.start()

    def _work(self, lane: Lane, todo: list[Request], targets: dict[str, Target], writer: Writer) -> None:
        for request in todo:
            with self._slots:
                if self._closed:
                    return
                replies = lane.ask(request, targets[request.target]["device"])
            if not self._finish(request, replies, writer):
                return

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
            if not self._finish(request, replies, writer):
                return

    def _finish(self, request: Request, replies: list[dict[str, Any]], writer: Writer) -> bool:
        """Hand on an answer; False when the run is over. A writer that fails ends it for everybody who waits."""
        if request.after is not None:
            self._wait(request.after)
        with self._writing:
            if self._closed:
                return False
            try:
                cell = writer(request, replies)
            except Exception as error:
                self.failure = error
                self.close()
                return False
        self._keep(request.key, cell)
        return True

    def _keep(self, key: tuple[str, str], cell: dict[str, Any]) -> None:
        with self._changing:
            self._done[key] = cell
            awaited = self._awaited.pop(key, None)
        if awaited is not None:
            awaited.set()

    def _give(self, known: list[tuple[Request, dict[str, Any]]], writer: Writer) -> None:
        """Hand on what is known without asking: it waits for no other answer."""
        for request, reply in known:
            if not self._finish(replace(request, after=None), [reply], writer):
                return

    def _wait(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """Return a cell when it is done; None when the run ended before."""
        with self._changing:
            if key in self._done:
                return self._done[key]
            done = self._awaited.setdefault(key, threading.Event())
        while not self._closed and not done.wait(1.0):
            pass
        return self._done.get(key)

    def cell(self, target: str, case: str) -> dict[str, Any] | None:
        """Return a cell, waiting for it; None when the run ended before."""
        found = self._wait((target, case))
        while not self._quiet.wait(1.0) and not self._closed:
            pass
        return found

    def close(self) -> None:
        """End every worker with its process group; what was not asked stays unasked."""
        self._closed = True
        self._quiet.set()
        with self._changing:
            awaited = list(self._awaited.values())
        for done in awaited:
            done.set()
        for wait in (False, True):  # one with a large framework takes a tenth of a second to go, and all go at once
            for lane in list(self._lanes.values()):
                lane.close(wait=wait)


def _in_turn(requests: list[Request]) -> list[Request]:
    """Return the questions in their order, but each after the one that it waits for."""
    by_key = {request.key: request for request in requests}
    placed: dict[tuple[str, str], Request] = {}

    def place(request: Request) -> None:
        if request.after in by_key and request.after not in placed:
            place(by_key[request.after])
        placed.setdefault(request.key, request)

    for request in requests:
        place(request)
    return list(placed.values())


def _warm(wanted: Wanted) -> list[str]:
    """Return the device kinds whose first operation is slow and that somebody wants."""
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
        there = listed([kind for kind in kinds if hello["devices"][kind]["available"]]) or "none"
        why = f"no device {selector.device!r} in {framework}; there are {there}"
        yield {**_unavailable(name, why, True), "spec": wanted.spec}
    for kind in matching:
        facts = hello["devices"][kind]
        name = selector.name(framework, kind)
        if not facts["available"]:
            yield {**_unavailable(name, facts["why"], selector.explicit), "spec": wanted.spec}
            continue
        # What names a device as default differs from kind to kind.
        environments = {**hello["environments"], **facts.get("environments", {})}
        yield {
            "target": name, "framework": framework, "device": kind, "label": selector.label, "available": True,
            "version": hello["version"], "build": hello["build"], "machine": hello["machine"],
            # What the suite itself has set for the framework's devices says nothing of the user's machine.
            "environment": dict(set(hello["environment"].items()) - set(wanted.spec.environment)),
            "roles": facts["roles"], "spelled": facts.get("spelled", {}), "untimed": facts.get("untimed", ""),
            "adapter": wanted.spec.adapter, "operations": hello["operations"],
            "dtypes": hello["dtypes"], "environments": sorted(environments),
            "environment_of": environments, "spec": wanted.spec, "explicit": selector.explicit,
            **_phrases(hello, environments),
        }  # fmt: skip


def _phrases(hello: dict[str, Any], environments: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return what a worker in another language says of its code, and what a user sets for an environment."""
    if not hello.get("phrases"):
        return {}
    variables = {f"environment/{name}": "\n".join(f"{k}={v}" for k, v in wanted.items()) for name, wanted in environments.items()}
    return {"phrases": {**hello["phrases"], **variables}}


def _unavailable(name: str, why: str, explicit: bool) -> Target:
    return {"target": name, "available": False, "why": why, "explicit": explicit, "spec": None}
