"""Header of a report: period, clusters, versions, coverage, sources, checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from gpureport import __version__
from gpureport.compute.query import Failure
from gpureport.values.tables import SCHEMA_VERSION
from gpureport.values.window import Window, rfc3339

_NO_SIGNALS = ("any", "workload")
"""Values of report.coverage.signal that mean devices and their holders, not a signal."""


@dataclass(frozen=True)
class Source:
    """A source, and how complete its answers were."""

    cluster: str
    day: str
    server: str
    read_path: str
    metric_count: int
    absent_count: int
    sample_count: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Unseen:
    """Device time without data, by its likely reason."""

    reason: str
    seconds: float
    node_count: int


@dataclass(frozen=True)
class Absent:
    """Signals that no device of the report ever has, by their likely reason."""

    reason: str
    signals: tuple[str, ...]


@dataclass(frozen=True)
class Header:
    """Metadata for the first screen; coverage refers to devices and time with evidence that they exist (report.coverage)."""

    window: Window
    generated_at: datetime
    clusters: tuple[str, ...]
    device_count: int
    expected_seconds: float
    observed_seconds: float
    config_hash: str
    sources: tuple[Source, ...]
    failures: tuple[Failure, ...]
    settings: Mapping[str, Any]
    catalog_versions: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    absent: tuple[Absent, ...] = ()
    signal_count: int = 0
    notes: tuple[str, ...] = ()
    """Days whose facts were computed with other versions or settings."""
    agreements: tuple[str, ...] = ()
    """Number of snapshots in which the counts of each cluster agree with its API server."""
    version: str = __version__

    @property
    def timezone(self) -> str:
        """Time zone of the report's days and hours."""
        return str(self.settings.get("timezone", "UTC"))

    @property
    def coverage_ratio(self) -> float | None:
        """Observed ÷ expected device-seconds; None without a device.

        An hour that the window cuts counts fully, so observed time may exceed expected time: the ratio is then 1.
        """
        if not self.expected_seconds:
            return None
        ratio = self.observed_seconds / self.expected_seconds
        return ratio if self.window.is_whole_hours else min(1.0, ratio)

    @property
    def unknown_ratio(self) -> float | None:
        """Share of expected device-seconds without data; None without a device."""
        return None if self.coverage_ratio is None else max(0.0, 1.0 - self.coverage_ratio)

    @property
    def sample_count(self) -> int:
        """Number of samples behind the report."""
        return sum(source.sample_count for source in self.sources)

    @property
    def absent_count(self) -> int:
        """Number of signals that no device has."""
        return sum(len(each.signals) for each in self.absent)

    @property
    def lacks(self) -> tuple[str, ...]:
        """A sentence for each cluster with missing days in the lake."""
        day_count = len(list(self.window.days()))
        held = {cluster: len({each.day for each in self.sources if each.cluster == cluster}) for cluster in self.clusters}
        texts = {
            cluster: f"{days} of the period's {day_count} UTC days" if days else "no telemetry of the period"
            for cluster, days in held.items()
        }
        return tuple(f"{cluster}: the lake has {texts[cluster]}." for cluster, days in held.items() if days < day_count)

    def as_dict(self) -> dict[str, Any]:
        """Return the header for report.json; without the current time, so that the same lake gives the same bytes."""
        return {
            "window": {"start_at": rfc3339(self.window.start_at), "end_at": rfc3339(self.window.end_at)},
            "clusters": list(self.clusters),
            "versions": {"gpureport": self.version, "catalog": list(self.catalog_versions), "lake_schema": SCHEMA_VERSION},
            "device_count": self.device_count,
            "coverage": {
                "expected_device_seconds": self.expected_seconds,
                "observed_device_seconds": self.observed_seconds,
                "coverage_ratio": self.coverage_ratio,
                "unknown_ratio": self.unknown_ratio,
                "unknown_device_seconds": {each.reason: each.seconds for each in self.unseen},
                "signal_count": self.signal_count,
                "absent_signals": {each.reason: each.signals for each in self.absent},
            },
            "config_hash": self.config_hash,
            "settings": dict(self.settings),
            "sources": [vars(source) for source in self.sources],
            "failed_checks": [str(failure) for failure in self.failures],
            "notes": list(self.notes),
            "agreements": list(self.agreements),
        }


def read_header(
    con: duckdb.DuckDBPyConnection,
    window: Window,
    generated_at: datetime,
    config_hash: str,
    failures: tuple[Failure, ...],
    settings: Mapping[str, Any],
) -> Header:
    """Read the header's figures from report.device, report.coverage and lake.source of an open report database."""
    ((device_count,),) = con.execute("select count(distinct (cluster, device_uuid)) from report.device").fetchall()
    found = "select cluster from report.device union select cluster from report.coverage order by cluster"
    # Without a GPU, take the clusters of the sources.
    clusters = con.execute(found).fetchall() or con.execute("select distinct cluster from lake.source order by all").fetchall()
    catalogs = con.execute("select distinct catalog_version from lake.source order by all").fetchall()
    timed = "select sum(expected_device_seconds), sum(observed_device_seconds) from report.coverage where signal = 'any'"
    ((expected, observed),) = con.execute(timed).fetchall()
    named = f"select count(distinct signal) from report.coverage where signal not in {_NO_SIGNALS}"
    ((signal_count,),) = con.execute(named).fetchall()
    return Header(
        window=window,
        generated_at=generated_at,
        clusters=tuple(row[0] for row in clusters),
        device_count=int(device_count),
        expected_seconds=float(expected or 0),
        observed_seconds=float(observed or 0),
        config_hash=config_hash,
        sources=_sources(con),
        failures=failures,
        settings=settings,
        catalog_versions=tuple(filter(None, (row[0] for row in catalogs))),
        unseen=_unseen(con),
        absent=_absent(con),
        signal_count=int(signal_count),
        agreements=_agreements(con),
    )


def _unseen(con: duckdb.DuckDBPyConnection) -> tuple[Unseen, ...]:
    """Return unknown device time by reason, the longest first; rows without a reason are left out."""
    rows = con.execute(
        """
        select reason, round(sum(unknown_device_seconds), 3) as seconds, count(distinct (cluster, node_name))
        from report.coverage where signal = 'any' and reason != '' group by reason order by seconds desc, reason
        """
    ).fetchall()
    return tuple(Unseen(*row) for row in rows)


def _absent(con: duckdb.DuckDBPyConnection) -> tuple[Absent, ...]:
    rows = con.execute(
        f"""
        with absent as (
            select distinct on (signal) signal, reason
            from report.coverage where signal not in {_NO_SIGNALS} group by signal, reason
            qualify sum(sum(observed_device_seconds)) over (partition by signal) = 0
            order by signal, sum(unknown_device_seconds) desc, reason desc
        )
        select reason, list(signal order by signal) from absent group by reason order by count(*) desc, reason
        """
    ).fetchall()
    return tuple(Absent(reason, tuple(signals)) for reason, signals in rows)


def _agreements(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    rows = con.execute(
        """
        select cluster, snapshot_count - differing_snapshot_count, snapshot_count from report.api_agreement
        where compared = 'all' order by cluster
        """
    ).fetchall()
    return tuple(f"{cluster} agrees with its API server in {same:,} of {all_:,} snapshots." for cluster, same, all_ in rows)


def _sources(con: duckdb.DuckDBPyConnection) -> tuple[Source, ...]:
    rows: list[tuple[Any, ...]] = con.execute(
        """
        select
            cluster, date::varchar as day, server, read_path, count(*), count(*) filter (where series_count = 0),
            sum(sample_count)::bigint, list_sort(list_distinct(flatten(list(warnings))))
        from lake.source
        where kind <> 'kubernetes'
        group by all
        order by cluster, day, server, read_path
        """
    ).fetchall()
    return tuple(Source(*(*row, tuple(warnings or ()))) for *row, warnings in rows)
