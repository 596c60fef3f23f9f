"""The first code of a worker: taken from its command line or typed at its prompt (worker side).

It keeps private copies of the protocol's descriptors before anything is imported, so that nothing a
framework prints can break the protocol, reads the worker's sources, and serves.
"""

import importlib.abc
import importlib.util
import io
import json
import os
import sys
from typing import Any

incoming = os.fdopen(os.dup(0), "rb", 0)
outgoing = os.fdopen(os.dup(1), "wb", 0)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(2, 1)
outgoing.write(b"\nready\n")  # on a line of its own, whatever was greeted with before

size = int(incoming.readline())
data = b""
while len(data) < size:
    more = incoming.read(size - len(data))
    if not more:
        sys.exit("the suite ended before the worker's sources were read")
    data += more
sources = json.loads(data)


class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Import the worker's modules from the text that was handed over."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module among the sources."""
        return importlib.util.spec_from_loader(name, self) if name in sources else None

    def is_package(self, name: str) -> bool:
        """Say whether others are inside it."""
        return any(other.startswith(name + ".") for other in sources)

    def get_source(self, name: str) -> str:
        """Return a module's text."""
        return str(sources[name])


sys.meta_path.insert(0, Sources())
sys.path[:] = [p for p in sys.path if p]
from adapters.worker import serve  # noqa: E402  only importable from here on

serve(io.BufferedReader(incoming), outgoing)
