"""summary.md: the first screen in twenty lines, for mail and chat."""

from __future__ import annotations

import re
from pathlib import Path

from gpureport import formats
from gpureport.inert import printable
from gpureport.report.first_screen import FirstScreen
from gpureport.report.header import Header
from gpureport.window import rfc3339

LINES_MAX = 20
_FINDINGS = 5
_LINE_CHARACTERS = 1000
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~!])")


def write_summary(first: FirstScreen, header: Header, path: Path) -> Path:
    """Write the file (Markdown, UTF-8), at most LINES_MAX lines, no clock in it."""
    path.write_text("\n".join(_lines(first, header)) + "\n", encoding="utf-8")
    return path


def _lines(first: FirstScreen, header: Header) -> list[str]:
    window = f"{rfc3339(header.window.start_at)} to {rfc3339(header.window.end_at)}"
    seen = f"seen {formats.percent(header.coverage_ratio)}, not seen {formats.percent(header.unknown_ratio)}"
    tiles = " · ".join(f"{tile.title} {tile.value}{f' ({tile.trend})' if tile.trend else ''}" for tile in first.tiles)
    told = [
        f"# GPU report: {escaped(', '.join(header.clusters))}, {window}",
        "",
        f"{escaped(first.capacity)}; {seen}.",
        "",
        *(f"- {escaped(sentence)}" for sentence in first.sentences),
        *([f"- {' · '.join(f'{each.title} {each.share}' for each in first.shares)}. {first.closing}"] if first.shares else []),
        f"- {escaped(tiles)}{f'. {first.compared}' if first.compared else ''}",
        *_findings(first),
        *(f"- **Check failed.** {escaped(str(failure))}" for failure in header.failures[:1]),
        "",
        f"gpureport {header.version}, configuration {header.config_hash}; everything is in report.html, csv/ and tables/.",
    ]
    return told[:LINES_MAX]


def _findings(first: FirstScreen) -> list[str]:
    """The gravest, a line each."""
    if first.findings is None:
        return []
    lines = [
        f"- **{code}** {escaped(title)} ({severity}): {times}, {hours} GPU-h at stake, {escaped(owners)}"
        for code, severity, title, times, hours, owners, _ in (line.cells for line in first.findings[:_FINDINGS])
    ]
    return [
        "",
        f"{formats.counted(first.finding_count, 'finding')}" + (", by code:" if lines else "."),
        *([""] if lines else []),
        *lines,
    ]


def escaped(text: str) -> str:
    """Text in which nothing is markup or a control character, on one line that is not endless."""
    line = printable(" ".join(text.split()))
    return _MARKUP.sub(r"\\\1", line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} …")
