"""What a terminal can show: width, colours, characters."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

from reports import marks

#: What the views print beyond ASCII, and what stands in for it.
_PLAIN = {0x2026: "...", 0x2013: "-", 0x2014: "-", 0x00B7: "-", 0x00D7: "x", 0x2192: "->"}
_NOT_ASCII = "".join((*marks.MARKS.values(), *map(chr, _PLAIN)))
_SGR: Mapping[str, str] = {
    "works": "32", "refuses": "36", "wrong": "1;31", "neutral": "33", marks.NONE: "2", "title": "1", "dim": "2", "warn": "1;33",
    "deviates": "1;7;31", "known": "35",
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

    def fit(self, text: str) -> str:
        """Return a text with what the terminal can't print replaced."""
        return text if self.unicode else text.translate(_PLAIN).encode("ascii", "replace").decode()

    def mark(self, kind: str) -> str:
        """Return the mark of a class."""
        return (marks.MARKS if self.unicode else marks.PLAIN_MARKS)[kind]


def style_of(stream: TextIO | None = None, *, width: int | None = None, colour: bool | None = None) -> Style:
    """Return what a stream can show: colour only on a terminal, without NO_COLOR, unless somebody knows better."""
    stream = stream or sys.stdout
    if colour is None:
        colour = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        _NOT_ASCII.encode(getattr(stream, "encoding", None) or "utf-8")
        unicode = True
    except (UnicodeEncodeError, LookupError):
        unicode = False
    return Style(width or shutil.get_terminal_size().columns, colour, unicode)


def wrapped(texts: Iterable[str], style: Style, indent: int = 0) -> Iterator[str]:
    """Yield texts in lines that fit."""
    for text in texts:
        yield from textwrap.wrap(
            text, max(style.width, 40), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        ) or [""]


def folded(label: str, width: int, most: int | None = None) -> list[str]:
    """Return a label in lines, broken at spaces; a word that is too long behind a slash, or else behind a dash."""
    lines = [""]
    for word in re.findall(r"\S+\s*|\s+", label):
        for piece in [word] if len(word.rstrip()) + 2 <= width else re.findall(r"[^/]*/?", word):
            for part in [piece] if len(piece.rstrip()) + 2 <= width else re.findall(r"[^-]+-?", piece):
                if len(lines[-1]) + len(part.rstrip()) > width and lines[-1].strip():
                    lines.append("  ")
                lines[-1] += part if lines[-1].strip() else part.lstrip()
    if most is not None and len(lines) > most:
        lines[most - 1] = lines[most - 1][: width - 2].rstrip(" ,") + " …"
    return [line.rstrip() for line in lines[:most]]
