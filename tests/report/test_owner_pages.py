"""Pages by owner: each has what is its own, files are named harmlessly whatever a label says."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from built_once import built_once
from hypothesis import given
from hypothesis import strategies as st

from gpureport.cli import main
from gpureport.lake import open_lake
from gpureport.query import Query, load
from gpureport.report import write_report
from gpureport.report.ground import _joules
from gpureport.report.ledger import BUCKETS, Balance
from gpureport.report.owner_pages import _sentences, _tiles, file_name
from gpureport.report.results import Result
from gpureport.tables.state import NAMESPACE

from .conftest import NOW, a_header
from .page import Page

WINDOW = ["--since", "2026-11-20T23:51:40Z", "--until", "2026-11-20T23:59:40Z"]
HOSTILE = [
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "'; drop table x; --",
    "..",
    "",
    "CON",
    "a/b",
    "ä",
]


@pytest.fixture(scope="session")
def pages(demo: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's report with a page for each namespace; to read only."""

    def build(folder: Path) -> None:
        arguments = ["report", *WINDOW, "--by", "namespace", "--lake", str(demo / "lake"), "--out", str(folder / "out")]
        assert main(arguments, environ={}, now=NOW) == 0

    return built_once("owner-pages", build, request, tmp_path_factory) / "out"


def test_each_namespace_has_a_page_with_what_is_its_own(pages: Path) -> None:
    assert sorted(path.name for path in (pages / "by").iterdir()) == [
        "data.html",
        "notebooks.html",
        "research.html",
        "serving.html",
    ]
    page = Page(pages / "by/research.html")
    assert "What became of the GPU-hours of research" in page.text
    assert "(1 of 4 by hours)" in page.text  # alone for half of the time, then one of four
    assert {row[1].text for row in page.sections["container"].rows[2:]} == {"research"}
    assert "vllm" not in page.text
    assert [link for link in page.references if not link.startswith("#") or link[1:] not in page.ids] == []


def test_the_report_leads_to_the_pages(pages: Path) -> None:
    outside = [link for link in Page(pages / "report.html").references if not link.startswith("#")]
    assert sorted(outside) == ["by/data.html", "by/notebooks.html", "by/research.html", "by/serving.html"]
    assert all((pages / link).exists() for link in outside)


def test_pages_of_an_earlier_report_do_not_stay(
    pages: Path, con: duckdb.DuckDBPyConnection, queries: dict[str, Query], tmp_path: Path
) -> None:
    out = shutil.copytree(pages, tmp_path / "out")
    write_report(con, queries, a_header(), out)
    assert not (out / "by").exists()


def test_namespaces_of_one_team_share_its_page(demo: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(demo / "lake", tmp_path / "lake")
    at = datetime(2026, 11, 20, 23, 55, tzinfo=UTC)
    teams = {"research": {"team": "ml"}, "notebooks": {"team": "ml"}, "serving": {"team": "apps"}, "data": {}}
    rows = [
        {"observed_at": at, "namespace": name, "namespace_uid": f"u-{name}", "created_at": at, "labels": list(labels.items())}
        for name, labels in teams.items()
    ]
    with open_lake(lake).change() as change:
        change.observe("h200-recording", at, {"namespace": pa.Table.from_pylist(rows, NAMESPACE.schema)})
    out = tmp_path / "out"
    assert main(["report", *WINDOW, "--by", "team", "--lake", str(lake), "--out", str(out)], environ={}, now=NOW) == 0
    assert sorted(path.name[:6] for path in (out / "by").iterdir()) == ["apps.h", "ml.htm", "nobody"]
    page = Page(out / "by/ml.html")
    assert "What became of the GPU-hours of ml" in page.text
    assert {row[1].text for row in page.sections["container"].rows[2:]} == {"notebooks", "research"}
    assert "namespaces without an owner" in next((out / "by").glob("nobody*")).read_text()


def test_an_owner_without_sm_activity_is_not_called_ineffective() -> None:
    busy = Balance("a", 0, 4.0, 0.0, {bucket.name: 4.0 * (bucket.name == "allocated_busy") for bucket in BUCKETS})
    assert _sentences(busy, 4.0, 8.0, "1 of 2")[0] == (
        "4 GPU-h held, 50.0 % of all that was held (1 of 2 by hours); "
        "how much of it was effective is unknown, for SM activity is not measured."
    )
    assert [tile.value for tile in _tiles(busy, None) if tile.title == "Effective"] == ["—"]


def test_a_label_that_no_namespace_bears_is_a_sentence(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["report", *WINDOW, "--by", "team", "--lake", str(demo / "lake"), "--out", str(tmp_path)], environ={}, now=NOW) == 2
    )
    assert "no namespace bore the label 'team' in this window" in capsys.readouterr().err


def test_hostile_labels_are_harmless_files_and_stay_apart() -> None:
    names = [file_name(label) for label in HOSTILE]
    assert len(set(names)) == len(HOSTILE)
    assert [name for name in names if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name)] == []
    assert file_name("team-a") == "team-a"


@given(st.text(max_size=300))
def test_any_label_is_a_short_plain_name(label: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,68}", file_name(label))


def test_teams_that_only_kube_state_metrics_tells_have_pages(tmp_path: Path) -> None:
    """As the report's tables name them: no snapshot is needed."""
    device = 'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{0}",Hostname="n",namespace="{0}",pod="p",container="c"}} 100 {1}'
    label = 'kube_namespace_labels{{namespace="{0}",label_team_name="{2}"}} 1 {1}'
    noon = 1_795_176_000
    lines = [
        line.format(namespace, noon + 60 * minute, team)
        for line in (device, label)
        for namespace, team in (("a", "red"), ("b", "red"), ("c", "blue"))
        for minute in range(5)
    ]
    (tmp_path / "metrics.txt").write_text("\n".join([*lines, "# EOF", ""]))
    lake, window = ["--lake", str(tmp_path / "lake")], ["--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T13:00:00Z"]
    assert main(["import", str(tmp_path / "metrics.txt"), *lake], environ={}, now=NOW) == 0
    assert main(["compute", "--date", "2026-11-20", *lake], environ={}, now=NOW) == 0
    assert main(["report", *window, "--by", "team/name", *lake, "--out", str(tmp_path / "out")], environ={}, now=NOW) == 0
    assert sorted(path.name for path in (tmp_path / "out" / "by").iterdir()) == ["blue.html", "red.html"]


def test_energy_above_idle_is_a_lower_bound_where_no_gpu_was_ever_seen_idle() -> None:
    """The lowest that a GPU drew while it was held is at least its idle baseline: 0 above it is not nothing."""
    rows = [("p", 0.0, 0.0, "lowest_seen"), ("q", 3600.0, 0.0, "observed"), ("r", None, None, "unknown")]
    names = ("pod", "active_joules", "held_joules", "idle_source")
    told = [
        dict(zip(names, row, strict=True)) | {"cluster": "c", "namespace": "n", "pod_uid": "", "container": "m"} for row in rows
    ]
    power = Result(load()["report.container_power"], pl.DataFrame(told), {})
    own = {key[2]: each.told for key, each in _joules(power).items()}
    assert own == {"p": "≥ 0 Wh", "q": "1 Wh", "r": "—"}
    whole = Balance("a", 0, 4.0, 0.0, {bucket.name: 4.0 * (bucket.name == "effective") for bucket in BUCKETS})
    (tile,) = (each for each in _tiles(whole, power) if each.title == "Energy above idle")
    assert (tile.value, tile.detail) == ("≥ 1 Wh", "of 2 of 3 devices")
