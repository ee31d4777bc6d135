"""What exporters print, version by version, and what it is read as: worked out by hand from their documents."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from documents.conformance import CORPUS, series_of

from gpureport.collect.shape import read_labels, reading_of, shape
from gpureport.values.catalog import load_catalog
from gpureport.values.series import SeriesBatch
from gpureport.values.window import Window

DAY = Window.of_day(date(2026, 11, 20))
SCRAPES = DAY.start_ms + 43_200_000 + 30_000 * np.arange(11)
CATALOG = load_catalog()
FROM_LABELS = ("gpu_model", "node_name", "gpu_instance_profile")
Facts = set[tuple[str, str, str, str]]


@pytest.mark.parametrize("folder", CORPUS, ids=lambda folder: folder.name)
def test_an_exporters_text_is_read_as_worked_out(folder: Path) -> None:
    with (folder / "expected.csv").open(newline="") as file:
        expected = {(row["device_uuid"], row["gpu_instance_id"], row["name"], row["value"]) for row in csv.DictReader(file)}
    assert found(folder) == {(device, instance, name, _number(value)) for device, instance, name, value in expected}


def found(folder: Path) -> Facts:
    """All that is known of the devices: signals of the first of eleven equal scrapes, labels, holders."""
    series = series_of((folder / "metrics.txt").read_text())
    batch = SeriesBatch(
        labels=[labels for labels, _ in series],
        offsets=np.arange(len(series) + 1, dtype=np.int64) * SCRAPES.size,
        times_ms=np.tile(SCRAPES, len(series)),
        values=np.repeat([value for _, value in series], SCRAPES.size),
    )
    first = shape(batch, CATALOG, DAY, reading=read_labels(batch.labels))
    shaped = shape(batch, CATALOG, DAY, reading=reading_of(first.tallies, read_labels(batch.labels)))
    signals = [name for name in shaped.device_sample.column_names[7:] if not name.startswith(("xid_event", "is_"))]
    facts: Facts = set()
    for row in shaped.device_sample.to_pylist():
        if row["seen_at"].timestamp() * 1000 == SCRAPES[0]:
            facts |= {(*_device(row), name, _number(row[name])) for name in signals if row[name] is not None}
    for row in shaped.device_label.to_pylist():
        known = [name for name in FROM_LABELS if row[name] and (row["gpu_instance_id"] == "") == (name != FROM_LABELS[2])]
        facts |= {(*_device(row), name, row[name]) for name in known}
    for row in shaped.owner_label.to_pylist():
        facts.add((*_device(row), "holder", f"{row['namespace']}/{row['pod']}/{row['container']}"))
    return facts


def _device(row: dict[str, str]) -> tuple[str, str]:
    return row["device_uuid"], row["gpu_instance_id"]


def _number(value: object) -> str:
    """A number as nine digits, anything else as it is."""
    try:
        return f"{float(str(value)):.9g}"
    except ValueError:
        return str(value)
