"""Short lists of the second screen: a report table's first rows by what weighs most, with the columns that a reader needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpureport import formats
from gpureport.report.figures import is_on_page
from gpureport.report.results import Result
from gpureport.report.unknown import cell, told_whys

ROWS_SHOWN = 8
_COLUMNS_SHOWN = 8
_COLUMNS_OF_HALF = 5


@dataclass(frozen=True)
class Chosen:
    """How a table is shown in short; columns that it lacks are left out, without any of ``columns`` its first ones stand."""

    title: str
    sentence: str
    missing: str
    """What would fill it."""
    columns: tuple[str, ...] = ()
    by: str = ""
    """The figure by which rows stand, the largest first whatever its sign; '' for the table's own order."""
    is_worth: Callable[[Mapping[str, Any]], bool] = lambda row: True
    """Whether a row is worth a line."""


@dataclass(frozen=True)
class Listing:
    """A small table: headings (title, unit, whether a number), rows of cells, and how many rows there are in all."""

    headings: tuple[tuple[str, str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int

    @property
    def why(self) -> str:
        """Why figures are unknown."""
        return told_whys(cell for row in self.rows for cell in row)

    @property
    def is_wide(self) -> bool:
        """Whether half of a page's width would cut it."""
        return len(self.headings) > _COLUMNS_OF_HALF


LISTS: Mapping[str, Chosen] = {
    "pod_wait": Chosen(
        "How long pods wait, by size of the request",
        "From creation to placement on a node. Pods that still wait are counted apart and are in no quantile.",
        "No pod that asks for accelerators was placed or waited in this window, or pods were not collected: that takes "
        "kube-state-metrics or gpureport snapshot.",
        (
            *("gpu_model", "resource", "requested_units", "placed_pod_count", "placing_seconds_p50", "placing_seconds_p90"),
            *("placing_seconds_p95", "waiting_pod_count", "waiting_seconds_max"),
        ),
        "placing_seconds_p95",
    ),
    "fragmentation": Chosen(
        "What is free and does not fit",
        "Schedulable devices that were left, the most that one node had, and how often a larger pod would have fitted.",
        "What nodes have left was not collected: that takes kube-state-metrics or gpureport snapshot.",
        (
            *("resource", "schedulable_units_avg", "free_units_avg", "largest_request_units_avg", "fragmentation_ratio"),
            *("fits_1_ratio", "fits_2_ratio", "fits_4_ratio", "fits_8_ratio"),
        ),
        "free_units_avg",
    ),
    "quota_pair": Chosen(
        "Who went short while others borrowed",
        "Inferred: one quota lacked what it was guaranteed and asked for while the other held more than its own.",
        "",
        ("quota", "borrower", "resource", "scheduler", "together_seconds", "contested_gpu_hours", "contested_gpus_max"),
        "contested_gpu_hours",
    ),
    "quota_fairness": Chosen(
        "Fairness",
        "Derived: how much less of its due the worst-served quota got than the best-served; Jain's index, 1 if all are equal.",
        "",
        ("scheduler", "resource", "quota_count", "due_gpu_hours", "fairness_gap_ratio", "jain_ratio", "least_served_quota"),
        "due_gpu_hours",
    ),
    "namespace_change": Chosen(
        "Whose hours changed",
        "Against the window before, scaled to the same length; largest change first.",
        "",
        (
            *("namespace", "change", "earlier_allocated_gpu_hours", "allocated_gpu_hours", "allocated_change_gpu_hours"),
            *("effective_change_gpu_hours", "new_pod_count", "ended_pod_count"),
        ),
        "allocated_change_gpu_hours",
    ),
    "finding_change": Chosen(
        "Findings, new and resolved",
        "Against the window before; those that stayed are not listed.",
        "",
        ("change", "code", "title", "severity", "namespace", "pod", "node_name", "gpu_hours"),
        "gpu_hours",
        lambda row: row["change"] != "stayed",
    ),
    "runway": Chosen(
        "How long the GPUs will suffice",
        "By model: GPU-hours held and usable a day, what is expected, and the error that such a forecast made before.",
        "A forecast needs 28 days of data, the last seven of them whole; the table How long the GPUs will suffice says how many "
        "count.",
        (
            *("gpu_model", "sentence", "daily_held_gpu_hours", "daily_usable_gpu_hours", "runway_day_count"),
            *("backtest_error_ratio", "naive_error_ratio"),
        ),
        "daily_held_gpu_hours",
        lambda row: row["horizon_day_count"] is not None,
    ),
    "rightsizing": Chosen(
        "What would fit a smaller GPU or instance",
        "Containers alone on a GPU that would fit a MIG profile, or a smaller model; most GPU-hours freed first.",
        "",
        ("pod", "container", "namespace", "gpu_model", "profile", "smaller_model", "busiest_sm_active_ratio", "freed_gpu_hours"),
        "freed_gpu_hours",
        lambda row: row["verdict"] == "fits",
    ),
    "dra_claim": Chosen(
        "Claims reserved and idle",
        "Resource claims whose devices no container used; most GPU-hours first.",
        "",
        ("claim", "namespace", "use", "allocated_gpu_hours", "reserved_idle_gpu_hours", "consumers", "node_name", "gpu_model"),
        "reserved_idle_gpu_hours",
        lambda row: bool(row["reserved_idle_gpu_hours"]),
    ),
}
HEADLINES = ("pod_wait", "fragmentation", "runway")
"""Lists whose absence is worth a sentence."""


def listing(result: Result, chosen: Chosen) -> Listing | None:
    """The table in short; None without rows."""
    names = [name for name in chosen.columns if name in result.rows.columns] or _first_columns(result)
    told = zip(result.rows.iter_rows(named=True), result.reasons, strict=True)
    rows = [(row, reasons) for row, reasons in told if chosen.is_worth(row)]
    if chosen.by in result.rows.columns:
        rows.sort(key=lambda each: -abs(each[0][chosen.by] or 0))
    if not rows:
        return None
    return Listing(
        tuple((formats.title(name), _unit(name), _is_number(result, name)) for name in names),
        tuple(tuple(cell(row, reasons, name) for name in names) for row, reasons in rows[:ROWS_SHOWN]),
        len(rows),
    )


def _first_columns(result: Result) -> list[str]:
    """The columns that the page shows, without a cluster that is the only one."""
    shown = [name for name in result.rows.columns if is_on_page(name)]
    is_one = "cluster" in shown and result.rows["cluster"].n_unique() == 1
    return [name for name in shown if not (name == "cluster" and is_one)][:_COLUMNS_SHOWN]


def _is_number(result: Result, name: str) -> bool:
    return result.rows.schema[name].is_numeric()


def _unit(name: str) -> str:
    """Durations carry their own."""
    return "" if "_seconds" in name else formats.unit(name)
