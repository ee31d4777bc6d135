"""Where docs/benchmarks.md takes up what `make bench` prints."""

from __future__ import annotations

BEGIN, END = "<!-- make bench writes from here -->", "<!-- to here -->"


def written_into(page: str, text: str) -> str:
    """The page with the text, and nothing else, between its two marks; ValueError where it has not both."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
