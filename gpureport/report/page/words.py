"""Texts of the page: titles of tables and columns, tabs, and the ten categories of the ledger.

The categories have the same names, words and order on every bar, table and chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from gpureport.report.page.embedded import Column
from gpureport.values.runtime.resources import TEMPLATES, csv_rows
from gpureport.values.text import formats


@dataclass(frozen=True)
class Bucket:
    """A category of the ledger, with its title and meaning."""

    name: str
    title: str
    meaning: str


BUCKETS = tuple(Bucket(**row) for row in csv_rows(TEMPLATES / "buckets.csv"))
ALLOCATED = ("effective", "underutilized", "active_unmeasured", "allocated_unmeasured", "allocated_idle")
IDLE = ("allocated_idle", "reserved_idle")


@dataclass(frozen=True)
class Hours:
    """GPU-hours by category."""

    by_bucket: Mapping[str, float]

    def of(self, *names: str) -> float:
        """Return the GPU-hours of these categories together."""
        return sum(self.by_bucket.get(name, 0.0) for name in names)

    @property
    def capacity(self) -> float:
        """GPU-hours of all categories."""
        return sum(self.by_bucket.values())

    def share(self, *names: str) -> float | None:
        """Return the share of capacity in these categories; None without capacity."""
        return self.of(*names) / self.capacity if self.capacity else None

    @property
    def effective_share(self) -> float | None:
        """Effective share of allocated hours; None without any, or where SM activity is not measured in most of them."""
        known = self.of("effective", "underutilized", "allocated_idle")
        unmeasured = self.of("active_unmeasured", "allocated_unmeasured")
        return self.of("effective") / self.of(*ALLOCATED) if known and unmeasured <= known else None


def hours_by(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, Hours]:
    """Sum rows of ``bucket`` and ``gpu_hours`` by the value of a column, in the order of the rows."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        buckets = found.setdefault(str(row[key]), {})
        buckets[row["bucket"]] = buckets.get(row["bucket"], 0.0) + (row["gpu_hours"] or 0.0)
    return {value: Hours(buckets) for value, buckets in found.items()}


_BEFORE = "$€£¥"


@dataclass(frozen=True)
class Money:
    """Writer of amounts; ``currency`` is a symbol, written before the amount, or a word or code, written after it, or ''."""

    currency: str = ""

    def __call__(self, amount: float | None, is_least: bool = False) -> str:
        """Return the amount or a lower bound; a dash where it is unknown, and where no part above 0 is known."""
        if amount is None or (is_least and not amount):
            return formats.UNKNOWN
        text = formats.grouped(amount, 0) if abs(amount) >= 100 else formats.significant(amount)
        sign, space, digits = text.rpartition(" ")  # < 0.001
        is_before = self.currency[-1:] in (*_BEFORE,)
        text = f"{sign}{space}{self.currency}{digits}" if is_before else f"{text} {self.currency}".rstrip()
        return formats.at_least(text, is_least)

    def tail(self, amount: float | None, before: str = ", ", is_least: bool = False) -> str:
        """Return the amount as the end of a sentence; '' without an amount. Without a currency it begins with the word cost."""
        return f"{before}{'' if self.currency else 'cost '}{self(amount, is_least)}" if amount else ""


TABS = {
    "overview": "Overview",
    "teams": "Teams",
    "workloads": "Workloads",
    "gpus": "GPUs",
    "capacity": "Capacity",
    "quotas": "Quotas",
    "energy": "Energy and cost",
    "data": "Data quality",
    "about": "About",
}


class Words(NamedTuple):
    """A table on the page: tab, title, sentence, order (most important rows first), columns to group by, trend of a row."""

    tab: str
    title: str
    sentence: str
    order: str
    groups: tuple[str, ...]
    trend: str
    is_open: bool
    """Whether its rows are visible at first, or folded under its title."""


@cache
def tables_of_page() -> Mapping[str, Words]:
    """Return every table of the page, in order; other tables are only in the files."""
    return {
        table: Words(tab, title, sentence, order, tuple(groups.split()), trend, bool(is_open))
        for table, tab, title, sentence, order, groups, trend, is_open in map(dict.values, csv_rows(TEMPLATES / "tables.csv"))
    }


@cache
def own_columns() -> Mapping[str, tuple[Column, ...]]:
    """Return the columns of the page's own tables."""
    found: dict[str, tuple[Column, ...]] = {}
    for row in csv_rows(TEMPLATES / "columns.csv"):
        column = Column(row["column"], row["title"], row["kind"], row["total"], is_hidden=bool(row["is_hidden"]))
        found[row["table"]] = (*found.get(row["table"], ()), column)
    return found


_KEPT_SECONDS = ("observed_seconds", "expected_device_seconds", "unknown_device_seconds", "waiting_seconds", "held_seconds")
_FILES_ONLY = frozenset({"sql", "unknown_reasons", "source_metrics", "pod_uid", "claim_uid"})
_LONG = frozenset({"evidence", "rule", "thresholds", "action", "suppression", "boundness", "sentence", "sharing_evidence"})
_KINDS = {"%": "share", "B": "bytes", "s": "duration", "W": "watts", "°C": "celsius", "J": "joules", "kWh": "kwh"}


def kind_of(name: str, dtype: pl.DataType) -> str:
    """Return the format of a column; '' if it is only in the files."""
    if name in _FILES_ONLY or dtype == pl.List(pl.Struct) or (name.endswith("_seconds") and name not in _KEPT_SECONDS):
        return ""
    if name in _LONG:
        return "long"
    if name == "severity":
        return "severity"
    if not dtype.is_numeric():
        return "text"
    if name.endswith(("_percent", "_percent_avg", "_per_second_avg", "_per_second")):
        return "number"
    return "money" if name.endswith("cost") else _KINDS.get(formats.unit(name), "number")
