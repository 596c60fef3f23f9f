"""The suite's own options for pytest.

Apart from the `conftest.py` that loads them, so that they can be known to pytest before it looks for that: see the
conformance environment of tox.
"""

from __future__ import annotations

import argparse

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's own options."""
    group = parser.getgroup("device semantics")
    add = group.addoption
    add("--target", action="append", default=[], metavar="SELECTOR",
        help="ask this target: [label=]framework:device[@interpreter-or-command], globs allowed, may be given again; "
        "what stands behind @ is run. Default: everything that is installed")  # fmt: skip
    add("--case", action="append", default=[], metavar="GLOB",
        help="ask only cases whose id matches, such as 'moving/*'; may be given again")  # fmt: skip
    add("--adapter", action="append", default=[], metavar="NAME=MODULE:CLASS|PROGRAM", help="add a framework with an adapter from outside")
    add("--record", metavar="PATH", help="write the record here (default: a new file under reports/out/)")
    add("--no-recorded", action="store_true", help="leave recorded answers of other machines out of the page")
    add("--baseline", metavar="FILE",
        help="compare with this record at the end, and fail as `python -m reports gate` does, instead of by contracts")  # fmt: skip
    add("--gate-config", metavar="FILE",
        help="with --baseline: take levels and accepted changes from there (default: pyproject.toml)")  # fmt: skip
    # Numbers are read by the run: pytest's own refusal of one has another exit status.
    add("--deadline", default=30.0, metavar="SECONDS", help="how long a worker may take for one question (default 30)")
    add("--repeat", default=1, metavar="N", help="ask every question N times; the record keeps the set of answers")
    add("--fresh", action="store_true", help="ask every question in a process of its own (slow)")
    add("--shuffle", metavar="SEED", help="ask in another order")
    # For who runs the suite and reads the record: a matrix and a page that nobody looks at aren't made, and questions are asked at once
    # without xdist, whose processes would cost more than they save.
    add("--record-alone", action="store_true", help=argparse.SUPPRESS)
    add("--at-once", type=int, metavar="N", help=argparse.SUPPRESS)
