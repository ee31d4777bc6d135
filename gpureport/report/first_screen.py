"""The page's first screen: capacity, the answer in three sentences, the ledger's bar, tiles, the findings that weigh most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.answer import answer
from gpureport.report.bounds import bounded
from gpureport.report.header import Header
from gpureport.report.ledger import BUCKETS, HELD, Balance, balances, total
from gpureport.report.results import Result
from gpureport.report.tiles import DAYS_FOR_A_COURSE, Tile, effective, tiles
from gpureport.report.unknown import Unknown, told_whys

FINDINGS_SHOWN = 8
_RANKS = {"critical": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class Share:
    """A bucket as the bar's legend tells it."""

    name: str
    title: str
    meaning: str
    share: str
    gpu_hours: str


@dataclass(frozen=True)
class Line:
    """A model's ledger, or a finding: cells of a small table."""

    cells: tuple[str, ...]
    bar: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """What the template lays out; '' and () where the report has no such thing."""

    whose: str
    """The owner of a page of its own; '' for the whole report."""
    capacity: str
    sentences: tuple[str, ...]
    bar: str
    shares: tuple[Share, ...]
    closing: str
    tiles: tuple[Tile, ...]
    compared: str
    """What the tiles' changes are against, or why they have none; '' on a page that tells none."""
    models: tuple[Line, ...]
    days: str
    findings: tuple[Line, ...] | None
    finding_count: int

    @property
    def finding_why(self) -> str:
        """Why hours at stake of findings are unknown."""
        return told_whys(cell for line in self.findings or () for cell in line.cells)


def first_screen(tables: Mapping[str, Result], header: Header) -> FirstScreen:
    """All of it, from the tables that the report has."""
    balance = tables.get("gpu_hour_balance")
    whole, models = total(balances(balance, "cluster")), balances(balance, "gpu_model")
    by_day = balances(balance, "day")
    findings = tables.get("finding")
    return FirstScreen(
        whose="",
        capacity=_capacity(whole, models, header),
        sentences=answer(whole, tables, header) if whole and whole.capacity_gpu_hours else (),
        bar=charts.ledger_bar(whole) if whole and whole.capacity_gpu_hours else "",
        shares=_shares(whole) if whole else (),
        closing=_closing(whole) if whole else "",
        tiles=tiles(tables, header, whole, by_day),
        compared=_compared(tables),
        models=tuple(map(_model_line, models)) if len(models) > 1 else (),
        days=charts.days(by_day) if len(by_day) >= DAYS_FOR_A_COURSE else "",
        findings=None if findings is None else finding_lines(findings),
        finding_count=0 if findings is None else findings.rows.height,
    )


def _compared(tables: Mapping[str, Result]) -> str:
    """The window before, as the tiles name it, or why they cannot."""
    rows = tables["period"].rows.filter(pl.col("period") == "before") if "period" in tables else None
    if rows is None or rows.height == 0:
        return f"Change against the window before: {formats.UNKNOWN}; the lake must hold it all, computed alike, in whole hours."
    since, until = rows["since_at"].min(), rows["until_at"].max()
    return f"▲▼ against {formats.value('since_at', since)} to {formats.value('until_at', until)}."


def _capacity(whole: Balance | None, models: Sequence[Balance], header: Header) -> str:
    if whole is None:
        return formats.counted(header.device_count, "GPU")
    named = " · ".join(f"{each.device_count:,} × {each.value or 'unknown model'}" for each in models)
    return f"{named}: {formats.gpu_hours(whole.capacity_gpu_hours)} of capacity"


def _shares(whole: Balance) -> tuple[Share, ...]:
    return tuple(
        Share(
            each.name.removeprefix("allocated_").replace("_", "-"),
            each.title,
            each.meaning,
            formats.percent(whole.share(each.name)),
            formats.significant(whole.of(each.name)),
        )
        for each in BUCKETS
    )


def _closing(whole: Balance) -> str:
    """The sum and by how much it misses capacity, which is computed apart from the buckets."""
    summed = whole.of(*(bucket.name for bucket in BUCKETS))
    return (
        f"The nine add up to {formats.gpu_hours(summed)}; capacity, worked out without them, is "
        f"{formats.gpu_hours(whole.capacity_gpu_hours)}; difference {formats.significant(whole.difference_gpu_hours)}."
        f"{_rounding(whole)}"
    )


def _rounding(whole: Balance) -> str:
    """A note where the shares as printed do not add up to 100; what is below a tenth is not printed as a number."""
    tenths = sum(round(1000 * (whole.share(bucket.name) or 0.0)) for bucket in BUCKETS)
    return "" if tenths == 1000 else f" Each share is rounded on its own, so those printed add up to {tenths / 10:.1f} %."


def _model_line(each: Balance) -> Line:
    held, idle, unknown = bounded(each, *HELD), bounded(each, "allocated_idle"), formats.percent(each.share("unknown"))
    size = (each.value or "unknown", f"{each.device_count:,}", formats.significant(each.capacity_gpu_hours))
    cells = (*size, held, effective(each), idle, unknown)
    return Line(cells, charts.ledger_bar(each) if each.capacity_gpu_hours else "")


def finding_lines(findings: Result) -> tuple[Line, ...]:
    """By code what is not suppressed: the gravest first, of one severity those with the most GPU-hours at stake."""
    told = zip(findings.rows.iter_rows(named=True), findings.reasons, strict=True)
    rows = [(row, reasons.get("gpu_hours", "")) for row, reasons in told if row["suppressed_until"] is None]
    whys = {row["code"]: why for row, why in rows}
    codes = [(code, [row for row, _ in rows if row["code"] == code]) for code in sorted(whys)]
    codes.sort(key=lambda each: (min(_RANKS.get(row["severity"], 0) for row in each[1]), -_at_stake(each[1])))
    return tuple(Line(_finding_cells(code, found, whys[code])) for code, found in codes[:FINDINGS_SHOWN])


def _at_stake(rows: Sequence[Mapping[str, Any]]) -> float:
    return sum(row["gpu_hours"] or 0.0 for row in rows)


def _finding_cells(code: str, rows: Sequence[Mapping[str, Any]], why: str) -> tuple[str, ...]:
    """Code, severity, what it is, how often, GPU-hours (``why`` they are unknown), owners, confidence."""
    first = min(rows, key=lambda row: _RANKS.get(row["severity"], 0))
    is_known = any(row["gpu_hours"] is not None for row in rows)
    hours = formats.significant(_at_stake(rows)) if is_known else Unknown(why or "the rule counts no GPU-hours")
    owners = sorted({row["owner"] for row in rows} - {""})
    named = ", ".join(owners[:2]) + (f" and {len(owners) - 2} more" if len(owners) > 2 else "")
    confidences = ", ".join(sorted({row["confidence"] for row in rows}))
    return (code, first["severity"], first["title"], f"{len(rows):,}", hours, named or formats.UNKNOWN, confidences)
