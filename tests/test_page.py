"""The page: well-formed, loads nothing, escapes everything, and holds what is behind each cell."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from reports import html, markdown, marks
from reports.matrix import Matrix
from reports.record import Writer
from tests import sample
from tests.sample import matrix, one_cell

NASTY = "<script>alert(1)</script> & \"quoted\" 'text' | `pipe` *star* </script>"


@pytest.fixture
def plain(tmp_path: Path) -> Matrix:
    return matrix(sample.record(tmp_path / "r.jsonl"))


class Page(HTMLParser):
    """Elements, attributes and data of a page; notices elements that are not closed in order."""

    VOID = frozenset({"meta", "input", "wbr", "br"})
    OPTIONAL = frozenset({"li", "option", "td"})

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.data: dict[str, Any] = {}
        self.cells: list[tuple[str, str]] = []
        self._json = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, cells and what is open."""
        named = dict(attrs)
        assert not any(name.startswith("on") for name in named), "no text becomes a script"
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        self._json = named.get("id") == "data"
        if tag == "td":
            self.cells.append((named.get("class") or "", ""))
        if tag not in self.VOID | self.OPTIONAL:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that what ends is what was opened last."""
        if tag not in self.OPTIONAL:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the page's data and the cells' words."""
        if self._json:
            self.data = json.loads(data)
            self._json = False
        elif self.open[-1:] == ["button"] and self.cells:
            self.cells[-1] = (self.cells[-1][0], data.strip())


def test_the_page_is_well_formed_and_loads_nothing(plain: Matrix) -> None:
    text = html.render(plain)
    page = Page(text)
    assert page.open == []
    assert all(link.startswith("#") for link in page.links)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|document\.write|insertAdjacentHTML", text)


def test_the_page_has_a_cell_for_each_answer_with_its_word_and_class(plain: Matrix) -> None:
    page = Page(html.render(plain))
    shown = [(marks.kind(cell), cell.outcome) for _, cell in plain.cells()]
    assert [(kind.split()[0], word) for kind, word in page.cells] == shown


def test_behind_a_cell_is_everything_that_a_reader_needs(plain: Matrix) -> None:
    data = Page(html.render(plain)).data
    texts = data["texts"]
    row = next(n for n, one in enumerate(data["cases"]) if one["id"] == "scalars/one-element/host-accelerator/left")
    cell, one = data["cells"][row][0], data["cases"][row]
    assert texts[one["question"]].endswith("?")
    assert texts[cell["o"]] == "raises"
    (line, kind, text), *_ = cell["x"]
    assert "mul" in texts[text].lower()
    code = [texts[n] for n in cell["c"]]
    assert "t.arithmetic('mul'" in code[line]
    assert texts[kind].endswith("Error")
    facets = [texts[n] for n in cell["f"]]
    assert dict(zip(facets[::2], facets[1::2], strict=True))["device works"] == "yes"


def test_a_run_s_page_reads_no_history_and_says_who_tells_it(plain: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "files", lambda framework: {"1.0": [], "2.0": []} if framework == "dummy" else {})
    text = html.render(plain)
    page = Page(text)
    assert {column["releases"] for column in page.data["columns"]} == {2}
    assert not any(one.get("h") for one in page.data["cases"])
    assert "python -m reports explain" in text
    assert "changed with this release" not in text


def test_the_page_escapes_everything(tmp_path: Path) -> None:
    case = "scalars/one-element/host-accelerator/left"
    cell = sample.cell("accel", case, facets={NASTY: NASTY}, why=NASTY, stale=NASTY)
    for fact in cell["observation"]["steps"].values():
        if "error" in fact:
            fact["error"]["text"] = NASTY
    merged = matrix(one_cell(tmp_path / "r.jsonl", cell, version=NASTY, build={NASTY: NASTY}))
    text = html.render(merged)
    assert "<script>alert" not in text
    assert text.count("</script>") == 2
    page = Page(text)
    assert page.open == []
    assert NASTY in page.data["texts"]
    assert "<script>alert" not in markdown.render(merged).replace(r"\<", "")


def test_six_thousand_cells_stay_under_three_megabytes(tmp_path: Path) -> None:
    names = [f"placement/case{n}/x" for n in range(600)]
    path = tmp_path / "r.jsonl"
    writer = Writer(path, {
        "scope": {"targets": [], "cases": [], "selected": 6000},
        "targets": {f"t{n}=dummy:accel": sample.target("accel", target=f"t{n}=dummy:accel") for n in range(10)},
    })  # fmt: skip
    for n in range(10):
        for number, name in enumerate(catalogue()):
            if number < 600:
                writer.write(sample.cell("accel", "scalars/one-element/host-accelerator/left", target=f"t{n}=dummy:accel", case=name))
        for name in names[len(catalogue()) :]:
            writer.write(sample.cell("accel", sample.CASES[0], target=f"t{n}=dummy:accel", case=name))
    writer.close(complete=True)
    merged = matrix(path)
    page = html.render(merged)
    assert len(list(merged.cells())) >= 6000 * min(len(catalogue()), 600) // 600
    assert len(page.encode()) < 3_000_000
