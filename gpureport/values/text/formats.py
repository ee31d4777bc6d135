"""Formats of numbers, times and units for readers; no other module formats them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

UNKNOWN = "—"
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
IEC = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_SPELLED = {word.lower(): word for word in ("GPU", "SM", "DRAM", "PCIe", "NVLink", "XID", "UUID", "UID", "MIG", "PCI", "ID")} | {
    "gpus": "GPUs",
    "tx": "sent",
    "rx": "received",
    "sw": "software",
    "hw": "hardware",
    "util": "utilization",
    "fb": "framebuffer",
    "gr": "graphics",
}

_UNITS = {
    **{"watts": "W", "joules": "J", "joules_kepler": "J", "joules_unweighted": "J", "kwh": "kWh", "celsius": "°C", "hertz": "Hz"},
    **{"bytes": "B", "bytes_per_second": "B/s", "ratio": "%", "percent": "%", "seconds": "s", "gpu_hours": "GPU-h"},
}
"""Units in headings, by their words in column names."""
# The contract's activity names have no unit: they are ratios.
_MEASURED = re.compile(rf"_({'|'.join(_UNITS)})(_avg|_max|_min|_p\d\d)?$|(gpu_usage|_active|_occupancy)_(avg|max)$")


@cache
def unit(column: str) -> str:
    """Return the unit in a column's heading; '' for counts, names and times."""
    found = _MEASURED.search(column)
    return _UNITS.get(found[1], "%") if found else ""


@cache
def title(column: str) -> str:
    """Return a column's name in readable form, without its unit."""
    for ending, kept in (("_bytes_per_second_avg", ""), ("_ratio_avg", " avg"), ("_ratio_max", " max"), ("_ratio", "")):
        if column.endswith(ending):
            return words(column.removesuffix(ending) + kept)
    for ending in ("_celsius", "_hertz", "_watts", "_joules", "_kwh", "_seconds", "_bytes", "_percent", "_gpu_hours"):
        column = column.replace(ending, "")
    return words(column)


def value(column: str, found: float | None) -> str:
    """Format a figure, without a unit that the heading has. Unknown is a dash, never zero."""
    if found is None:
        return UNKNOWN
    return percent_points(found * 100) if unit(column) == "%" else significant(found)


def significant(found: float) -> str:
    """Format with at least three significant digits, grouped thousands and no exponent. A small non-zero value is never 0."""
    if found == 0 or not math.isfinite(found):
        return f"{abs(found):g}"
    if abs(found) < 0.001:
        return "< 0.001" if found > 0 else "> -0.001"
    text = grouped(found, max(0, 2 - math.floor(math.log10(abs(found)))))
    return text.rstrip("0").rstrip(".") if "." in text else text


def grouped(found: float, places: int) -> str:
    """Format with decimal places and grouped thousands. A half, but for a trace, is rounded up, as by the page's script."""
    return f"{float(found) * (1 + 1e-14):,.{places}f}"


def rounded(found: float, places: int, is_least: bool = False) -> str:
    """Format with some decimal places. A lower bound has the sign ≥; a trace is "less than the last place", never 0."""
    last = 10.0**-places
    if not is_least and 1e-9 < found < last / 2:
        return f"< {last:g}"
    return at_least(significant(round(float(found) * (1 + 1e-14), places)), is_least)


def at_least(written: str, is_least: bool = True) -> str:
    """Return a formatted lower bound with its sign; of "< 0.1 %" it is "> 0 %", and "> 99.9 %" is one already."""
    if not is_least or written.startswith(">"):
        return written
    return "> " + re.sub(r"[\d.]+", "0", written[2:], count=1) if written.startswith("<") else f"≥ {written}"


def percent_points(found: float) -> str:
    """Format percent with one decimal, for aligned columns. A trace is not shown as 0, nor almost all as 100."""
    if found == 0 or not math.isfinite(found):
        return f"{abs(found):g}"
    if 0 < found < 0.05:
        return "< 0.1"
    return "> 99.9" if 99.95 <= found < 100 - 1e-9 else grouped(found, 1)  # closer to 100 is a rounding error


def scaled(found: float, steps: Sequence[tuple[float, str]]) -> str:
    """Format with the largest prefix that leaves at least 1 before the point."""
    for size, prefix in steps:
        if abs(found) >= size:
            return f"{significant(found / size)} {prefix}"
    return significant(found)


def percent(ratio: float | None, is_least: bool = False) -> str:
    """Format a ratio of 0..1 as percent."""
    return UNKNOWN if ratio is None else at_least(f"{percent_points(ratio * 100)} %", is_least)


def gpu_hours(found: float | None, is_least: bool = False) -> str:
    """Format GPU-hours with their unit."""
    return UNKNOWN if found is None else at_least(f"{significant(found)} GPU-h", is_least)


def energy(joules: float | None, is_least: bool = False) -> str:
    """Format joules as Wh, kWh or MWh, the units of energy bills."""
    if joules is None:
        return UNKNOWN
    return at_least(f"{scaled(joules / 3600, _SI)}{'' if abs(joules) >= 3.6e6 else ' '}Wh", is_least)


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: 1 GPU, 2 GPUs; thousands grouped."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """Format seconds in two units: 8 min, 1 d 2 h."""
    if seconds is None:
        return UNKNOWN
    whole = math.floor(seconds + 0.5)
    parts = [(whole // 86400, "d"), (whole % 86400 // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s")]
    shown = [f"{count} {name}" for count, name in parts if count]
    return " ".join(shown[:2]) or "0 s"


def words(name: str) -> str:
    """Return a column's or table's name as a heading, with the usual spelling of technical terms."""
    return " ".join(_SPELLED.get(word, word) for word in name.replace("_", " ").split(" "))
