"""docs/metrics.md, written from the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from gpureport.catalog import Catalog, Meaning
from gpureport.tables import SIGNALS

_INTRO = """# Metrics

The metrics that carry each signal, with their exporters and versions, the preferred one first. Generated from
`queries/catalog/signal.csv`.

- The first one that is there serves, and the next ones only while it is silent. `lake.device_signal` and `source_metrics` say
  which one served. Your own rows (`[[signals]]` in the configuration) come before these.
- "× 0.001": a value times this is in the unit that the signal's name ends in.
- Under the signal, and where a metric differs beside it, is how it is read: gauge (holds until the next sample), counter
  (grows), rate (a gauge that calls itself a counter), bitmask, bit (a flag worth one bit of the mask), code, info (only its
  labels count), growth per second or over another counter's growth (a gauge made from counters). Then its scope: board (the
  whole GPU, even if every MIG instance repeats it), instance, detail (a device's value split further), pod, cluster.
- `{name=value}` is a label that the series must have. The number in brackets is the [source](#sources).
- device-metrics-exporter has each of its metrics also with `amd_` in front.

Not read, though an exporter has it: `xpum_memory_ratio` (XPU Manager 1.x), a percentage of a total that the exporter does
not publish. With `xpum_memory_used_bytes` alone, the bytes are known and the share of the memory is not.
"""


def render_metrics(catalog: Catalog) -> str:
    """docs/metrics.md."""
    columns = {signal.name: f"{signal.kind}, {signal.scope}" for signal in SIGNALS}
    others = [signal for signal in dict.fromkeys(row.signal for row in catalog.rows) if signal not in columns]
    sources = {source: number for number, source in enumerate(dict.fromkeys(row.source for row in catalog.rows), 1)}
    lists = [
        f"## {signal}\n\n{read}\n\n{_metrics(rows, sources, read)}"
        for signal, read in columns.items()
        if (rows := catalog.candidates(signal))
    ]
    beside = _metrics([row for signal in others for row in catalog.candidates(signal)], sources, "gauge, cluster")
    needed = {f"{row.exporter} {row.versions} `{name}`": 0 for row in catalog.rows for name in _any_value(row)}
    devices = f"- The series must name their device, by the label in: {', '.join(needed)}.\n"
    listed = "".join(f"{number}. {source}\n" for source, number in sources.items())
    return "\n".join(
        [
            _INTRO.replace("\n\nNot read", f"\n{devices}\nNot read"),
            *lists,
            f"## Everything else\n\ngauge, cluster\n\n{beside}",
            f"## Sources\n\n{listed}",
        ]
    )


def _metrics(rows: Iterable[Meaning], sources: Mapping[str, int], usual: str) -> str:
    """A line for each run of metrics that are read alike, without what is usual for the signal."""

    def line(row: Meaning) -> str:
        grown = f"growth per {row.per}" if row.per == "second" else f"growth over that of {row.per}"
        read = f"{grown if row.per else row.kind}, {row.scope}"
        said = ("" if read == usual else read, f"{row.exporter} {row.versions}", row.needs)
        factor = "" if row.factor == 1 else f" × {row.factor:g}"
        return f"{factor}: {'; '.join(filter(None, said))} ({sources[row.source]})"

    runs = ((said, [_name(row) for row in run]) for said, run in groupby(rows, line))
    return "".join(f"- {', '.join(f'`{name}`' for name in names if name not in _amd(names))}{said}\n" for said, names in runs)


def _any_value(row: Meaning) -> list[str]:
    """Labels that must be there, whatever they say."""
    return [label.removesuffix("=*") for label in row.labels.split() if label.endswith("=*")]


def _name(row: Meaning) -> str:
    labels = " ".join(label for label in row.labels.split() if not label.endswith("=*"))
    return f"{row.metric}{{{labels}}}" if labels else row.metric


def _amd(names: list[str]) -> set[str]:
    return {f"amd_{name}" for name in names}
