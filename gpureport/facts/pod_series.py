"""Where a day's series of pods that name no GPU are: apart from the parts of the GPUs that the pods hold."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpureport.lake import Lake, Partition

_SIGNAL = "kepler_active_watts"


def kepler_parts(lake: Lake, samples: Partition) -> frozenset[str]:
    """The names of the parts that hold Kepler's watts of pods; mostly one, or none."""
    series = lake.partition("series", samples.cluster, samples.date)
    files = series.files if series else ()
    return frozenset(
        file.stem for file in files if _SIGNAL in pc.unique(pq.read_table(file, columns=["signal"])["signal"]).to_pylist()
    )
