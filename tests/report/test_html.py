"""report.html: every table is there, what is unknown says why, nothing leaves the file, hostile names stay text."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from gpureport.query import Query
from gpureport.report import write_report
from gpureport.report.room import ROWS_ON_PAGE

from .conftest import FORMULA, SCRIPT, a_header, fill
from .page import Cell, Page

NO_TABLES = {"second", "about", "coverage-of-it", "teams", "containers", "devices", "days", "models"}
"""Sections that tell of tables and are none."""
QUANTITY = re.compile(r"[\d,.]+ (?:[kMGT]i?|[kMG]?Wh|s|min|h|d)(?: \d+ (?:s|min|h))?")
"""A number that its text does not tell alone: 1.5 kWh, 2 h 5 min, 12 Gi."""


@pytest.fixture(params=["small", "demo"])
def page(request: pytest.FixtureRequest) -> Page:
    folder: Path = request.getfixturevalue("out" if request.param == "small" else "demo")
    return Page(folder / "report.html")


def column(page: Page, section: str, title: str) -> list[Cell]:
    """The cells of a column by its heading, unit included."""
    _, headings, *rows = page.sections[section].rows
    number = [" ".join(cell.text.split()) for cell in headings].index(title)
    return [row[number] for row in rows]


def test_every_table_has_a_section_with_its_sql(page: Page) -> None:
    for name in page.sections.keys() - NO_TABLES:
        assert "The SQL behind it" in page.sections[name].text
        assert "-- grain:" in page.sections[name].text
        assert "What each column means" in page.sections[name].text
    assert {"container_saturation", "device", "coverage", "about"} <= page.sections.keys()


def test_links_stay_inside_the_page_and_lead_somewhere(page: Page) -> None:
    assert page.references
    assert [link for link in page.references if not link.startswith("#") or link[1:] not in page.ids] == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_loads_nothing_and_forbids_itself_to(page: Page) -> None:
    assert set(page.tags).isdisjoint({"link", "img", "iframe", "object", "embed", "form"})
    assert re.findall("<script[^>]*>", page.source) == ["<script>"]
    assert "default-src 'none'" in page.source
    assert not re.search(r"script-src[^;]*unsafe", page.source)
    style = page.source.partition("<style>")[2].partition("</style>")[0]
    assert re.findall(r"url\(|@import|https?:", style) == []


def test_rows_are_as_wide_as_their_headings(page: Page) -> None:
    for section in page.sections.values():
        if len(section.rows) > 2 and section.name not in NO_TABLES:
            groups, headings, *rows = section.rows
            assert sum(int(cell.attributes["colspan"]) for cell in groups) == len(headings)
            assert {len(row) for row in rows} == {len(headings)}


def test_each_unknown_figure_shows_a_dash_a_letter_and_its_reason(page: Page) -> None:
    seen = 0
    for section in (each for each in page.sections.values() if each.name not in NO_TABLES):
        for cell in (cell for row in section.rows for cell in row if "—" in cell.text):
            match = re.fullmatch(r"—([a-z]) unknown: (.+)", cell.text)
            assert match, cell
            assert cell.attributes["title"] == match[2]
            assert f"{match[1]} {match[2]}" in " ".join(section.text.split())
            seen += 1
    assert seen > 0


def test_numbers_stand_right_under_a_heading_with_the_unit(out: Path) -> None:
    page = Page(out / "report.html")
    usage = column(page, "container_saturation", "GPU usage avg %")
    assert [cell.text for cell in usage] == ["33.3", "33.3"]
    assert {cell.attributes["class"] for cell in usage} == {"number share"}
    assert [cell.text for cell in column(page, "container_saturation", "PCIe sent B/s")] == ["123 M", "123 M"]
    assert [cell.text for cell in column(page, "container_saturation", "XID codes")] == ["31, 79", "31, 79"]
    assert [cell.text for cell in column(page, "coverage", "coverage %")] == ["0"]


def test_whatever_is_a_number_can_be_sorted_as_one(page: Page) -> None:
    cells = [cell for section in page.sections.values() for row in section.rows for cell in row if "scope" not in cell.attributes]
    quantities = [cell for cell in cells if QUANTITY.fullmatch(cell.text)]
    assert quantities
    assert [cell.text for cell in quantities if "number" not in cell.attributes.get("class", "")] == []
    assert [cell.text for cell in quantities if not float(cell.attributes.get("data-rank", 0))] == []
    numbers = [cell for cell in cells if "number" in cell.attributes.get("class", "") and "data-rank" not in cell.attributes]
    assert [cell.text for cell in numbers if not re.match(r"—|([<>≤≥] ?)?-?[\d,.]+( %)?$", cell.text)] == []


def test_accelerators_are_shown_with_what_they_are_first(out: Path) -> None:
    page = Page(out / "report.html")
    shown = {title: column(page, "accelerator", title)[0].text for title in ("ID", "make", "model", "duty cycle %")}
    assert shown == {"ID": "GPU-deadbeef…", "make": "nvidia", "model": "tesla-p100", "duty cycle %": "12.4"}
    assert column(page, "accelerator", "memory total B")[0].text == "18.9 Gi"  # 20,304,050,607 / 2^30
    assert column(page, "accelerator", "memory used max B")[0].text.startswith("—")


def test_a_row_begins_with_its_name_as_a_heading(out: Path) -> None:
    page = Page(out / "report.html")
    assert {cell.attributes["scope"] for cell in column(page, "container_saturation", "pod")} == {"row"}
    assert column(page, "device", "device UUID")[0].attributes["title"] == "GPU-11111111-2222"


def test_hostile_names_stay_text(out: Path) -> None:
    page = Page(out / "report.html")
    assert SCRIPT in [cell.text for cell in column(page, "container_saturation", "namespace")]
    assert FORMULA in [cell.text for cell in column(page, "container_saturation", "container")]
    assert "one store is missing <b>" in page.text
    assert page.source.count("<script") == 1 and "<b>" not in page.source


def test_the_head_states_window_coverage_sources_and_failed_checks(out: Path) -> None:
    text = " ".join(Page(out / "report.html").text.split())
    for stated in (
        "2026-11-20T00:00:00Z to 2026-11-20T01:00:00Z (1 h, UTC, end not included)",
        "Seen: 90.0 %, not seen: 10.0 %",
        "Seen90.0 %10.0 % not seen; 1 of 31 signals absent",
        "exporter down0.1 GPU-h on 1 node not seen: all devices and signals of the node fell silent together",
        "not collecteddram_active_ratio: the exporter does not publish this metric",
        "Check failed. checks.overlap: Two rows at once. 3 rows",
        "prometheus 2.53 warned: one store is missing",
        "1,234 samples from prometheus 2.53 (read path remote-read)",
        "Generated at 2026-11-21T05:00:00Z",
    ):
        assert stated in text


def test_a_table_without_rows_says_so(queries: dict[str, Query], tmp_path: Path) -> None:
    with duckdb.connect() as con:
        con.execute("create schema report; create schema facts")
        for query in queries.values():
            fill(con, query, [])
        write_report(con, queries, a_header(), tmp_path)
    page = Page(tmp_path / "report.html")
    assert "No rows in this window." in page.sections["container_saturation"].text
    assert (tmp_path / "csv/device.csv").read_text().splitlines() == [",".join(queries["report.device"].columns)]


def test_a_long_table_is_cut_on_the_page_only_and_says_so(queries: dict[str, Query], tmp_path: Path) -> None:
    with duckdb.connect() as con:
        con.execute("create schema report; create schema facts")
        for query in queries.values():
            fill(con, query, [])
        con.execute("insert into report.coverage (cluster, signal, node_name) select 'lab', 's' || range, 'n' from range(1001)")
        write_report(con, queries, a_header(), tmp_path)
    page = Page(tmp_path / "report.html")
    shown = ROWS_ON_PAGE
    assert len(page.sections["coverage"].rows) == 2 + shown
    assert f"{shown} of 1,001 rows are shown" in page.sections["coverage"].text
    assert len((tmp_path / "csv/coverage.csv").read_text().splitlines()) == 1 + 1001
