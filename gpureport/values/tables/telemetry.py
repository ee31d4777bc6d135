"""Tables of exporter data: device signals, samples, workload labels on devices, requested metrics and dropped values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pyarrow as pa

from gpureport.values.runtime.resources import catalog_rows
from gpureport.values.tables.table import DESCRIBED, Column

_HIGHEST = {
    **{"ratio": 1.0, "bytes": 2.0**42, "hertz": 1e10, "celsius": 200.0, "second": 4e12, "generation": 9.0, "width": 32.0},
    **{"pcie_tx_bytes_per_second": 2.6e11, "pcie_rx_bytes_per_second": 2.6e11, "xid_code": 9999.0},
    **{"row_remap_failure_count": 1.0, "remapped_row_uncorrectable_count": 1e4, "remapped_row_correctable_count": 1e4},
    **{"count": 2147483647.0, "reasons": 2147483647.0},
}
"""Upper bounds by name (16 PCIe 7 lanes; 512 spare rows of NVIDIA) or unit, above any device. Power is bounded per device."""


@dataclass(frozen=True)
class Signal:
    """One device signal in canonical units: a column of ``device_sample``, named by its unit."""

    name: str
    kind: str
    """gauge, counter, bitmask or code."""
    scope: str
    """board or instance."""
    doc: str

    @property
    def unit(self) -> str:
        """The last word of the name: watts, joules, ratio, seconds, count, …; ``second`` for a rate."""
        return self.name.rpartition("_")[2]

    @property
    def lowest(self) -> float:
        """Smallest valid value. Every device has memory."""
        return -100.0 if self.unit == "celsius" else float(self.name == "fb_total_bytes")

    @property
    def highest(self) -> float:
        """Largest valid value on any device; infinite for a counter."""
        return math.inf if self.kind == "counter" else _HIGHEST.get(self.name, _HIGHEST.get(self.unit, math.inf))

    @property
    def increase_name(self) -> str:
        """Name of the column with a counter's growth to the next sample: ``<stem>_increase_<unit>``."""
        return f"{self.name}_increase"

    @property
    def gap_increase_name(self) -> str:
        """Name of the column with a counter's growth over a gap or reset that ends at this row."""
        return f"{self.name}_gap_increase"


SIGNALS = tuple(Signal(*row.values()) for row in catalog_rows("device_signal.csv"))
SIGNAL_BY_NAME = {signal.name: signal for signal in SIGNALS}


# Precision of exporters: DCGM prints ratios with six decimals, NVML milliwatts and millijoules.
_DECIMALS = {"ratio": 6, "watts": 3, "joules": 3}


def signal_columns(signal: Signal) -> list[Column]:
    """Return a signal's columns in ``device_sample``: its value, a counter's growth, and a code's changes."""
    decimals = _DECIMALS.get(signal.unit)
    kind = pa.int32() if signal.kind in ("bitmask", "code") else pa.float64()
    columns = [Column(signal.name, kind, signal.doc, True, decimals)]
    if signal.kind == "counter":
        columns += [
            Column(
                signal.increase_name,
                pa.float64(),
                "growth to the next sample, over exactly held_seconds; null on the last one, before a gap and over a reset",
                True,
                # Six, not three: growth is split at full hours in proportion, and its parts must still add up.
                6 if decimals else None,
            ),
            Column(
                signal.gap_increase_name,
                pa.float64(),
                "growth over the gap that ended here, or the value after a reset (a lower bound)",
                True,
            ),
        ]
    if signal.name == "energy_joules":
        doc = "the growth to the next sample is not believed; null in files of older versions"
        columns.append(Column("is_energy_refused", pa.bool_(), doc, True))
    if signal.kind == "code":
        columns.append(Column("xid_event_code", pa.int32(), "the code, where it changed to a new non-zero one here", True))
    return columns


DEVICE_SAMPLE = replace(
    DESCRIBED["device_sample"],
    columns=(*DESCRIBED["device_sample"].columns, *(column for signal in SIGNALS for column in signal_columns(signal))),
)
SAMPLE = DESCRIBED["sample"]
RAW_SAMPLE = DESCRIBED["raw_sample"]
SERIES = DESCRIBED["series"]
OWNER_LABEL = DESCRIBED["owner_label"]
DEVICE_LABEL = DESCRIBED["device_label"]
DEVICE_SIGNAL = DESCRIBED["device_signal"]
SOURCE = DESCRIBED["source"]
DROP_REASONS = {row["reason"]: row["meaning"] for row in catalog_rows("reason_dropped.csv")}
"""Reasons for dropped values: the keys of ``device_signal.dropped``."""
