"""docs/schema.md, figures.md and metrics.md, written from the tables, the figures, the catalogue and the SQL's headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpureport import formats
from gpureport.catalog import Catalog, Meaning
from gpureport.documents.markdown import markdown_table
from gpureport.figures import FIGURES, REASONS
from gpureport.figures.figure import Figure
from gpureport.query import Query
from gpureport.tables import DROP_REASONS, SCHEMA_VERSION, SIGNALS, TABLES
from gpureport.tables.table import Column, Table

_SCHEMA_INTRO = f"""# Schema

Generated from `gpureport/tables/` and the headers of `queries/`; `gpureport schema` prints it. Schema version {SCHEMA_VERSION}.

Lake tables lie at `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`, facts at `<lake>/facts/<table>/…` alike. `cluster` (text)
and `date` (UTC day) are columns of every lake table, read from the path. Instants are UTC without a zone. Null means unknown.
"""
_FIGURES_INTRO = """# Figures

Generated from `gpureport/figures/` and the headers of `queries/report`: for
each figure of the report its formula, its unit, the signals it is made from, and when it is absent. Which metrics carry a
signal is in [metrics.md](metrics.md); which one served stands in `source_metrics`.

A ratio is over the time in which its own signal was seen, and that time stands beside it as `…_seconds`. An average is weighted
by time. Over several devices of a container the roll-up is that of `report.container`, below. Absent is null, with an entry in
`unknown_reasons`; any figure is also absent where its signal was seen for less than `--figure-min-coverage` of the time, and the
saturation figures where `saturation.enabled` is false.

A container's figures are those of its devices while it held them, by `facts.ownership`: labels made right with what
kube-state-metrics says ([how](architecture.md#who-held-a-device)). `sharing_mode` says whether it held them alone, and
`sharing_evidence` by what that is known. Time in which a device was seen and nobody held it is nobody's.

## Why a figure is absent

"""

_METRICS_INTRO = """# Metrics

Generated from `queries/catalog/signal.csv`: which metrics carry each signal, the preferred one first. Where several are there,
the first serves, and the others only while it is silent; `lake.device_signal` and `source_metrics` say which one served.
A value times the factor is in the unit of the signal's name. Own rows (`[[signals]]` in the configuration) come before these.

How a metric is read: gauge (holds until the next sample), counter (grows), rate (a gauge that calls itself a counter), bitmask,
bit (a flag worth a bit of the mask), code, info (only its labels count), growth per second or over another counter's (a gauge
made from counters). Scope: board (the whole GPU, also where every MIG instance repeats it), instance, detail (of a device,
split further), pod, cluster. `name=*` asks for a label that is there.

Not read, though an exporter has it: `xpum_memory_ratio` (XPU Manager 1.x), percent of a total that it gives nowhere; with
`xpum_memory_used_bytes` alone the bytes are known and the share of the memory is not.
"""


def render_schema(queries: Mapping[str, Query]) -> str:
    """docs/schema.md."""
    dropped = markdown_table(("reason", "meaning"), DROP_REASONS.items())
    lake = ["## Lake\n", *map(_lake_table, TABLES), "### Reasons in device_signal.dropped\n", dropped]
    parts = [_SCHEMA_INTRO, *lake, "## Facts\n", *_query_tables(queries, "facts")]
    return "\n".join([*parts, "## Report\n", *_query_tables(queries, "report")])


def render_figures(queries: Mapping[str, Query]) -> str:
    """docs/figures.md."""
    reasons = markdown_table(("reason", "meaning"), REASONS.items())
    figures = [_figure(name, figure, queries) for name, figure in FIGURES.items()]
    table = markdown_table(("figure", "unit", "formula", "signals", "absent", "tables"), figures)
    parts = [_FIGURES_INTRO + reasons, "## Formula, unit, signals\n", table, "## By table\n"]
    return "\n".join([*parts, *_query_tables(queries, "report", with_source=True)])


def _figure(name: str, figure: Figure, queries: Mapping[str, Query]) -> tuple[str, ...]:
    signals = ", ".join(f"`{signal}`" for signal in figure.signals)
    tables = [table.removeprefix("report.") for table in sorted(queries) if name in queries[table].columns and _is_report(table)]
    unit = "0..1" if formats.unit(name) == "%" else formats.unit(name)
    absent = figure.absent or ("no sample of its signals" if figure.signals else "never")
    return name, unit, figure.formula, signals, absent, ", ".join(tables)


def render_metrics(catalog: Catalog) -> str:
    """docs/metrics.md."""
    columns = [signal.name for signal in SIGNALS]
    others = [signal for signal in dict.fromkeys(row.signal for row in catalog.rows) if signal not in columns]
    tables = [f"### {signal}\n\n" + _metrics(catalog.candidates(signal)) for signal in columns if catalog.candidates(signal)]
    beside = _metrics([row for signal in others for row in catalog.candidates(signal)])
    return "\n".join([_METRICS_INTRO, "## Device signals\n", *tables, "## Everything else\n", beside])


def _metrics(rows: Iterable[Meaning]) -> str:
    def line(row: Meaning) -> tuple[str, ...]:
        name = f"{row.metric}{{{row.labels}}}" if row.labels else row.metric
        read = f"growth per {row.per}" if row.per == "second" else f"growth over that of {row.per}" if row.per else row.kind
        return name, f"{row.factor:g}", read, row.scope, f"{row.exporter} {row.versions}", row.needs, row.source

    return markdown_table(("metric", "factor", "read as", "scope", "exporter", "needs", "source"), map(line, rows))


def _is_report(table: str) -> bool:
    return table.startswith("report.")


def _type(column: Column) -> str:
    return str(column.type) if column.decimals is None else f"{column.type}, in files decimal(18, {column.decimals})"


def _lake_table(table: Table) -> str:
    rows = [(column.name, _type(column), "yes" if column.nullable else "", column.doc) for column in table.columns]
    grain = ", ".join(f"`{name}`" for name in table.grain)
    head = f"### lake.{table.name}\n\n{table.doc}\nOne row per {grain}.\n\n"
    return head + markdown_table(("column", "type", "null", "meaning"), rows)


def _query_tables(queries: Mapping[str, Query], layer: str, with_source: bool = False) -> Iterable[str]:
    for name in sorted(queries):
        query = queries[name]
        if query.layer != layer:
            continue
        grain = ", ".join(f"`{column}`" for column in query.grain)
        source = f"\nSource: {query.source}.\n" if with_source and query.source else ""
        rows = list(query.columns.items())
        purpose = " ".join(query.purpose.split())
        yield f"### {name}\n\n{purpose}\nOne row per {grain}.\n{source}\n" + markdown_table(("column", "meaning and unit"), rows)
