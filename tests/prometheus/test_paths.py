"""Remote read, raw matrix and VictoriaMetrics' export give the same samples, and the same lake, as the file they came from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import duckdb
import pytest

from gpureport.collect.export import Exported, ExportSettings, export_day
from gpureport.collect.file_import import import_files
from gpureport.collect.sources.prometheus import Matcher, probe, read
from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.catalog import load_catalog
from gpureport.values.series import METRIC_LABEL
from gpureport.values.window import Window

from .conftest import RECORDING
from .samples import Sample, Series, connect, rows_of, rows_of_text

DAY = date(2026, 11, 20)
EVERYTHING = Matcher(METRIC_LABEL, "=~", "DCGM_.+|kube_.+")
TABLES = dict.fromkeys(("device_sample", "sample", "owner_label", "raw_sample"), "*")
SOURCE = {"source": "* exclude (kind, server, read_path)"}


Rows = dict[Series, list[Sample]]


@pytest.fixture(scope="module")
def rows_of_the_file(recording_text: str) -> Rows:
    return {series: sorted(rows) for series, rows in rows_of_text(recording_text).items()}


def test_every_path_gives_the_samples_of_the_file(path_and_url: tuple[str, str], rows_of_the_file: Rows) -> None:
    path, url = path_and_url
    connection = connect(url, read_path=path)
    reading = read(connection, probe(connection), [EVERYTHING], Window.of_day(DAY))
    found = rows_of(reading.batch)
    assert found.keys() == rows_of_the_file.keys()
    assert all(sorted(found[series]) == rows for series, rows in rows_of_the_file.items())


@pytest.mark.parametrize(
    ("fixture", "path", "flavour"),
    [
        ("prometheus2", "remote-read", "Prometheus"),
        ("prometheus3", "remote-read", "Prometheus"),
        ("victoria", "victoria-metrics", "VictoriaMetrics"),
    ],
)
def test_probing_finds_the_fastest_path(request: pytest.FixtureRequest, fixture: str, path: str, flavour: str) -> None:
    server = probe(connect(request.getfixturevalue(fixture)))
    assert (server.read_path, server.flavour) == (path, flavour)


def test_the_version_and_external_labels_are_found(prometheus2: str) -> None:
    server = probe(connect(prometheus2))
    assert server.version.startswith("2.")
    assert server.external_labels == {"replica": "r0", "region": "north"}


def exported_lake(url: str, path: str, lake: Path, samples_per_group: int = 6_000_000, concurrency: int = 1) -> Exported:
    prometheus = PrometheusSettings.model_validate({"url": url, "read_path": path, "max_concurrency": concurrency})
    settings = ExportSettings(prometheus, {}, load_catalog(), "lab", keep_raw=True, samples_per_group=samples_per_group)
    return export_day(settings, lake, DAY, lambda done, total: None)


@pytest.fixture(scope="session")
def imported_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("imported")
    import_files(lake, [RECORDING], "lab", load_catalog())
    return lake


def assert_same_rows(one: Path, other: Path, tables: Mapping[str, str]) -> None:
    """Of tables, each with what is looked at of it."""
    with duckdb.connect() as con:
        for table, columns in tables.items():
            left, right = (
                f"(select {columns} from read_parquet('{lake}/{table}/**/*.parquet', hive_partitioning=true))"
                for lake in (one, other)
            )
            extra = f"({left} except all {right}) union all ({right} except all {left})"
            [(count,)] = con.sql(f"select count(*) from ({extra})").fetchall()
            assert count == 0, f"{table}: {count} rows differ"


def test_every_path_fills_the_lake_as_the_file_does(path_and_url: tuple[str, str], imported_lake: Path, tmp_path: Path) -> None:
    path, url = path_and_url
    exported_lake(url, path, tmp_path)
    assert_same_rows(tmp_path, imported_lake, {**TABLES, **SOURCE, "series": "* exclude (external_labels)"})


def test_groups_and_worker_processes_change_nothing(prometheus2: str, imported_lake: Path, tmp_path: Path) -> None:
    exported_lake(prometheus2, "auto", tmp_path, samples_per_group=1, concurrency=2)
    assert len(list(tmp_path.glob("series/**/*.parquet"))) > 1
    assert_same_rows(tmp_path, imported_lake, TABLES)


def test_external_labels_are_kept_apart_from_a_series_own(prometheus2: str, tmp_path: Path) -> None:
    exported_lake(prometheus2, "remote-read", tmp_path)
    with duckdb.connect() as con:
        query = f"select external_labels, count(labels['replica']) from '{tmp_path}/series/**/*.parquet' group by all"
        assert con.sql(query).fetchall() == [({"replica": "r0", "region": "north"}, 0)]
