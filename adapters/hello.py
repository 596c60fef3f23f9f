"""The form of a worker's hello: whoever reads it afterwards, and the record, can rely on it (controller side)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def misfit(hello: dict[str, Any]) -> str:
    """Return what is wrong with the form of a hello, "" when nothing is: the record takes all of it over."""
    wanted: dict[str, Callable[[Any], bool]] = {"version": _text, "devices": _table, "environments": _table}
    wanted |= dict.fromkeys(("build", "machine", "environment"), _texts) | dict.fromkeys(("operations", "dtypes"), _names)
    for key, fits in (*wanted.items(), *([("phrases", _texts)] if "phrases" in hello else ())):
        if not fits(hello.get(key)):
            return f"{key} is {hello.get(key)!r:.80}"
    for name, facts in hello["devices"].items():
        if not _table(facts) or not (_described(facts) if facts.get("available") else _text(facts.get("why"))):
            return f"device {name} is {facts!r:.80}"
        for role, said in facts.get("roles", {}).items():
            fits_role = _table(said) and all(_text(said.get(key)) for key in ("name", "expression"))
            if not fits_role or said.get("evidence") not in ("measured", "simulated", "documented"):
                return f"role {role} of {name} is {said!r:.80}"
    return ""


def _described(facts: dict[str, Any]) -> bool:
    return _table(facts.get("roles")) and _texts(facts.get("spelled", {})) and _table(facts.get("environments", {}))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return _table(value) and all(map(_text, value.values()))


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))
