"""The report's page as the standard library's parser reads it: tables, cells, links."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})


@dataclass
class Cell:
    """A table cell: its class, title and visible and spoken text."""

    attributes: dict[str, str]
    text: str = ""


@dataclass
class Section:
    """A section by its id, with the rows of its first table (heading rows among them)."""

    name: str
    rows: list[list[Cell]] = field(default_factory=list)
    text: str = ""


class Page(HTMLParser):
    """What the tests ask of the page; unclosed tags are an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.sections: dict[str, Section] = {}
        self.text = ""
        self._open: list[str] = []
        self._section: Section | None = None
        self._cell: Cell | None = None
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.references += [given[name] for name in ("href", "src", "action", "srcset", "data") if name in given]
        if "id" in given:
            self.ids.append(given["id"])
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = self.sections.setdefault(given["id"], Section(given["id"]))
        if self._section and tag == "tr":
            self._section.rows.append([])
        if self._section and tag in ("td", "th"):
            self._cell = Cell(given)
            self._section.rows[-1].append(self._cell)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in ("td", "th"):
            self._cell = None
        if tag == "section":
            self._section = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._section:
            self._section.text += data
        if self._cell:
            self._cell.text += data
