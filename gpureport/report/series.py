"""index.html: the reports that a folder has had, with their six answers, the newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpureport.report.header import Header
from gpureport.report.page.answers import Answer
from gpureport.report.page.render import environment, stylesheet
from gpureport.values.window import rfc3339

_SERIES, _INDEX = "series.json", "index.html"
KEPT = 400
"""Reports that the index remembers: a year of nights."""


def write_series(answers: Sequence[Answer], header: Header, earlier: Path, folder: Path) -> list[Path]:
    """Write ``series.json`` and ``index.html``: what ``earlier`` remembers of past reports, and this one in its place."""
    entry = {
        "clusters": list(header.clusters),
        "since": rfc3339(header.window.start_at),
        "until": rfc3339(header.window.end_at),
        "answers": {each.title: [each.headline, each.tone] for each in answers},
    }
    # Reports of other clusters are another series: also those with names, where this one has pseudonyms.
    others = [each for each in _read(earlier / _SERIES) if each["clusters"] == entry["clusters"] and _key(each) != _key(entry)]
    entries = sorted([entry, *others], key=_key, reverse=True)[:KEPT]
    (folder / _SERIES).write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = environment().get_template("index.html.j2").render(entries=entries, newest=_key(entry), key=_key, style=stylesheet())
    (folder / _INDEX).write_text(page, encoding="utf-8")
    return [folder / _INDEX, folder / _SERIES]


def _key(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["until"], entry["since"], ", ".join(entry["clusters"])


def _read(path: Path) -> list[dict[str, Any]]:
    """Past reports; none where the file is not there or is somebody else's."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [each for each in found if _key(each) and each["answers"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
