"""docs/metrics.md, written from the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from gpureport.values.catalog import Catalog, Meaning
from gpureport.values.tables import SIGNALS

_INTRO = """# Metrics

The metrics that carry each signal, with their exporters (dcgm is dcgm-exporter, and so on) and versions, the preferred
first. Generated from `queries/catalog/signal.csv`, which has each row's source.

- The first there serves, the next while it is silent. `lake.device_signal` and `source_metrics` say
  which did. Your own rows (`[[signals]]` in the configuration) come first.
- "× 0.001": the factor to the unit that the signal's name ends in.
- Behind a signal, and a metric that differs, is how it is read: gauge (holds until the next sample), counter
  (grows), rate (a gauge called a counter), bitmask, bit (a flag of the mask), code, info (labels
  alone), growth per second or over another counter's (a gauge from counters). Then its scope: board (the
  whole GPU, even if MIG instances repeat it), instance, detail (a device's, split further), pod, cluster.
- `{name=value}` is a label that the series must have, beside the one that names the device (AMD `gpu_partition_id`, xpumd
  `hw_id`, GKE `accelerator_id`, cAdvisor `acc_id`, Kepler `gpu_uuid`, HAMi to 2.8 `deviceuuid`, Neuron `neuroncore`).
- AMD's device-metrics-exporter has each metric also with `amd_` in front.

Not read: `xpum_memory_ratio` (XPU Manager 1.x), a share of an unknown total.
"""
_ANY = re.compile(r"\w+=\* ?")
"""A label that may have any value: the one that names the device."""


def render_metrics(catalog: Catalog) -> str:
    """docs/metrics.md."""
    usual = {signal.name: f"{signal.kind}, {signal.scope}" for signal in SIGNALS}
    others = [row for row in catalog.rows if row.signal not in usual]
    lists = [f"## {name}: {read}\n\n{_metrics(rows, read)}" for name, read in usual.items() if (rows := catalog.candidates(name))]
    return "\n".join([_INTRO, *lists, f"## Everything else: gauge, cluster\n\n{_metrics(others, 'gauge, cluster')}"])


def _metrics(rows: Iterable[Meaning], usual: str) -> str:
    """A line for each run of metrics that are read alike, without what is usual for the signal."""

    def line(row: Meaning) -> str:
        grown = f"growth per {row.per}" if row.per == "second" else f"growth over that of {row.per}"
        read = f"{grown if row.per else row.kind}, {row.scope}"
        said = ("" if read == usual else read, f"{row.exporter.removesuffix('-exporter')} {row.versions}", row.needs)
        return f"{'' if row.factor == 1 else f' × {row.factor:g}'}: {'; '.join(filter(None, said))}"

    runs = (
        (said, [f"`{row.metric}{{{labels}}}`" if (labels := _ANY.sub("", row.labels)) else f"`{row.metric}`" for row in run])
        for said, run in groupby(rows, line)
    )
    return "".join(
        f"- {', '.join(name for name in names if '`amd_' not in name or len(names) == 1)}{said}\n" for said, names in runs
    )
