"""What goes over the wire: plain JSON, made of anything that a framework hands out (worker side)."""

from __future__ import annotations

import math
from typing import Any

_TEXT = 2000
#: How a text begins that stands for one that can't be had.
MUTE = "(its text can't be had: str() raised"


def refs(step: dict[str, Any]) -> list[str]:
    """Return the steps that a step's arguments refer to."""
    found: list[str] = []

    def walk(arg: Any) -> None:
        if isinstance(arg, list):
            for item in arg:
                walk(item)
        elif isinstance(arg, dict) and "ref" in arg:
            found.append(arg["ref"])

    walk(step.get("args", []))
    walk(list(step.get("kw", {}).values()))
    return found


def flattened(values: Any) -> list[Any]:
    """Return the elements of nested lists."""
    return [x for item in values for x in flattened(item)] if isinstance(values, list) else [values]


def numbers(data: Any, imag: Any) -> Any:
    """Return numbers of the wire as Python numbers: text for what JSON lacks, imaginary parts apart."""
    if isinstance(data, list):
        return [numbers(d, None if imag is None else i) for d, i in zip(data, imag or data)]
    if isinstance(data, str):
        return float(data)
    return data if imag is None else complex(data, imag)


def plain(value: Any) -> Any:
    """Return an element as JSON: bool, int, float (or nan, inf, -inf as text), [real, imaginary]."""
    if not isinstance(value, (bool, int, float, complex, str)) and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)


def said(thing: Any) -> str:
    """Return what somebody's object says of itself: its `str` may raise."""
    try:
        return clean(str(thing))
    except Exception as error:
        return f"{MUTE} {type(error).__name__})"


def clean(text: str) -> str:
    """Return a text that any JSON reader takes: lone surrogates escaped, length bounded."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _TEXT else text[:_TEXT] + " […]"
