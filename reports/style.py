"""What a terminal can show: width, colours, characters."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

from tabulate import DataRow, Line, TableFormat

from reports import marks

#: Columns two spaces apart, without the padding that tabulate gives to heads; a line where one is asked for.
FORMAT = TableFormat(
    lineabove=None, linebelowheader=Line("", "-", "  ", ""), linebetweenrows=None, linebelow=None,
    headerrow=None, datarow=DataRow("", "  ", ""), padding=0, with_header_hide=None,
)  # fmt: skip
#: The same, one space apart.
CLOSE = FORMAT._replace(linebelowheader=Line("", "-", " ", ""), datarow=DataRow("", " ", ""))
_SGR: Mapping[str, str] = {
    "works": "32", "refuses": "36", "wrong": "1;31", "neutral": "33", marks.NONE: "2", "title": "1", "dim": "2", "warn": "1;33",
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """What a terminal can show."""

    width: int = 80
    colour: bool = False
    #: Whether it can print more than ASCII.
    unicode: bool = True

    def paint(self, text: str, name: str) -> str:
        """Colour a text, where colours are wanted."""
        return f"\x1b[{_SGR[name]}m{text}\x1b[0m" if self.colour and text else text

    def mark(self, kind: str) -> str:
        """Return the mark of a class."""
        return (marks.MARKS if self.unicode else marks.PLAIN_MARKS)[kind]


def style_of(stream: TextIO | None = None, width: int | None = None) -> Style:
    """Return what a stream can show: colour only on a terminal and without NO_COLOR."""
    stream = stream or sys.stdout
    colour = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        "✓⊘✗·…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Style(width or shutil.get_terminal_size().columns, colour, unicode=False)
    return Style(width or shutil.get_terminal_size().columns, colour)


def wrapped(texts: Iterable[str], style: Style, indent: int = 0) -> Iterator[str]:
    """Yield texts in lines that fit."""
    for text in texts:
        yield from textwrap.wrap(
            text, max(style.width, 40), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
