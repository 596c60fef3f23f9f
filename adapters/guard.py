"""Ends the workers of a run that was killed outright, since such a run can't do it itself.

A worker whose framework never returns doesn't notice that its input has ended. So a small process of its own
learns the process group of every worker, and kills the groups that are left when the pipe from here closes,
however this process ended. It asks nothing of the workers: they may be in any language, may never give their
interpreter back, and may have been started by a wrapper. What runs on another machine it can't reach; there a
worker limits itself (see "Being started" in PROTOCOL.md).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading

#: One number a line: a group to watch, or, negative, one that has ended. It reads until the pipe closes.
_CODE = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    number = int(line)
    groups.add(number) if number > 0 else groups.discard(-number)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Guard:
    """The guarding process of this one, started with the first worker."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Let a process group end when this process has."""
        self._tell(group)

    def forget(self, group: int) -> None:
        """Leave a group alone that has ended: its number may be given to somebody else."""
        self._tell(-group)

    def _tell(self, number: int) -> None:
        if not hasattr(os, "killpg"):
            return
        # Without a guard the run is as good, until somebody kills it; at the interpreter's end it is there no more.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._popen is None:
                self._popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _CODE], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, bufsize=0, start_new_session=True,
                )  # fmt: skip
                atexit.register(self._end, self._popen)
            assert self._popen.stdin is not None
            self._popen.stdin.write(b"%d\n" % number)

    def _end(self, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdin is not None
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            popen.stdin.close()
            popen.wait(1)


GUARD = Guard()
