"""report.html as a parser reads it: tabs, links, rows within it, hostile names, pages of teams."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import payloads

from gpureport.cli import main
from gpureport.compute.query import load
from gpureport.lake import open_lake
from gpureport.report.page import file_name
from gpureport.report.page.embedded import Column, environment, packed
from gpureport.report.page.grids import Grid, _worded, grids
from gpureport.report.page.tables import opened_tables
from gpureport.report.page.words import TABS, Money, own_columns, tables_of_page
from gpureport.values.tables import TABLE_BY_NAME

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
ANSWERS = ("Capacity use", "Largest waste", "GPUs to return", "Pending and starved", "GPU health", "Cost")


@pytest.fixture(scope="module")
def page(demo: Path) -> Page:
    return Page(demo / "report.html")


def rows_within(page: Page) -> dict[str, dict[str, Any]]:
    """Every table in the page, unpacked."""
    return {name: found for name, found in payloads(page.source).items() if "rows" in found}


def test_the_six_answers_come_first(page: Page, demo: Path) -> None:
    positions = [page.source.index(f"<h3>{title}</h3>") for title in ANSWERS]
    assert positions == sorted(positions)
    summary = (demo / "summary.md").read_text()
    assert [title for title in ANSWERS if f"- **{title}**: " not in summary] == []


def test_every_row_of_the_reports_tables_is_in_the_file(page: Page, demo: Path) -> None:
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        held = {
            name: con.execute(f"select count(*) from report.{name}").fetchone()
            for (name,) in con.execute(
                "select table_name from information_schema.tables where table_schema = 'report'"
            ).fetchall()
        }
        container = held["container"]
    shown = {name: data["rows"] for name, data in rows_within(page).items()}
    assert shown["containers"] == container[0] if container else None
    assert {name: rows for name, rows in shown.items() if name in held and (rows,) != held[name]} == {}


def test_a_packed_column_is_what_the_database_has(page: Page, demo: Path) -> None:
    data = {column["name"]: column for column in rows_within(page)["containers"]["columns"]}
    pods = [data["pod"]["words"][number] for number in data["pod"]["values"]]
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        expected = dict(con.execute("select pod, sm_active_avg from report.container").fetchall())
    found = dict(zip(pods, data["sm_active_avg"]["values"], strict=True))
    assert found == {pod: None if value is None else pytest.approx(value, rel=5e-3) for pod, value in expected.items()}


def test_codes_of_the_files_are_words_on_the_page(page: Page, demo: Path) -> None:
    columns = {column["name"]: column for column in rows_within(page)["coverage"]["columns"]}
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        codes = {code for (code,) in con.execute("select distinct signal from report.coverage").fetchall()}
    assert {"gpu_util_ratio", "fb_used_bytes"} <= codes and len(columns["signal"]["words"]) == len(codes)
    assert {"GPU utilization", "framebuffer used"} <= {*columns["signal"]["words"]}
    texts = {
        f"{name} {column['name']}": [text for text in column["words"] if text and re.search("[a-z]_[a-z]", text)]
        for name, data in rows_within(page).items()
        for column in data["columns"]
        if "words" in column and column["name"] not in ("evidence", "rule", "sql", "thresholds", "source_metrics", "action")
    }
    assert {name: found for name, found in texts.items() if found} == {}


def test_abbreviated_reasons_have_labels() -> None:
    codes = pl.DataFrame({"reason": ["no_dcp", "nan", "not_collected", "mig"]})
    labels = ["no profiling metrics", "not a number", "not collected", "split into MIG instances"]
    assert _worded(codes)["reason"].to_list() == labels


def test_large_numbers_of_a_packed_column_are_whole() -> None:
    frame = pl.DataFrame({"hours": [47_615.9945, -12_345.5, 9_999.6, 1_535.99451, 0.123567, None]})
    [column] = json.loads(gzip.decompress(base64.b64decode(packed([Column("hours", "Hours", "number")], frame))))["columns"]
    assert column["values"] == [47_616, -12_346, 10_000, 1_536, 0.1236, None]


def test_a_number_that_is_rounded_twice_is_none_of_others() -> None:
    """30.9497 is shown as 30.9 and 713.46 as 713: of 30.95 and 713.5 the script made 31 and 714, of 3,528 + 3,132 6,660."""
    for kind, found, expected in (
        ("number", [30.9497, 713.46, 30.9412], [30.9497, 713.46, 30.94]),
        ("share", [0.0784951, 0.0785012], [0.0784951, 0.0785012]),
        ("duration", [12.4996, 556.46], [12.4996, 556.46]),
        ("money", [3528.412, 3132.344], [3528.41, 3132.34]),
    ):
        frame = pl.DataFrame({"found": found})
        [column] = json.loads(gzip.decompress(base64.b64decode(packed([Column("found", "", kind)], frame))))["columns"]
        assert column["values"] == pytest.approx(expected, rel=1e-6)


def test_rows_of_equal_rank_are_in_the_order_of_their_keys() -> None:
    """60 teams at a price of zero: the database keeps no order of ties."""
    names = [f"t{number:02d}" for number in range(60)]
    with duckdb.connect() as con:
        con.execute("create schema report")
        con.execute(
            "create table report.team_cost as select 'lab' as cluster, unnest(list_reverse($names)) as team, team as namespace,"
            " 'Pod' as workload_kind, 'w' as workload, 0.0 as total_cost",
            {"names": names},
        )
        with opened_tables(con, {}) as tables:
            [grid] = grids(tables, {"report.team_cost": load()["report.team_cost"]}, 24.0, Money())
    assert grid.frame["team"].to_list() == names


def test_a_share_has_three_digits_and_near_all_it_is_not_all() -> None:
    frame = pl.DataFrame({"share": [0.43149, 0.00043149, 0.9996, 0.9894, 1.0, None, 0.99996]})
    [column] = json.loads(gzip.decompress(base64.b64decode(packed([Column("share", "Share", "share")], frame))))["columns"]
    assert column["values"] == [0.431, 0.000431, 0.9996, 0.989, 1.0, None, 0.99996]


def test_a_cost_and_all_its_parts_are_shown() -> None:
    shown = {each.name for each in own_columns()["team_cost"] if not each.is_hidden}
    costs = {name for name in load()["report.team_cost"].columns if name.endswith("_cost")}
    assert costs - shown == set() != costs


def test_a_cost_beside_hours_without_a_price_is_a_lower_bound() -> None:
    rows = {
        "team": ["part", "all", "none"],
        "gpu_hours": [48.0, 0.1 + 0.2, 24.0],
        "priced_gpu_hours": [24.0, 0.3, 0.0],
        "month_cost": [48.0, 0.6, None],
        "budget_cost": [96.0, 1.2, 48.0],
        "budget_ratio": [0.5, 0.5, None],
    }
    kinds = {"month_cost": "money", "budget_cost": "money", "budget_ratio": "share", "team": "text"}
    columns = [Column(name, name, kinds.get(name, "number")) for name in rows]
    grid = Grid("team_budget", tables_of_page()["team_budget"], columns, pl.DataFrame(rows), 3, money=Money("$"))
    told = json.loads(gzip.decompress(base64.b64decode(grid.data)))["columns"]
    assert {each["name"] for each in told if "least" in each} == {"month_cost", "budget_ratio"}
    assert next(each["least"] for each in told if each["name"] == "month_cost")[:2] == [1, 0]
    assert [text for text, _ in grid.first[0]] == ["part", "48", "24", "≥ $48", "$96", "≥ 50.0 %"]
    assert [text for text, _ in grid.first[1]] == ["all", "0.3", "0.3", "$0.6", "$1.2", "50.0 %"]
    assert [text for text, _ in grid.first[2]] == ["none", "24", "0", "—", "$48", "—"]


def test_a_part_of_a_cost_without_hours_is_0_and_no_lower_bound() -> None:
    """Half of the hours have a price; none is idle."""
    rows = {"gpu_hours": [48.0], "priced_gpu_hours": [24.0], "total_cost": [48.0], "idle_cost": [0.0]}
    columns = [Column(name, name, "money" if name.endswith("_cost") else "number") for name in rows]
    grid = Grid("team_cost", tables_of_page()["team_cost"], columns, pl.DataFrame(rows), 1, money=Money("EUR"))
    assert [text for text, _ in grid.first[0]] == ["48", "24", "≥ 48 EUR", "0 EUR"]


def test_energy_of_a_day_with_hours_of_unknown_energy_is_a_lower_bound() -> None:
    """Of 24 h one is unknown, or 0.1 h, which is less than half of a percent, or all."""
    rows = {
        "allocated_gpu_hours": [24.0, 24.0, 24.0],
        "energy_kwh": [9.0, 9.0, None],
        "energy_cost": [2.0, 2.0, None],
        "energy_accuracy_ratio": [0.05, 0.05, 0.05],
        "unmeasured_gpu_hours": [1.0, 0.1, 24.0],
    }
    columns = [Column(name, name, "money" if name.endswith("_cost") else "number") for name in rows]
    grid = Grid("cost", tables_of_page()["cost"], columns, pl.DataFrame(rows), 3, money=Money("EUR"))
    assert [text for text, _ in grid.first[0]] == ["24", "≥ 9", "≥ 2 EUR", "0.05", "1"]
    assert [text for text, _ in grid.first[1]] == ["24", "9", "2 EUR", "0.05", "0.1"]
    assert [text for text, _ in grid.first[2]] == ["24", "—", "—", "0.05", "24"]


def test_settings_are_shown_as_json_and_names_without_quotes() -> None:
    prices = {"NVIDIA L40S": {"2026-11-01": 0.9, "2026-12-01": None}, "all": 2}
    settings = {"on": True, "none": None, "currency": "$", "price": prices, "retired": [{"cluster": "old"}], "kwh": 380.0}
    context = {"header": replace(a_header(), settings=settings), "buckets": (), "files": {}, "formulas": {}}
    shown = environment().get_template("_about.html.j2").render(context)
    assert re.findall("<dd>(.*?)</dd>", shown.partition("<summary>Settings")[2])[: len(settings)] == [
        "true", "—", "$", '{"NVIDIA L40S": {"2026-11-01": 0.9, "2026-12-01": null}, "all": 2}', '[{"cluster": "old"}]', "380.0",
    ]  # fmt: skip


def test_links_stay_inside_the_page_and_lead_somewhere(page: Page) -> None:
    assert [link for link in page.references if not link.startswith("#")] == []
    assert [link for link in page.references if link[1:] not in page.ids] == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_loads_nothing_and_runs_its_own_script_alone(page: Page) -> None:
    assert {"link", "img", "iframe", "object", "embed"} & set(page.tags) == set()
    script = re.search(r"<script>(.*?)</script>", page.source, re.DOTALL)
    assert script is not None and page.tags.count("script") == 1
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page.source
    assert not re.search(r"\b(fetch|XMLHttpRequest|importScripts|WebSocket)\b|url\(http", page.source)


def test_every_table_has_a_caption_and_headings_that_say_how_it_is_sorted(page: Page) -> None:
    assert page.tags.count("caption") == page.tags.count("table")
    assert 'aria-sort="none"' in page.source


def test_a_column_that_no_row_has_a_value_for_is_left_out(page: Page) -> None:
    empty = [
        f"{name}.{column['name']}"
        for name, data in rows_within(page).items()
        for column in data["columns"]
        if all(value is None for value in column["values"])
    ]
    assert empty == []


def test_every_listed_table_that_has_rows_is_in_the_page(page: Page, demo: Path) -> None:
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        told = "select table_name from duckdb_tables() where schema_name = 'report' and estimated_size > 0"
        filled = {name for (name,) in con.execute(told).fetchall()} & tables_of_page().keys()
    assert len(filled) > 10 and filled - rows_within(page).keys() == set()


def test_the_list_of_tables_names_tabs_that_there_are() -> None:
    assert {words.tab for words in tables_of_page().values()} <= set(TABS)


def test_hostile_names_stay_text(out: Path) -> None:
    page = Page(out / "report.html")
    assert page.tags.count("script") == 1
    assert "<script>alert" not in page.source


def test_the_report_leads_to_a_page_for_each_team_with_its_rank(simulated_demo: Path) -> None:
    names = sorted(path.stem for path in (simulated_demo / "by").iterdir())
    assert names == ["data", "notebooks", "research", "search", "serving", "vision"]
    whole = Page(simulated_demo / "report.html")
    assert {link for link in whole.references if link.startswith("by/")} == {f"by/{name}.html" for name in names}
    own = Page(simulated_demo / "by" / "research.html")
    assert re.search(r"rank \d of 6 teams", own.text)
    assert ("All teams" in whole.source, "All teams" in own.source) == (True, False)  # its rest is that of the whole
    columns = rows_within(own)["containers"]["columns"]
    assert [column["words"] for column in columns if column["name"] == "team"] == [["research"]]


def test_namespaces_of_one_team_share_its_page_also_where_kube_state_metrics_alone_tells_of_it(
    demo: Path, tmp_path: Path
) -> None:
    """As the report's tables name them: of the second cluster there is no snapshot."""
    lake = shutil.copytree(demo / "lake", tmp_path / "lake")
    at = datetime(2026, 11, 20, 23, 55, tzinfo=UTC)
    labels = {"research": {"team/name": "ml"}, "notebooks": {"team/name": "ml"}, "serving": {"team/name": "apps"}, "data": {}}
    rows = [
        {"observed_at": at, "namespace": name, "namespace_uid": f"u-{name}", "created_at": at, "labels": list(found.items())}
        for name, found in labels.items()
    ]
    device = 'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{0}",Hostname="n",namespace="{0}",pod="p",container="c"}} 100 {1}'
    label = 'kube_namespace_labels{{namespace="{0}",label_team_name="{2}"}} 1 {1}'
    lines = [
        line.format(namespace, int(at.timestamp()) + 60 * minute, team)
        for line in (device, label)
        for namespace, team in (("a", "red"), ("b", "red"), ("c", "blue"))
        for minute in range(-3, 4)
    ]
    (tmp_path / "metrics.txt").write_text("\n".join([*lines, "# EOF", ""]))
    out, there = tmp_path / "out", ["--lake", str(lake)]
    assert main(["import", str(tmp_path / "metrics.txt"), "--cluster", "other", *there], environ={}, now=NOW) == 0
    assert main(["compute", "--date", "2026-11-20", *there], environ={}, now=NOW) == 0
    with open_lake(lake).change() as change:
        change.observe("h200-recording", at, {"namespace": pa.Table.from_pylist(rows, TABLE_BY_NAME["namespace"].schema)})
    asked = ["report", *WINDOW, "--by", "team/name", "--only", "html", *there, "--out", str(out)]
    assert main(asked, environ={}, now=NOW) == 0
    # A namespace without the label is a team of its own.
    assert sorted(path.stem for path in (out / "by").iterdir()) == ["apps", "blue", "data", "ml", "red"]
    for team, both in (("ml", ["notebooks", "research"]), ("red", ["a", "b"])):
        page = Page(out / f"by/{team}.html")
        assert f"GPU usage report: {team}" in page.text
        (namespace,) = [each for each in rows_within(page)["containers"]["columns"] if each["name"] == "namespace"]
        assert namespace["words"] == both


def test_a_label_that_no_namespace_has_is_refused_before_the_work(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["report", *WINDOW, "--by", "team", "--lake", str(demo / "lake"), "--out", str(tmp_path)]
    assert main(asked, environ={}, now=NOW) == 2
    assert "no namespace has the label 'team' between 2026-11-20 and 2026-11-20;" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_hostile_labels_are_harmless_files_and_stay_apart() -> None:
    names = [file_name(label) for label in HOSTILE]
    assert len(set(names)) == len(HOSTILE)
    assert [name for name in names if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name)] == []
    assert file_name("team-a") == "team-a"


@given(st.text(max_size=300))
def test_any_label_is_a_short_plain_name(label: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,68}", file_name(label))


def test_a_chart_of_hours_says_where_unknown_time_is_drawn_and_a_chart_of_days_need_not(simulated_demo: Path) -> None:
    """The ledger has unknown time by UTC day, as pages of teams have: within the day its hours are those with least data."""
    said = [
        (simulated_demo / file).read_text().count("its hours with the least data") for file in ("report.html", "by/research.html")
    ]
    assert said == [1, 0]


def test_a_teams_page_has_its_quotas_and_the_sick_gpu_that_it_sat_on(simulated_demo: Path) -> None:
    found = rows_within(Page(simulated_demo / "by" / "research.html"))
    columns = {name: {each["name"]: each for each in found[name]["columns"]} for name in ("findings", "quota_fair_share")}
    titles, quotas = columns["findings"]["title"], columns["quota_fair_share"]["quota"]
    assert "GPU errors" in [titles["words"][number] for number in titles["values"]]
    assert quotas["words"] == ["research/gpus"]
    assert "pod" in {each["name"] for each in found["quota_pod"]["columns"]}
    other = rows_within(Page(simulated_demo / "by" / "vision.html"))["findings"]
    assert "GPU errors" not in next(each["words"] for each in other["columns"] if each["name"] == "title")
