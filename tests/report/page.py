"""The report's page as the standard library's parser reads it: tags, ids, references, text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})


class Page(HTMLParser):
    """What the tests ask of the page; unclosed tags are an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self._open: list[str] = []
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

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
