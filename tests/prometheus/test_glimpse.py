"""A plan from label values reads what a plan from all series reads, and notices where it cannot keep a device whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from gpureport.collect.export import Exported, ExportSettings, export_day
from gpureport.collect.export.planning import plan_from_glimpse, plan_from_list
from gpureport.collect.sources.prometheus import Labelled, Matcher, glimpse, plan_groups, probe
from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.catalog import load_catalog
from gpureport.values.series import Labels
from gpureport.values.window import Window

from . import churn, moved
from .samples import connect
from .test_paths import assert_same_rows
from .test_plan_groups import DEVICE_METRICS, KUBE_METRICS, UUID_LABELS, device_of, fleets, is_match, members

METRICS = [*DEVICE_METRICS, *KUBE_METRICS]


@dataclass(frozen=True)
class Indexed(Labelled):
    """A server's index as a list of series, every question answered by looking at each."""

    known: Sequence[Labels] = ()

    def names(self, matchers: Sequence[Matcher]) -> frozenset[str]:
        return frozenset(name for labels in self.series(matchers) for name, value in labels.items() if value)

    def values(self, label: str, matchers: Sequence[Matcher] = ()) -> list[str]:
        return sorted({value for labels in self.series(matchers) if (value := labels.get(label, ""))})

    def series(self, matchers: Sequence[Matcher]) -> list[Labels]:
        return [labels for labels in self.known if all(is_match(matcher, labels) for matcher in matchers)]

    def mean_series_counts(self, label: str, matchers: Sequence[Matcher]) -> dict[str, float]:
        return Counter(labels.get(label, "") for labels in self.series(matchers))


@settings(max_examples=200)
@given(fleets())
def test_every_series_is_in_exactly_one_group_whatever_one_metric_shows(series: list[dict[str, str]]) -> None:
    connection = connect("http://nowhere.invalid")
    seen = glimpse(Indexed(connection, Window.of_day(date(2026, 1, 1)), series), METRICS, (), device_of, UUID_LABELS)
    groups = plan_groups(seen.outline, 1, 1) if seen else []
    found = Counter(frozenset(labels.items()) for group in groups for labels in members(group, series))
    assert found == Counter(frozenset(labels.items()) for labels in series)


def settings_of(url: str, path: str = "auto", **more: Any) -> ExportSettings:
    prometheus = PrometheusSettings.model_validate({"url": url, "read_path": path, "max_concurrency": 1, **more})
    return ExportSettings(prometheus, {}, load_catalog(), "lab", samples_per_group=1, keep_raw=True)


def exported(url: str, lake: Path, path: str) -> Exported:
    return export_day(settings_of(url, path), lake, moved.DAY, lambda done, total: None)


def test_a_device_in_two_groups_is_noticed_and_read_as_one(fleet_prometheus: str, tmp_path: Path) -> None:
    connection = connect(fleet_prometheus)
    chosen = settings_of(fleet_prometheus)
    guessed = plan_from_glimpse(connection, probe(connection), chosen, moved.DAY)
    certain = plan_from_list(connection, chosen, moved.DAY)
    assert guessed is not None
    assert len(guessed.groups) > len(certain.groups)  # the card that moved is torn apart
    assert guessed.reading == certain.reading
    assert guessed.reading.exporters
    one = exported(fleet_prometheus, tmp_path / "one", "remote-read")
    other = exported(fleet_prometheus, tmp_path / "other", "matrix")
    assert (one.series_count, one.sample_count) == (other.series_count, other.sample_count) == (len(moved.SERIES), 120 * 8)
    tables = ("device_sample", "sample", "owner_label", "device_label", "raw_sample", "series", "device_signal")
    assert_same_rows(tmp_path / "one", tmp_path / "other", dict.fromkeys(tables, "*"))


def test_a_glimpse_is_for_servers_of_remote_read(fleet_prometheus: str) -> None:
    connection = connect(fleet_prometheus, read_path="matrix")
    chosen = settings_of(fleet_prometheus, "matrix")
    assert plan_from_glimpse(connection, probe(connection), chosen, moved.DAY) is None


def test_an_outline_of_another_clusters_series_is_empty(fleet_prometheus: str) -> None:
    connection = connect(fleet_prometheus)
    chosen = settings_of(fleet_prometheus, match={"cluster": "elsewhere"})
    assert plan_from_glimpse(connection, probe(connection), chosen, moved.DAY) is None


def test_a_day_without_samples_has_no_outline(fleet_prometheus: str) -> None:
    connection = connect(fleet_prometheus)
    assert plan_from_glimpse(connection, probe(connection), settings_of(fleet_prometheus), date(2020, 1, 1)) is None


def test_pods_that_follow_each_other_do_not_make_a_group_large(fleet_prometheus: str) -> None:
    connection = connect(fleet_prometheus)
    chosen = settings_of(fleet_prometheus)
    plan = plan_from_glimpse(connection, probe(connection), chosen, churn.DAY)
    assert plan is not None
    # Four series at a time for the day and half an hour around it; 48 series would be twelve times as many.
    expected = sum(query.expected_samples for group in plan.groups for query in group.queries)
    assert churn.SAMPLE_COUNT <= expected <= 1.1 * churn.SAMPLE_COUNT
