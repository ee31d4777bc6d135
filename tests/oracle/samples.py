"""OpenMetrics text → samples, one object a line."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+) (?P<time>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    """One scraped value, in the metric's own unit."""

    metric: str
    labels: tuple[tuple[str, str], ...]
    time_ms: int
    value: float

    def label(self, *names: str) -> str:
        """The first of these labels that says something, else ''."""
        found = dict(self.labels)
        return next((found[name] for name in names if found.get(name)), "")


def read_openmetrics(path: Path) -> list[Sample]:
    """Every sample of the file; of several of one series at one instant the first."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    found: dict[tuple[str, tuple[tuple[str, str], ...], int], Sample] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        match = _LINE.match(line)
        assert match is not None, line
        labels = tuple(sorted(_LABEL.findall(match["labels"] or "")))
        time_ms = round(float(match["time"]) * 1000)
        sample = Sample(match["name"], labels, time_ms, float(match["value"]))
        found.setdefault((sample.metric, labels, time_ms), sample)
    return list(found.values())
