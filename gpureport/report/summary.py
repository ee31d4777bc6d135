"""summary.md: the answers and the findings of most weight as text, for mail and chat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gpureport.report.header import Header
from gpureport.report.page.answers import Answer
from gpureport.report.page.overview import since_text
from gpureport.values.text import formats
from gpureport.values.text.safe import printable

_LINE_CHARACTERS = 1000
_MARKUP = re.compile(r"([\\`*_\[\]|#~!])")
_TAG = re.compile(r"<(?=\S)")


def write_summary(answers: Sequence[Answer], header: Header, path: Path) -> Path:
    """Write the file (Markdown, UTF-8), without a clock in it."""
    path.write_text("\n".join(_lines(answers, header)) + "\n", encoding="utf-8")
    return path


def _lines(answers: Sequence[Answer], header: Header) -> list[str]:
    return [
        f"# GPU usage report: {escaped(', '.join(header.clusters))}, {since_text(header)} ({header.timezone})",
        "",
        *(f"- **{each.title}**: {escaped(each.line.removeprefix(f'{each.title}: '))}" for each in answers),
        *(f"- **Data missing.** {escaped(line)}" for line in header.lacks),
        *(f"- **Check failed.** {escaped(str(failure))}" for failure in header.failures[:1]),
        *(f"- **Control plane.** {escaped(line)}" for line in header.agreements),
        *(f"- {escaped(note)}" for note in header.notes),
        "",
        f"Data coverage {formats.percent(header.coverage_ratio)}. gpureport {header.version}, settings {header.config_hash}. "
        "All rows are in report.html, csv/, tables/ and gpureport.duckdb.",
    ]


def escaped(text: str) -> str:
    """Text in which nothing is markup or a control character, on one line that is not endless; "< 0.1" is no tag and stays."""
    line = printable(" ".join(text.split()))
    kept = line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} …"
    return _TAG.sub("&lt;", _MARKUP.sub(r"\\\1", kept))
