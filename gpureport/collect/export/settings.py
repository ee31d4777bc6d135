"""Settings of an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from gpureport.collect.sources.prometheus import Matcher, PrometheusSettings
from gpureport.values.catalog import Catalog
from gpureport.values.window import Window

MARGIN = timedelta(minutes=15)
"""Samples around the day that tell how far its first and last ones reach."""


@dataclass(frozen=True)
class ExportSettings:
    """Prometheus server, query limits and pace of an export."""

    prometheus: PrometheusSettings
    environ: Mapping[str, str]
    catalog: Catalog
    cluster: str
    samples_per_group: int
    keep_raw: bool

    @property
    def scope(self) -> tuple[Matcher, ...]:
        """Label matchers of every query: on a server of several clusters, the cluster's label."""
        return tuple(Matcher(name, "=", value) for name, value in sorted(self.prometheus.match.items()))


def window_asked(day: date) -> Window:
    """The day with what is read around it."""
    return Window.of_day(day).widened(MARGIN)
