"""A report to share: no name of anything is left in any of its files, the figures are, and rows can still be told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from page_data import unpacked
from report_tables import Report, report_tables

from gpureport.cli import main
from gpureport.commands.options import read_salt
from gpureport.compute.period.anonymous import anonymise
from gpureport.compute.query import load
from gpureport.values.errors import GpureportError

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NOON = 1_795_176_000
PLANTED = {
    "Hostname": "sentinel-node.corp.example",
    "namespace": "sentinel-namespace",
    "pod": "sentinel-pod-0",
    "container": "sentinel-container",
    "UUID": "GPU-5e471e1a-0000-4000-8000-000000000000",
    "pci_bus_id": "00000000:SE:47.0",
}
SETTINGS = {
    "GPUREPORT_PRICES__GPU_HOUR": '{"all": 2}',
    "GPUREPORT_PRICES__CURRENCY": "EUR",
    "GPUREPORT_OWNERS__TEAM_LABEL": "sentinel.example/team",
    "GPUREPORT_RETIRED": '[{"node": "sentinel-old-node", "since": "2026-11-01"}]',
}
CLUSTER = "sentinel-cluster"
REPORT = ["report", "--since", "2026-11-20"]
SIGNALS = {
    "DCGM_FI_DEV_POWER_USAGE": 100,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0,
    "DCGM_FI_DEV_FB_USED": 1000,
    "DCGM_FI_DEV_XID_ERRORS": 79,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of a GPU that is idle and then fails, whose every name is planted: there are findings that name them."""
    folder = tmp_path_factory.mktemp("lake")
    labels = ",".join(f'{name}="{value}"' for name, value in {**PLANTED, "modelName": "NVIDIA H200", "gpu": "7"}.items())
    lines = []
    for metric, value in SIGNALS.items():
        lines.append(f"# TYPE {metric} gauge")
        lines += [f"{metric}{{{labels}}} {value * (number > 90)} {NOON + 60 * number}" for number in range(180)]
    file = folder / "sentinel.txt"
    file.write_text("\n".join([*lines, "# EOF\n"]))
    for arguments in (["import", str(file), "--cluster", CLUSTER], ["compute", "--date", "2026-11-20"]):
        assert main([*arguments, "--lake", str(folder / "lake")], environ={}, now=NOW) == 0
    return folder / "lake"


@pytest.fixture(scope="module")
def named(lake: Path) -> Iterator[Report]:
    """The report with names, as far as it is asked for."""
    with report_tables(lake, "2026-11-20", now=NOW) as found:
        yield found


class Shared(NamedTuple):
    """What a report prints, its files by name, what is packed in them unpacked, and its database."""

    said: str
    files: dict[str, bytes]
    con: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def shared(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The report without names, made with a secret."""
    out, salt, grid = tmp_path_factory.mktemp("out"), lake.parent / "salt", lake.parent / "sentinel-grid.csv"
    salt.write_text("0123456789abcdef\n")
    grid.write_text("time,grams_per_kwh\n2026-11-01T00:00:00Z,350\n")
    arguments = [*REPORT, "--anonymise", "--facts", "--salt-file", str(salt), "--lake", str(lake), "--out", str(out)]
    with redirect_stdout(StringIO()) as said:
        assert main(arguments, environ={**SETTINGS, "GPUREPORT_CARBON__GRAMS_PER_KWH": str(grid)}, now=NOW) == 0
    found = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    files = {name: unpacked(content) if name.endswith(".html") else content for name, content in found.items()}
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        yield Shared(said.getvalue(), files, con)


def leaks(files: dict[str, bytes]) -> set[tuple[str, str]]:
    """Which planted word stands in which file; of the database its text as a dump, for its file is compressed."""
    words = [CLUSTER, *PLANTED.values(), "sentinel", "5e471e1a"]
    return {(name, word) for name, content in files.items() for word in words if word.lower().encode() in content.lower()}


def dump(con: duckdb.DuckDBPyConnection) -> dict[str, bytes]:
    """Every value of every table of a database."""
    found = con.execute("select table_schema || '.' || table_name from information_schema.tables").fetchall()
    return {table: repr(con.execute(f"from {table}").fetchall()).encode() for (table,) in found}


def test_no_name_is_left_in_any_file(named: Report, shared: Shared) -> None:
    asked = {f"report.{name}" for name in ("finding", "container", "device")}
    named.tables.open_named("; ".join(f"from {table}" for table in asked))
    assert {table for table, _ in leaks(dump(named.con))} >= asked
    assert shared.files.keys() >= {
        *("report.html", "index.html", "report.json", "series.json", "summary.md", "gpureport.duckdb", "tables/focus.parquet"),
        *("csv/finding.csv", "csv/container.csv", "csv/focus.csv"),
    }
    assert leaks(shared.files) == set()
    assert leaks(dump(shared.con)) == set()


def test_figures_and_models_stay_and_the_same_name_has_the_same_pseudonym(named: Report, shared: Shared) -> None:
    figures = "select gpu_model, sum(capacity_gpu_hours), count(*) from report.gpu_hour_balance, report.device group by all"
    energy = "select sum(energy_joules), any_value(gpu_model), count(*) from report.device"
    for each in (figures, energy):
        assert named.rows(each) == shared.con.execute(each).fetchall()
    [(namespace, pod)] = shared.con.execute("select distinct namespace, pod from report.container").fetchall()
    [(of_facts,)] = shared.con.execute("select distinct pod from facts.container_hour").fetchall()
    by_ledger = shared.con.execute("select distinct namespace from report.gpu_hour_ledger where namespace <> ''").fetchall()
    assert re.fullmatch("x[0-9a-f]{12}", pod)
    assert (of_facts, by_ledger) == (pod, [(namespace,)])


def test_words_of_gpureports_own_stay() -> None:
    """No names: the page finds pending GPUs by 'gpu', sizes and bounds by their words; '(unallocated or unknown)' is no team."""
    with duckdb.connect() as con:
        con.execute("create schema report")
        own = {"resource": "gpu", "size": "2-4", "at_least": "p95", "outcome": "failed", "hours_method": "x", "dimension": "team"}
        values = ", ".join(f"'{value}' as {name}" for name, value in {**own, "value": "(unallocated or unknown)"}.items())
        con.execute(f"create table report.pod_wait as select {values}, 'acme.com/gpu' as parent, 'secret' as cluster")
        anonymise(con, load(), "0123456789abcdef")
        [found] = con.execute("from report.pod_wait").fetchall()
    assert found[:7] == (*own.values(), "(unallocated or unknown)")
    assert not {"acme.com/gpu", "secret"}.intersection(found)


def test_a_finding_without_its_evidence_is_told_by_its_title(shared: Shared) -> None:
    [told] = [line for line in shared.said.splitlines() if line.startswith("GPU health: 1 GPU")]
    assert re.fullmatch(r".* / GPU 7: GPU errors \(high confidence\)", told)


NAMES = "select cluster, namespace, pod, container from "


def test_pseudonyms_are_another_reports_only_with_its_secret(
    named: Report, shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    salts = []

    def salted(*given: object) -> None:
        salts.append(str(given[-1]))
        raise GpureportError

    monkeypatch.setattr("gpureport.commands.work.reporting.report", salted)
    for _ in range(2):
        assert main([*REPORT, "--anonymise"], environ={}, now=NOW) == 1
    (tmp_path / "salt").write_text("0123456789abcdef")
    [of_shared] = shared.con.execute(f"{NAMES} report.container").fetchall()
    assert pseudonyms(named, read_salt(tmp_path / "salt")) == [of_shared]
    assert len({of_shared, *(found for salt in salts for found in pseudonyms(named, salt))}) == 3


def pseudonyms(named: Report, salt: str) -> list[tuple[str, ...]]:
    """Cluster, namespace, pod and container of each row of a report with names, as they are called with a salt."""
    named.tables.open_named("from report.container")
    with duckdb.connect() as con:
        con.execute("create schema report")
        con.register("named", named.con.sql("from report.container").to_arrow_table())
        con.execute("create table report.container as from named")
        anonymise(con, load(), salt)
        return con.execute(f"{NAMES} report.container").fetchall()


def test_a_secret_that_could_be_guessed_is_refused(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "salt").write_text("short\n")
    arguments = [*REPORT, "--lake", str(lake), "--anonymise", "--salt-file", str(tmp_path / "salt")]
    assert main(arguments, environ={}, now=NOW) == 2
    assert "could be guessed" in capsys.readouterr().err
    assert main([*arguments[:-2], "--by", "namespace"], environ={}, now=NOW) == 2
