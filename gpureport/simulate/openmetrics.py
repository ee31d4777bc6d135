"""Samples as OpenMetrics text with timestamps, one file per day, for ``promtool tsdb create-blocks-from``."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from gpureport.simulate.exporter import GroupSimulation, node_groups
from gpureport.simulate.plan import SIGNALS_ALL, SimulationPlan
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch

_COUNTERS = {name for name in SIGNALS_ALL if name.endswith(("_VIOLATION", "_CONSUMPTION", "_COUNTER"))}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def write_openmetrics(plan: SimulationPlan, out: Path) -> list[Path]:
    """Write ``metrics-<date>.openmetrics.txt.gz`` for each day; return the files in order of time.

    Memory holds one node group and day. During the run, the day's samples are stored by metric in a folder in ``out``.
    """
    groups = [GroupSimulation(plan, group) for group in node_groups(plan)]
    out.mkdir(parents=True, exist_ok=True)
    return [_write_day(plan, groups, day_number, out) for day_number in range(plan.days)]


def _write_day(plan: SimulationPlan, groups: list[GroupSimulation], day_number: int, out: Path) -> Path:
    """Write one day. Samples arrive by node, but the format groups them by metric, so each metric first has its own file."""
    name = f"metrics-{plan.dates[day_number].isoformat()}.openmetrics.txt.gz"
    spool = out / f".{name}.parts"
    spool.mkdir(exist_ok=True)
    try:
        with _Families(spool) as families:
            for group in groups:
                families.add(group.batch(day_number))
            families.end()
        return _join(sorted(spool.iterdir()), out / name)
    finally:
        shutil.rmtree(spool)


class _Families:
    """One growing file per metric. Concatenated gzip files are a valid gzip file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, gzip.GzipFile] = {}
        self._stack = ExitStack()

    def __enter__(self) -> _Families:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def add(self, batch: SeriesBatch) -> None:
        """Append each series to its metric's file."""
        for metric, text in _series_texts(batch):
            if metric not in self._files:
                kind = "unknown" if metric in _COUNTERS else "gauge"
                self._open(metric).write(f"# TYPE {metric} {kind}\n".encode())
            self._files[metric].write(text)

    def end(self) -> None:
        """Write the end marker after the last metric."""
        self._open("~").write(b"# EOF\n")

    def _open(self, name: str) -> gzip.GzipFile:
        file = self._stack.enter_context((self._folder / name).open("wb"))
        # The header has no name and no time, so the same plan gives the same bytes.
        self._files[name] = self._stack.enter_context(gzip.GzipFile("", "wb", 3, file, mtime=0))
        return self._files[name]


def _join(parts: list[Path], path: Path) -> Path:
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
            part.unlink()
    return draft.replace(path)


def _series_texts(batch: SeriesBatch) -> Iterator[tuple[str, bytes]]:
    """Yield metric and lines of each series; timestamp texts are reused for series with equal times."""
    written: dict[bytes, list[str]] = {}
    for number, labels in enumerate(batch.labels):
        part = slice(int(batch.offsets[number]), int(batch.offsets[number + 1]))
        times = batch.times_ms[part]
        key = times.tobytes()
        if key not in written:
            written[key] = [f" {time // 1000}.{time % 1000:03d}\n" for time in times.tolist()]
        start = _head(labels)
        values = _value_texts(batch.values[part])
        yield (
            labels[METRIC_LABEL],
            "".join([start + value + time for value, time in zip(values, written[key], strict=True)]).encode(),
        )


def _head(labels: Labels) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items() if name != METRIC_LABEL)
    return f"{labels[METRIC_LABEL]}{{{inside}}} "


def _value_texts(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    """Return whole numbers without a decimal point, others as the shortest text that parses to the same value."""
    if np.all(values == np.rint(values)):
        return [str(value) for value in values.astype(np.int64).tolist()]
    return [repr(value) for value in values.tolist()]
