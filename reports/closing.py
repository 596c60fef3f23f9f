"""The end of a pytest run in the terminal: the matrix, deviations first, and the page's path."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from reports import html, marks, matrix, terminal
from reports.record import LATEST, OUT, RecordError, read
from reports.recorded import Beside
from reports.style import style_of, wrapped
from reports.writer import point


def closing(path: Path, reporter: Any, *, lost: str = "", recorded: Beside | None = None) -> None:
    """Write the matrix of the record that was just closed, what it lost, and say where page and record are.

    `recorded` are answers of other machines, for targets that aren't on this one: the page shows them too.

    Whatever goes wrong here is a sentence: the record is safe, and the run's exit status is not ours to change.
    """
    reporter.section("device semantics")
    try:
        record = read(path)
        merged = matrix.build([record])
    except RecordError as error:
        reporter.write_line(str(error))
        return
    screen = reporter._tw
    style = style_of(screen._file, width=screen.fullwidth, colour=screen.hasmarkup)  # pytest has decided about colour
    for line in terminal.render(merged, style, deviations_first=True, compact=True).splitlines():
        reporter.write_line(line)
    reporter.write_line("")
    for line in wrapped([lost] if lost else [], style):
        reporter.write_line(style.paint(line, "warn"))
    page = path.with_suffix(".html")
    try:
        shown = recorded.add(merged) if recorded else merged
        html.write(shown, page)
        if path.parent == OUT:
            point(LATEST.with_suffix(".html"), page)
        also = [column for column in shown.columns if column.recorded]
        names = f"  (with recorded answers of {', '.join(column.key for column in also)}: --no-recorded leaves them out)" if also else ""
        reporter.write_line(f"page:   {page}{names}")
    except OSError as error:
        reporter.write_line(f"no page: {page} can't be written ({error.strerror or error})")
    except Exception as error:
        reporter.write_line(f"no page: it can't be made of this record ({type(error).__name__}: {error})")
    reporter.write_line(f"record: {path}")
    told = next((cell.case for _, cell in merged.cells() if marks.deviates(cell) or cell.stale), None)
    if told is not None:
        # Without a record named, `explain` reads the last one under reports/out.
        named = "" if path.parent == OUT else f" --record {shlex.quote(str(path))}"
        reporter.write_line(f"more:   python -m reports explain {told}{named}")
