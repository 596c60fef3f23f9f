"""Whether a worker, in any language, speaks the protocol: every rule is tried, and comes to a finding (controller side)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from adapters import message_rules, program_rules
from adapters.conversation import NotChecked, Talk, Wrong, misfit
from adapters.process import NotStarted, WorkerFailed

RIGHT, WRONG, NOT_CHECKED = "right", "wrong", "not checked"


@dataclass(frozen=True)
class Finding:
    """What a rule came to, and for which of several device kinds; none where there is one, or the rule is of none."""

    rule: str
    outcome: str
    why: str = ""
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a line without its outcome."""
        where = f" ({', '.join(self.kinds)})" if self.kinds else ""
        return f"{self.rule}{where}{': ' + self.why if self.why else ''}"


def sentence(rule: Callable[..., None]) -> str:
    """Return a rule as it is said."""
    return " ".join((rule.__doc__ or "").split()).rstrip(".")


def check(talk: Talk, devices: str = "*") -> Iterator[Finding]:
    """Try every rule, on the device kinds that match a glob. Raises NotStarted where there is nothing to try them on."""
    try:
        talk.process()
        unusable = misfit(talk.hello)
    except Wrong as wrong:
        unusable = str(wrong)
    if unusable:
        yield Finding(sentence(message_rules.hello), WRONG, f"{unusable}; nothing else can be asked before it does")
        return
    here = {kind: facts for kind, facts in talk.hello["devices"].items() if facts["available"]}
    talk.kinds = tuple(kind for kind in here if fnmatchcase(kind, devices))
    if not talk.kinds and devices != "*":
        why = talk.hello["devices"].get(devices, {}).get("why", f"there are {', '.join(talk.hello['devices']) or 'none'}")
        raise NotStarted(f"no device kind {devices!r} is here: {why}")
    for rule in message_rules.RULES:
        yield from _found(talk, rule, {"": partial(rule, talk)})
    for asked in program_rules.RULES:
        yield from _found(talk, asked, {kind: partial(asked, talk, kind) for kind in talk.kinds} or {"": _no_device})
    for rule in message_rules.ENDS:
        yield from _found(talk, rule, {"": partial(rule, talk)})


def _no_device() -> None:
    raise NotChecked("no device is here")


def _found(talk: Talk, rule: Callable[..., None], tries: Mapping[str, Callable[[], None]]) -> Iterator[Finding]:
    """Try a rule on each of some device kinds, and find as much as there are different outcomes."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind, one in tries.items():
        found.setdefault(_outcome(talk, one), []).append(kind)
    for (outcome, why), kinds in found.items():
        yield Finding(sentence(rule), outcome, why, tuple(kinds) if len(talk.kinds) > 1 and all(kinds) else ())


def _outcome(talk: Talk, one: Callable[[], None]) -> tuple[str, str]:
    try:
        one()
    except NotChecked as why:
        return NOT_CHECKED, str(why)
    except (Wrong, WorkerFailed, NotStarted) as wrong:
        # What it may still say must not be taken for an answer to something else.
        talk.end()
        return WRONG, f"it doesn't start again: {wrong}" if isinstance(wrong, NotStarted) else str(wrong)
    return RIGHT, ""
