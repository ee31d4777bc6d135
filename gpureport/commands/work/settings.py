"""Settings of each stage from a configuration, including grams of CO2e per kWh, and the progress bar of a long stage."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpureport.compute.identity import MadeWith, made_with
from gpureport.compute.period import ReportSettings
from gpureport.compute.query import load
from gpureport.config import Config, findings
from gpureport.config.meaning import Price
from gpureport.lake import Lake, open_lake
from gpureport.schedulers.model import Rules
from gpureport.values.catalog import Catalog, load_catalog
from gpureport.values.errors import UsageError
from gpureport.values.runtime.parallel import Progress, no_progress

if TYPE_CHECKING:
    from gpureport.compute.day import ComputeSettings


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console  # takes a fiftieth of a second, and a nightly job does not need it
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


REPORT_THREADS = 1
"""Threads of a report: several would vary the order, and so the ninth digit, of sums. The same lake gives the same bytes."""


def catalog_of(config: Config) -> Catalog:
    """Return the catalog, with the configured rows and labels."""
    return load_catalog(config.signals, config.labels)


def reported_lake(config: Config) -> Lake:
    """Return the lake, or its part of the one configured cluster (report.cluster)."""
    lake = open_lake(config.lake)
    return lake.of_cluster(config.report.cluster) if config.report.cluster else lake


def compute_settings(config: Config) -> ComputeSettings:
    """Return the settings that facts depend on."""
    from gpureport.compute.day import ComputeSettings  # slow to import; queries of a lake do not need it

    return ComputeSettings(
        memory_threshold_ratio=config.saturation.memory_threshold_ratio,
        idle_watts=config.power.idle_watts,
        quota_rules=quota_rules(config),
        memory_limit=config.compute.memory_limit,
        threads=config.compute.threads,
    )


def facts_made_with(config: Config) -> MadeWith:
    """Return versions and settings of facts under this configuration."""
    return made_with(load(), compute_settings(config).meaning)


def quota_rules(config: Config) -> Rules:
    """Return the settings of the quota systems."""
    quota = config.quota
    return Rules(
        quota.nos.gpu_memory_gb_per_gpu,
        quota.koordinator.enable_min_quota_scale,
        usage_half_life_hours=quota.kueue.usage_half_life_hours,
    )


def report_settings(config: Config) -> ReportSettings:
    """Return the settings that the figures of a report depend on, apart from the facts."""
    links = {model: link.model_dump() for model, link in sorted(config.links.items())}
    return ReportSettings(
        config.report.figure_min_coverage_ratio,
        config.saturation.enabled,
        links,
        config.report.idle_policy,
        findings.parameters(config.thresholds, config.suppressions, config.saturation.memory_threshold_ratio),
        prices=_prices(config),
        budgets=config.prices.budgets,
        currency=config.prices.currency_code,
        carbon=_carbon(config),
        team_label=config.owners.team_label,
        timezone=config.report.timezone,
        retired=[each.model_dump(mode="json") for each in config.retired],
    )


def _prices(config: Config) -> dict[str, Any]:
    """Return the prices, each by the days from which it is in force; empty if none is configured."""
    hours = {model: _dated(price) for model, price in config.prices.gpu_hour.items()}
    kwh = config.prices.kwh
    return {**({"gpu_hour": hours} if hours else {}), **({"kwh": _dated(kwh)} if kwh is not None else {})}


def _dated(price: Price) -> dict[str, float]:
    """Return amounts by day; a single amount is in force from the earliest date."""
    return {str(day): amount for day, amount in (price if isinstance(price, dict) else {date.min: price}).items()}


def _carbon(config: Config) -> dict[str, Any]:
    """Return the factors of energy; empty if nothing that needs them is configured."""
    carbon = config.carbon
    grams = [*intensities("location", carbon.grams_per_kwh), *intensities("market", carbon.market_grams_per_kwh)]
    return {"pue": carbon.pue, "grams_per_kwh": grams} if grams or _prices(config) or carbon.pue != 1 else {}


HEADER = ("time", "grams_per_kwh")
_ALWAYS = "0001-01-01T00:00:00"


def intensities(basis: str, given: float | Path | None) -> list[dict[str, str | float]]:
    """Return rows of basis, start_at (UTC) and grams_per_kwh, each in force until the next; none if nothing is given.

    A CSV file has the columns time (RFC 3339) and grams_per_kwh. UsageError where it has not, or cannot be read.
    """
    if given is None:
        return []
    if not isinstance(given, Path):
        return [{"basis": basis, "start_at": _ALWAYS, "grams_per_kwh": given}]
    return [{"basis": basis, "start_at": start, "grams_per_kwh": grams} for start, grams in _read(given)]


def _read(path: Path) -> list[tuple[str, float]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != HEADER:
                raise UsageError(f"{path}: the first line must be {','.join(HEADER)}")
            found = sorted(_row(path, number, row) for number, row in enumerate(rows, start=2))
            if twice := [one for (one, _), (other, _) in pairwise(found) if one == other]:
                raise UsageError(f"{path}: {twice[0]} occurs twice; give one number for each time")
            return found
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check carbon in the configuration") from None
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{str(path)!r} is not a CSV file ({error}); check carbon in the configuration") from None


def _row(path: Path, number: int, row: dict[str, str]) -> tuple[str, float]:
    try:
        at = datetime.fromisoformat(row["time"])
        utc = at.astimezone(UTC) if at.tzinfo else at
        grams = float(row["grams_per_kwh"])
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"{path}, line {number}: {row} is not a time and a number; write 2026-11-20T00:00:00Z,380") from None
    if not 0 <= grams < float("inf"):
        raise UsageError(f"{path}, line {number}: {grams} grams per kWh; give 0 or more")
    return utc.replace(tzinfo=None).isoformat(), grams
