"""Names of the report's tables on the page, their tabs, and the text of their columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import polars as pl

from gpureport.report.page.embedded import Column
from gpureport.values.runtime.resources import TEMPLATES
from gpureport.values.text import formats

_BEFORE = "$€£¥"


@dataclass(frozen=True)
class Money:
    """Writes amounts; ``currency`` is a symbol, which goes before, or a word or code, which goes behind; '' for neither."""

    currency: str = ""

    def __call__(self, amount: float | None) -> str:
        """The amount; a dash where it is unknown."""
        if amount is None:
            return formats.UNKNOWN
        text = f"{amount:,.0f}" if abs(amount) >= 100 else formats.significant(amount)
        if self.currency and self.currency[-1] in _BEFORE:
            return f"{self.currency}{text}"
        return f"{text} {self.currency}".rstrip()

    def tail(self, amount: float | None, before: str = ", ", behind: str = "") -> str:
        """The amount as the end of a sentence, '' where there is none; without a currency the word cost goes before."""
        return f"{before}{'' if self.currency else 'cost '}{self(amount)}{behind}" if amount else ""


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
    """A table on the page: tab, title, sentence, the order that puts first what matters, columns to group by, course of a row."""

    tab: str
    title: str
    sentence: str
    order: str
    groups: tuple[str, ...]
    course: str
    is_open: bool
    """Whether its rows are in sight, or behind its title."""


@cache
def tables_of_page() -> Mapping[str, Words]:
    """Every table that the page shows, in its order; other tables are in the files beside it."""
    return {
        table: Words(tab, title, sentence, order, tuple(groups.split()), course, bool(is_open))
        for table, tab, title, sentence, order, groups, course, is_open in map(dict.values, _read("tables.csv"))
    }


@cache
def own_columns() -> Mapping[str, tuple[Column, ...]]:
    """The columns of the page's own tables."""
    found: dict[str, tuple[Column, ...]] = {}
    for row in _read("columns.csv"):
        column = Column(row["column"], row["title"], row["kind"], row["total"], is_hidden=bool(row["is_hidden"]))
        found[row["table"]] = (*found.get(row["table"], ()), column)
    return found


def _read(name: str) -> list[dict[str, str]]:
    with (TEMPLATES / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


_KEPT_SECONDS = ("observed_seconds", "expected_device_seconds", "unknown_device_seconds", "waiting_seconds", "held_seconds")
_FILES_ONLY = frozenset({"sql", "unknown_reasons", "source_metrics", "pod_uid", "claim_uid"})
_LONG = frozenset({"evidence", "rule", "thresholds", "action", "suppression", "boundness", "sentence", "sharing_evidence"})
_KINDS = {"%": "share", "B": "bytes", "s": "duration", "W": "watts", "°C": "celsius", "J": "joules", "kWh": "kwh"}


def kind_of(name: str, dtype: pl.DataType) -> str:
    """Format of a column; '' for one that is only in the files."""
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
