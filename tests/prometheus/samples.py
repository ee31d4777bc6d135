"""Samples as plain dictionaries, and the slow, obvious readers and writers of text that the tests compare with."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from tempfile import NamedTemporaryFile

from gpureport.collect.sources.prometheus import Connection, open_connection
from gpureport.config import Prometheus
from gpureport.values.series import Labels, SeriesBatch

Series = frozenset[tuple[str, str]]
Sample = tuple[int, int]
"""Milliseconds, and the bits of the float64."""

_LINE = re.compile(r"^(\w+)\{(.*)\} (\S+) (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def bits(value: float) -> int:
    (found,) = struct.unpack(">Q", struct.pack(">d", value))
    return int(found)


def value_of(pattern: int) -> float:
    (found,) = struct.unpack(">d", struct.pack(">Q", pattern))
    return float(found)


def rows_of(batch: SeriesBatch) -> dict[Series, list[Sample]]:
    """The batch's samples by series; the pieces of a series one after the other."""
    rows: dict[Series, list[Sample]] = {}
    for number, labels in enumerate(batch.labels):
        part = slice(int(batch.offsets[number]), int(batch.offsets[number + 1]))
        times, values = batch.times_ms[part].tolist(), batch.values.view("u8")[part].tolist()
        if times:
            rows.setdefault(frozenset(labels.items()), []).extend(zip(times, values, strict=True))
    return rows


def rows_of_text(text: str) -> dict[Series, list[Sample]]:
    """The samples of an OpenMetrics text whose labels need no escapes; an empty label is none, as servers have it."""
    rows: dict[Series, list[Sample]] = {}
    for line in text.splitlines():
        if found := _LINE.match(line):
            metric, labels, value, seconds = found.groups()
            time_ms = round(float(seconds) * 1000)
            series = frozenset([("__name__", metric), *((name, text) for name, text in _LABEL.findall(labels) if text)])
            rows.setdefault(series, []).append((time_ms, bits(float(value))))
    return rows


def text_of(rows: Iterable[tuple[Labels, Sequence[tuple[int, str]]]]) -> str:
    """OpenMetrics of (labels, [(milliseconds, value as text)])."""
    lines = []
    for labels, samples in rows:
        inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items() if name != "__name__")
        lines += [f"{labels['__name__']}{{{inner}}} {value} {time_ms / 1000:.3f}" for time_ms, value in samples]
    return "\n".join([*lines, "# EOF\n"])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def connect(
    url: str, environ: Mapping[str, str] | None = None, http: str = "", retries: int = 0, **settings: object
) -> Connection:
    """A connection that tries ``retries`` times more; ``http`` is the text of promtool's HTTP client file."""
    chosen = {"read_timeout_seconds": 60, **settings}
    with NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        if http:
            file.write(http)
            file.flush()
            chosen["http_config_file"] = file.name
        connection = open_connection(Prometheus.model_validate({"url": url, **chosen}), environ or {})
    connection.retries = retries
    return connection
