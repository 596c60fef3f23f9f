"""A record: one run's answers with their provenance, as JSON lines: header, cells, footer.

Each line is written whole as soon as it is known, so that a run that is killed keeps what it had.
A record without a footer is truncated: it can be read, and whoever shows it says so.
"""

from __future__ import annotations

import codecs
import json
import lzma
import math
import re
import reprlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.cells import DEPTH, SCHEMA, UNDECIDED, Cell, MalformedError, RecordError, Target, decided, get, names, shallow
from reports.writer import LATEST, OUT, Writer, default_path

__all__ = ["LATEST", "OUT", "SCHEMA", "Cell", "Record", "RecordError", "Target", "Writer", "default_path", "read"]

#: With what a file begins that xz packed.
_XZ = b"\xfd7zXZ\0"
#: UTC, to the second.
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+00:00)"


@dataclass(frozen=True)
class Record:
    """A record that was read."""

    path: Path
    suite: str
    #: When the run started, in UTC.
    started: str
    #: What was asked for: `targets`, `cases`, `selected`.
    scope: Mapping[str, Any]
    case_set: str
    targets: Mapping[str, Target]
    #: (target, case) -> its last cell; `answers` holds the outcomes of all its lines.
    cells: Mapping[tuple[str, str], Cell]
    #: Whether everything that was selected was asked and the footer says so.
    complete: bool
    #: Why it isn't complete, in a sentence.
    why: str = ""
    finished: str = ""
    #: Cells that were selected and are not there.
    missing: int = 0

    @cached_property
    def warning(self) -> str:
        """Return the sentence that everything that shows an incomplete record shows first; else "" ."""
        if self.complete:
            return ""
        missing = "1 cell is missing" if self.missing == 1 else f"{self.missing} cells are missing"
        return f"{self.path.name} is incomplete, {missing}: {self.why or 'the run did not finish'}"


def _finite(text: str) -> float:
    """Return a number; JSON has no others than finite ones, and neither has what is made of a record."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


#: How a line begins that is a cell, with its case.
_NAMED = re.compile(rb'\{"type":"cell","target":"[^"\\]*","case":"([a-z0-9_/-]+)"')
#: What two cells that are alike differ in: the target's name, and how long it took. A quotation mark within a text has a backslash.
_TARGET = re.compile(rb'\{"type":"cell","target":"([^"\\]*)",')
_SECONDS = re.compile(rb'"seconds":([0-9]+(?:\.[0-9]+)?),')
#: The most that is made of a packed file.
_MOST = 1 << 29
_JSON = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def read(path: Path, only: Set[str] | None = None, *, of: Set[str] | None = None, seen: dict[bytes, Cell] | None = None) -> Record:
    """Read a record, or of its cells `only` those of some cases, or those `of` some targets.

    Raises RecordError; a truncated one is returned with `complete=False`.

    It may be compressed, as records that are kept are. Records that are read with one `seen` share the cells that are alike in
    both, which most are when a release follows another: those needn't be taken apart a second time.
    """
    lines = list(_lines(_bytes(path)))
    if not lines:
        raise RecordError(f"{path} holds not even a whole header: the run that should have written it ended at once; run it again")
    header, targets = _header(path, lines[0][1])
    whole = lines[-1][2]
    cells: dict[tuple[str, str], Cell] = {}
    footer: Mapping[str, Any] | None = None
    for number, text, finished in lines[1:]:
        if footer is not None:
            raise RecordError(f"{path}, line {number}: there is more after the footer; two runs wrote to it, so run one of them again")
        if not finished:
            break
        if only is not None and (named := _NAMED.match(text)) and named[1].decode() not in only:
            continue
        if of is not None and (named := _TARGET.match(text)) and named[1].decode("utf-8", "replace") not in of:
            continue
        name, seconds, alike = _apart(text) if seen is not None else ("", None, b"")
        if seen is not None and alike in seen and name in targets:
            cell = seen[alike].of(name, seconds)
            cells[name, cell.case] = _merged(cells.get((name, cell.case)), cell)
            continue
        line = _parsed(path, number, text)
        if line["type"] == "footer":
            footer = _footer(path, number, line)
        else:
            cell = _cell(path, number, line, targets)
            if seen is not None and alike:
                seen[alike] = cell
            cells[cell.target, cell.case] = _merged(cells.get((cell.target, cell.case)), cell)
    if footer is not None and (only is not None or of is not None):
        footer = {**footer, "cells": len(cells)}
    return _record(path, header, targets, cells, footer, whole)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise RecordError(f"no record at {path}: `pytest -n auto --record={path}` makes one") from None
    except OSError as error:
        raise RecordError(f"{path} can't be read ({error.strerror or error}); name a file that `pytest --record` wrote") from error
    if data.startswith(_XZ):
        data = _unpacked(path, data)
    if not data.strip():
        raise RecordError(f"{path} is empty: the run that should have written it ended before its header; run it again")
    return data


def _unpacked(path: Path, data: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST)
    try:
        text = unpacker.decompress(data, _MOST)
    except lzma.LZMAError as error:
        raise RecordError(f"{path} can't be unpacked ({error}); take the file from where it came once more") from error
    if not unpacker.eof:
        what = "it is cut short" if unpacker.needs_input else f"it holds more than {_MOST >> 20} MiB"
        raise RecordError(f"{path} can't be unpacked ({what}); take the file from where it came once more")
    return text


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Yield line number, text, and whether the line was written to its end."""
    texts = data.split(b"\n")
    for number, text in enumerate(texts, 1):
        if text.strip():
            yield number, text, number < len(texts)


def _apart(text: bytes) -> tuple[str, float | None, bytes]:
    """Return a cell's target, its seconds, and the rest of its line; no rest where it isn't written as the suite writes."""
    target = _TARGET.match(text)
    if target is None:
        return "", None, b""
    # Of what is observed nothing may be taken for the cell's own.
    seconds = _SECONDS.search(text, target.end(), max(text.find(b'"observation":'), target.end()))
    if seconds is None:
        return target[1].decode("utf-8", "replace"), None, text[target.end() :]
    return target[1].decode("utf-8", "replace"), float(seconds[1]), text[target.end() : seconds.start()] + text[seconds.end() :]


def _parsed(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        line = _loaded(text)
    except ValueError as error:
        raise _damaged(path, number, str(error)) from error
    if not isinstance(line, dict) or line.get("type") not in ("cell", "footer"):
        raise _damaged(path, number, "neither a cell nor a footer")
    return line


def _loaded(text: bytes) -> Any:
    """Return what a line of JSON says. Raises ValueError with what is wrong in a few words."""
    try:
        line = _JSON.decode(text.removeprefix(codecs.BOM_UTF8).decode())
        if text.count(b"[") + text.count(b"{") > DEPTH:
            shallow(line)
    except ValueError:
        raise ValueError("it is no JSON") from None
    except (RecursionError, MalformedError):
        raise ValueError("it is nested too deeply") from None
    return line


def _damaged(path: Path, number: int, what: str) -> RecordError:
    return RecordError(f"{path}, line {number} is damaged ({what}); take the file from where it came once more, or run the suite again")


def _header(path: Path, text: bytes) -> tuple[dict[str, Any], dict[str, Target]]:
    try:
        header = _loaded(text)
    except ValueError:
        header = None
    schema = header.get("schema") if isinstance(header, dict) and header.get("type") == "header" else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise RecordError(f"{path} is no record of this suite (its first line is no header); name a file that `pytest --record` wrote")
    if schema > SCHEMA:
        raise RecordError(f"{path} has schema {schema} and this suite reads up to {SCHEMA}: read it with the suite that wrote it")
    try:
        for key in ("suite", "case_set"):
            get(header, key, str)
        if not re.fullmatch(_TIME, get(header, "started", str)):
            raise MalformedError(f"has {reprlib.repr(header['started'])} as 'started'")
        scope = get(header, "scope", dict)
        get(scope, "selected", int)
        for key in ("targets", "cases"):
            names(scope, key)
        targets = {name: Target.from_json(name, facts) for name, facts in get(header, "targets", dict).items()}
    except MalformedError as error:
        raise _damaged(path, 1, f"the header {error}") from error
    return header, targets


def _cell(path: Path, number: int, line: Mapping[str, Any], targets: Mapping[str, Target]) -> Cell:
    try:
        cell = Cell.from_json(line)
    except MalformedError as error:
        raise _damaged(path, number, f"the cell {error}") from error
    if cell.target not in targets:
        raise _damaged(path, number, f"target {cell.target!r} is not in the header")
    return cell


def _footer(path: Path, number: int, line: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        for key, kind in (("complete", bool), ("cells", int), ("missing", int), ("finished", str), ("why", str)):
            get(line, key, kind)
    except MalformedError as error:
        raise _damaged(path, number, f"the footer {error}") from error
    return line


def _merged(before: Cell | None, cell: Cell) -> Cell:
    """Return the newer cell with the outcomes of both; what didn't decide gives way to what did."""
    if before is None:
        return cell
    last = before if cell.status == UNDECIDED and before.status != UNDECIDED else cell
    seen = decided((*(before.answers or (before.outcome,)), *(cell.answers or (cell.outcome,))))
    return Cell(**{**vars(last), "answers": seen if len(seen) > 1 else ()})


def _record(
    path: Path, header: Mapping[str, Any], targets: dict[str, Target], cells: dict[tuple[str, str], Cell],
    footer: Mapping[str, Any] | None, whole: bool,
) -> Record:  # fmt: skip
    common = (path, header["suite"], header["started"], header["scope"], header["case_set"], targets, cells)
    if footer is None:
        missing = max(header["scope"]["selected"] - len(cells), 0)
        cut = "" if whole else ", in the middle of a line"
        return Record(*common, complete=False, why=f"it has no footer, the run that wrote it was ended from outside{cut}", missing=missing)
    if footer["cells"] != len(cells):
        raise RecordError(f"{path} has {len(cells)} cells but its footer counts {footer['cells']}: lines were lost, so run it again")
    return Record(
        *common, complete=footer["complete"], why=footer["why"], finished=footer["finished"], missing=footer["missing"]
    )  # fmt: skip
