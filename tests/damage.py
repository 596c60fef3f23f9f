"""Records that are damaged on purpose, and every verb asked about them in this process."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reports.verbs import main

#: What stands where something else should.
VALUES: tuple[Any, ...] = (
    None, 5, -1, 1e308, 10**400, True, "", "x", "-", "0", "wrong", "crashed", [], {}, [1], [None], {"a": 1}, {"x": None}, [{"a": 1}, 2],
    "a\x1b[31m\x00b\nc\u202e", "\x9b2J", "\ud800", "</script><script>alert(1)</script>", "x onclick=alert(1)/y", "json.decoder:JSONDecoder",
    "Device::vulkan(DeviceKind::DefaultDevice)", "9**9**9", "torch.device(", "[].append(1)", "torch.load('x')",
)  # fmt: skip
Way = tuple[Any, ...]


def paths(part: Any, before: Way = ()) -> Iterator[Way]:
    """Yield the way to every part of a document; of long lists to the first few."""
    found = part.items() if isinstance(part, dict) else enumerate(part[:4]) if isinstance(part, list) else ()
    for key, value in found:
        yield (*before, key)
        yield from paths(value, (*before, key))


def damaged(lines: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Return a document with one or two parts taken out or replaced."""
    found: list[Any] = copy.deepcopy(lines)
    for _ in range(rng.choice((1, 1, 2))):
        *way, last = rng.choice(list(paths(found)))
        part: Any = found
        for key in way:
            part = part[key]
        if isinstance(part, dict) and rng.random() < 0.2:
            del part[last]
        elif isinstance(part, dict) and rng.random() < 0.1:
            part[rng.choice(("x\x1b[2J", "a b", ""))] = part.pop(last)
        else:
            part[last] = rng.choice(VALUES)
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write a document, a line each."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def ask(*arguments: object) -> tuple[int, str, str]:
    """Return exit status, output and errors of `python -m reports`, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(map(str, arguments)))
    return status, out.getvalue(), err.getvalue()
