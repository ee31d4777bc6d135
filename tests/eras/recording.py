"""The recording as series that can be rewritten, and rewritten series as OpenMetrics text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from oracle.samples import Sample, read_openmetrics

RECORDING = Path(__file__).parent.parent.parent / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"
WORKLOAD = ("namespace", "pod", "container", "pod_uid", "vgpu")


@dataclass(frozen=True)
class Series:
    """One label set of a metric and its values by instant (ms)."""

    metric: str
    labels: Mapping[str, str]
    points: Mapping[int, float]

    @property
    def is_gpu(self) -> bool:
        """Whether a GPU exporter printed it; the rest is kube-state-metrics'."""
        return not self.metric.startswith("kube_")

    @property
    def pod(self) -> str:
        """The workload pod, '' where none is named."""
        return self.labels.get("pod", "")

    def with_labels(self, **labels: str) -> Series:
        """With these labels over its own."""
        return replace(self, labels={**self.labels, **labels})

    def without_labels(self, *names: str) -> Series:
        """Without these labels."""
        return replace(self, labels={name: text for name, text in self.labels.items() if name not in names})

    def renamed_labels(self, names: Mapping[str, str]) -> Series:
        """With labels called otherwise."""
        return replace(self, labels={names.get(name, name): text for name, text in self.labels.items()})

    def between(self, start_ms: int, end_ms: int) -> Series:
        """Only what was sampled in [start_ms, end_ms)."""
        return replace(self, points={time: value for time, value in self.points.items() if start_ms <= time < end_ms})


MARKED = {
    "58cba95d-ca2a": "58cba95d-{:04x}",
    "gpu-node-0": "gpu-node-{}",
    "10.244.": "10.{}.",
    **{f"-{end}": f"-{end[:-4]}{{:04x}}" for end in ("c3e32c2cd872", "0c0bd253c187", "e416184b062a", "496214b9530b")},
}
"""Parts of the names of the GPU, its node, scrape targets and pods' uids, and what they are in a cluster of several eras."""
NAMESPACES = ("data", "notebooks", "research", "serving")


def marked(series: Iterable[Series], number: int) -> Iterator[Series]:
    """An era's series under names of their own, so that many eras are side by side in one cluster."""

    def own(text: str) -> str:
        if text in NAMESPACES:
            return f"{text}~{number}"
        for part, mark in MARKED.items():
            text = text.replace(part, mark.format(number))
        return text

    for each in series:
        yield replace(each, labels={name: own(text) for name, text in each.labels.items()})


def unmarked(value: Any, number: int) -> Any:
    """A cell of the report with the names as they were recorded."""
    if isinstance(value, str):
        value = value.replace(f"~{number}", "")
        for part, mark in MARKED.items():
            value = value.replace(mark.format(number), part)
    return value


@cache
def recorded() -> tuple[Series, ...]:
    """Every series of the recording."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], dict[int, float]] = {}
    for sample in samples():
        found.setdefault((sample.metric, sample.labels), {})[sample.time_ms] = sample.value
    return tuple(Series(metric, dict(labels), points) for (metric, labels), points in found.items())


@cache
def samples() -> list[Sample]:
    """The recording's, of every other second."""
    return [each for each in read_openmetrics(RECORDING) if each.time_ms // 1000 % 2 == 0]


def openmetrics(series: Iterable[Series]) -> str:
    """The series as OpenMetrics text, family by family."""
    lines: dict[str, list[str]] = {}
    for each in series:
        labels = ",".join(f'{name}="{text}"' for name, text in each.labels.items())
        head = f"{each.metric}{{{labels}}}"
        lines.setdefault(each.metric, []).extend(
            f"{head} {value!r} {time // 1000}.{time % 1000:03d}" for time, value in each.points.items()
        )
    families = [f"# TYPE {metric} unknown\n" + "\n".join(found) for metric, found in sorted(lines.items())]
    return "\n".join([*families, "# EOF\n"])
