"""docs/metrics.md, written from the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from documents import anchor
from gpureport.catalog import Catalog, Meaning
from gpureport.pipeline.schema import markdown_table
from gpureport.tables import SIGNALS

_INTRO = """# Metrics

Which metrics of which exporters carry each signal. Generated from `queries/catalog/signal.csv`.

- **Order**: the preferred metric comes first. If several are there, the first one serves, and the next ones only while it
  is silent. `lake.device_signal` and `source_metrics` say which one served. Your own rows (`[[signals]]` in the
  configuration) come before these.
- **Factor**: a value times the factor is in the unit that the signal's name ends in.
- **Read as**: gauge (holds until the next sample), counter (grows), rate (a gauge that calls itself a counter), bitmask,
  bit (a flag worth one bit of the mask), code, info (only its labels count), growth per second or over another counter's
  growth (a gauge made from counters).
- **Scope**: board (the whole GPU, even if every MIG instance repeats it), instance, detail (a device's value split
  further), pod, cluster.
- `{name=*}` means that the series must have this label.

Not read, though an exporter has it: `xpum_memory_ratio` (XPU Manager 1.x), a percentage of a total that the exporter does
not publish. With `xpum_memory_used_bytes` alone, the bytes are known and the share of the memory is not.
"""
_OTHERS = "Everything else"
_SOURCES = "Sources"


def render_metrics(catalog: Catalog) -> str:
    """docs/metrics.md."""
    columns = [signal.name for signal in SIGNALS]
    others = [signal for signal in dict.fromkeys(row.signal for row in catalog.rows) if signal not in columns]
    signals = [signal for signal in columns if catalog.candidates(signal)]
    sources = {source: number for number, source in enumerate(dict.fromkeys(row.source for row in catalog.rows), 1)}
    contents = " · ".join(f"[{name}](#{anchor(name)})" for name in [*signals, _OTHERS, _SOURCES])
    tables = [f"### {signal}\n\n" + _metrics(catalog.candidates(signal), sources) for signal in signals]
    beside = _metrics([row for signal in others for row in catalog.candidates(signal)], sources)
    listed = "".join(f"{number}. {source}\n" for source, number in sources.items())
    ends = [f"## {_OTHERS}\n", beside, f"## {_SOURCES}\n", listed]
    return "\n".join([_INTRO, f"Signals: {contents}\n", "## Device signals\n", *tables, *ends])


def _metrics(rows: Iterable[Meaning], sources: Mapping[str, int]) -> str:
    """A line for each run of metrics that are read alike."""

    def line(row: Meaning) -> tuple[str, ...]:
        read = f"growth per {row.per}" if row.per == "second" else f"growth over that of {row.per}" if row.per else row.kind
        return f"{row.factor:g}", read, row.scope, f"{row.exporter} {row.versions}", row.needs, str(sources[row.source])

    runs = (
        (cells, [f"{row.metric}{{{row.labels}}}" if row.labels else row.metric for row in run])
        for cells, run in groupby(rows, line)
    )
    lines = (("`, `".join(names), *cells) for cells, names in runs)
    return markdown_table(("metric", "factor", "read as", "scope", "exporter", "needs", "source"), lines)
