"""report.html in a real browser: tabs, links, search, sorting, details, no request; for every reader, and on paper."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from golden_case import gpureport
from kube.lake import RECORDING as RECORDED
from playwright.sync_api import Browser, Page

from gpureport.lake import open_lake
from gpureport.values.text import formats
from gpureport.values.text.safe import csv_cell

from .conftest import Opened, new_page

ANSWERS = ("Capacity use", "Largest waste", "GPUs to return", "Pending and starved", "GPU health", "Cost")
FIRST_SCREEN, PAGES_MAX = 900, 4


@pytest.fixture
def page(browser: Browser, demo: Path) -> Iterator[Page]:
    page = new_page(browser)
    page.goto((demo / "report.html").as_uri())
    yield page
    page.close()


@pytest.fixture
def rich(page: Page, simulated_demo: Path) -> Page:
    """The page of the simulated demo: prices, quotas, findings, all charts."""
    page.goto((simulated_demo / "report.html").as_uri())
    return page


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of five clusters: of one there is one signal without a model, of lab and other Kubernetes alone, of drawn a GPU that
    draws 360 W for two days, of late one for five days, of the third for 6 h alone."""
    folder = tmp_path_factory.mktemp("bare")
    lake = "--lake", str(folder / "lake")
    of_late = [second for second in range(0, 5 * 86_400, 600) if not 194_400 <= second < 259_200]
    clusters = {
        "one": (
            20,
            range(0, 7200, 60),
            ('UUID="GPU-a",Hostname="n1",pod="p",namespace="x"} 40', 'UUID="GPU-b",Hostname="n1"} 0'),
        ),
        "late": (16, of_late, ('UUID="GPU-l",Hostname="n",modelName="M",pod="p",namespace="x"} 50',)),
    }
    for cluster, (day, seconds, series) in clusters.items():
        start, file = int(datetime(2026, 11, day, tzinfo=UTC).timestamp()), folder / cluster
        lines = [f"DCGM_FI_DEV_GPU_UTIL{{{each} {start + second}" for second in seconds for each in series]
        file.write_text("\n".join(["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *lines, "# EOF\n"]))
        gpureport("import", str(file), "--cluster", cluster, *lake)
    for cluster in ("lab", "other"):
        gpureport("import", "--kubernetes", str(RECORDED), "--cluster", cluster, *lake)
    import_gpu(folder / "drawn", {"POWER_USAGE": 360, "GPU_UTIL": 0}, 2, "--cluster", "drawn", *lake)
    gpureport("compute", "--since", "2026-11-16", "--until", "2026-11-22", *lake)
    return folder / "lake"


def report_of(lake: Path, out: Path, since: str, *more: str) -> str:
    """The address of a report of a day, or of the period that is given."""
    gpureport("report", "--since", since, "--lake", lake, "--out", out, "--only", "html", *more)
    return (out / "report.html").as_uri()


def import_gpu(file: Path, values: Mapping[str, int], days: int, *flags: object) -> None:
    """Import days of a GPU named after the file, with the same values throughout."""
    start, lines = int(datetime(2026, 11, 17, tzinfo=UTC).timestamp()), []
    for name, value in values.items():
        labels = f'UUID="GPU-{file.name}",Hostname="n",modelName="M",pod="p",namespace="x"'
        lines.append(f"# TYPE DCGM_FI_DEV_{name} gauge")
        lines += [f"DCGM_FI_DEV_{name}{{{labels}}} {value} {start + second}" for second in range(0, days * 86_400, 300)]
    file.write_text("\n".join([*lines, "# EOF\n"]))
    gpureport("import", file, *flags)


def test_a_chart_of_two_clusters_shows_both_and_a_day_without_data_is_blank(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU of one model in each draws 360 W for days: 2 x 8.64 kWh a day. Of the second cluster nobody knows whether it is idle.
    Nothing is there of the second day: its hours are no part of an area, its energy is a dash, its GPUs not 0."""
    lake = "--lake", tmp_path / "lake"
    for cluster, values in (("one", {"POWER_USAGE": 360, "GPU_UTIL": 0}), ("two", {"POWER_USAGE": 360})):
        import_gpu(tmp_path / cluster, values, 3, "--cluster", cluster, *lake)
    gpureport("simulate", "--gpus", "8", "--step-seconds", "600", "--start", "2026-11-17", "--days", "3", *lake)
    window = ("--since", "2026-11-17", "--until", "2026-11-20", *lake)
    gpureport("compute", *window)
    opened, second = open_lake(tmp_path / "lake"), date(2026, 11, 18)
    opened.remove(each for table in opened.tables() for each in opened.partitions(table) if each.date == second)
    capsys.readouterr()
    gpureport("whatif", "--nodes", "1", *window, "--cluster", "default", "-o", "json")
    assert [round(row["placeable_gpus"]) for row in json.loads(capsys.readouterr().out)] == [8, 8, 16]
    opened.remove(each for table in opened.tables() for each in opened.partitions(table) if each.cluster == "default")
    prices = tmp_path / "prices.toml"
    prices.write_text("[prices]\ngpu_hour = { all = { 2026-11-19 = 2.0 } }\n")  # of the second day alone
    gpureport("--config", prices, "report", *window, "--out", tmp_path / "out", "--only", "html", "--by", "namespace")
    page = new_page(browser)
    page.goto((tmp_path / "out" / "by" / "x.html").as_uri() + "#gpus")
    assert page.locator("figure[data-chart=distributions][data-drawn]").is_hidden()  # of clusters and models alone
    page.goto((tmp_path / "out" / "report.html").as_uri() + "#capacity")
    for table in ("workload", "containers", "gpu_hour_balance"):  # whose rows have the same names
        assert str(page.locator(f"#{table} thead th").first.text_content()).strip() == "Cluster"
    models = page.locator("figure[data-chart=forecast] h3")
    models.first.wait_for()
    assert models.all_inner_texts() == ["M (one)", "M (two)"]
    assert str(page.locator("figure[data-chart=hours] path.c-allocated_idle").get_attribute("d")).count("M") == 2
    week = page.locator("figure[data-chart=week] tbody").inner_text()
    assert "≥ 50.0 % idle" in week and "100.0 % idle" not in week
    page.locator(".tabs a", has_text="Energy").click()
    days = page.locator("figure[data-chart=energy] table.bars td.number")
    days.first.wait_for()
    assert page.locator("figure[data-chart=energy] table.bars th").all_inner_texts() == ["17 Nov", "18 Nov", "19 Nov"]
    assert days.all_inner_texts() == ["17.3 kWh", "—", "17.3 kWh"]
    assert page.locator("figure[data-chart=cost] table.bars td.number").all_inner_texts() == ["≥ 96", "—"]  # no team had the day
    page.locator(".tabs a", has_text="GPUs").click()
    names = page.locator("figure[data-chart=distributions] h3")
    names.first.wait_for()
    assert sorted(names.all_inner_texts()) == ["All of one", "M (one)"]
    page.close()


def test_energy_of_a_day_is_a_lower_bound_where_a_cluster_has_no_power(browser: Browser, bare: Path, tmp_path: Path) -> None:
    """A GPU draws 360 W for two days: 8.64 kWh a day. That of the other cluster is not known; alone, the first is known whole."""
    page, shown = new_page(browser), {}
    for name, more in (("both", ()), ("drawn", ("--cluster", "drawn"))):
        page.goto(report_of(bare, tmp_path / name, "2026-11-17", "--until", "2026-11-19", *more) + "#energy")
        page.locator("figure[data-chart=energy] table.bars").wait_for()
        shown[name] = page.locator("figure[data-chart=energy] td.number").all_inner_texts()
    assert shown == {"both": ["≥ 8.64 kWh", "≥ 8.64 kWh"], "drawn": ["8.64 kWh", "8.64 kWh"]}
    page.close()


def test_the_line_of_schedulable_gpus_is_open_on_a_day_with_too_little_data(browser: Browser, bare: Path, tmp_path: Path) -> None:
    """There is 1 GPU before and after the third day, not a quarter of one between."""
    page = new_page(browser)
    page.goto(report_of(bare, tmp_path, "2026-11-16", "--until", "2026-11-21", "--cluster", "late") + "#capacity")
    chart = page.locator("figure[data-chart=forecast] svg")
    chart.wait_for()
    lines = [str(chart.locator(f"path.{css}").get_attribute("d")) for css in ("line-c", "line-a")]
    assert [line.count("M") for line in lines] == [2, 2]
    page.close()


def test_with_one_signal_and_no_model_every_tab_opens(browser: Browser, bare: Path, tmp_path: Path) -> None:
    """Columns without data are not in the page; a chart that would use one goes without."""
    page, complaints = new_page(browser), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report_of(bare, tmp_path, "2026-11-20", "--cluster", "one") + "#capacity")
    hours = page.locator("figure", has_text="Blank: hours without data.").locator("svg")
    hours.wait_for()
    wide = "svg => svg.querySelector('path.c-underutilized').getBBox().width / (svg.viewBox.baseVal.width - 40)"
    assert hours.evaluate(wide) == pytest.approx(2 / 24, rel=0.01)
    assert page.locator("figure", has_text="Allocated GPUs by model").is_hidden()  # one day is no line
    for tab in page.locator(".tabs a").all():
        tab.click()
        page.wait_for_timeout(150)
    page.evaluate("go('#devices?row=0')")
    page.locator("dialog[open]").wait_for()
    assert page.locator("#detail-title").inner_text() == "n1, GPU-a"  # whose index nobody knows
    assert complaints == []
    page.close()


def test_a_quota_without_a_guarantee_is_not_said_to_have_one_of_0(browser: Browser, bare: Path, tmp_path: Path) -> None:
    """Kubernetes' own limit what is used and guarantee nothing; no exporter, so nobody knows of idle hours either."""
    page = new_page(browser)
    page.goto(report_of(bare, tmp_path, "2026-11-21", "--cluster", "lab") + "#quotas")
    chart = page.get_by_role("region", name="Chart of quotas")
    told = {
        row.locator("td").first.inner_text(): row.locator("td.number").inner_text() for row in chart.locator("tbody tr").all()
    }
    assert told["kubernetes · requests.nvidia.com/gpu"].endswith(" of —")
    assert told["volcano · nvidia.com/gpu"] == "1 of 0.5"
    bars = {
        row.locator("td").first.inner_text(): row.locator("rect").first.get_attribute("class")
        for row in chart.locator("tbody tr").all()
    }
    assert bars["kubernetes · requests.nvidia.com/gpu"] == "c-active_unmeasured"
    assert bars["kai · gpu"] == "c-effective"
    assert page.get_by_text("Delivered, borrowed part unknown").is_visible()
    page.locator(".tabs a", has_text="Capacity").click()
    page.locator("figure", has_text="Blank: hours without data.").wait_for()
    # Requests tell who has the GPUs: their use is not measured, and their allocation is not unknown.
    legend = page.locator("figure[data-chart=hours] .legend li").all_inner_texts()
    assert [each for each in legend if each != "Pending requests"] == ["Allocated, use not measured", "Unallocated"]
    assert page.locator("figure", has_text="Idle GPUs by weekday").is_hidden()
    page.locator(".tabs a", has_text="About").click()
    assert page.locator("#about dl.facts > div", has_text="GPUs with telemetry").locator("dd").inner_text() == "0"
    page.locator(".tabs a", has_text="Overview").click()
    page.get_by_text("lab: the lake has no telemetry of the period.").wait_for()
    page.close()


def test_quotas_of_two_clusters_are_told_apart(browser: Browser, bare: Path, tmp_path: Path) -> None:
    """And what was not met of a guarantee is unknown in two snapshots of Kueue, not 0; not all quotas fit into the chart."""
    page = new_page(browser)
    page.goto(report_of(bare, tmp_path, "2026-11-21") + "#quotas")
    chart = page.locator("figure[data-chart=quotas]")
    queue = chart.locator("tbody tr", has_text="cq-research (other)")
    assert "not met —, guaranteed 1.25 GPU-h" in str(queue.locator("svg").get_attribute("aria-label"))
    assert chart.locator("tbody tr").count() == 24
    assert "24 of 26 quotas" in chart.inner_text()
    page.close()


def test_it_asks_for_nothing_and_complains_of_nothing_in_any_tab(opened: Opened, folder: Path) -> None:
    for tab in opened.page.locator(".tabs a").all():
        tab.click()
        opened.page.wait_for_timeout(150)
    assert opened.requests == [(folder / "report.html").as_uri()]
    assert opened.complaints == []


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_the_six_answers_are_within_the_first_screen(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": FIRST_SCREEN})
    for title in ANSWERS:
        box = page.get_by_role("heading", name=title, exact=True).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < FIRST_SCREEN


def test_a_shortened_answer_opens_by_touch(rich: Page) -> None:
    rich.set_viewport_size({"width": 390, "height": FIRST_SCREEN})
    detail = rich.locator(".answer .detail").nth(2)
    assert detail.evaluate("text => text.scrollHeight > text.clientHeight")
    detail.click()
    assert detail.evaluate("text => text.scrollHeight === text.clientHeight")


def test_the_overview_is_three_screens_at_most(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * FIRST_SCREEN


def test_a_tab_has_an_address_and_back_leads_to_the_one_before(page: Page) -> None:
    page.get_by_role("link", name="Workloads", exact=True).first.click()
    page.locator("#workloads.on").wait_for()
    assert page.evaluate("location.hash") == "#workloads"
    page.go_back()
    page.locator("#overview.on").wait_for()
    page.keyboard.press("3")
    page.locator(".tabs a[aria-current]", has_text="Workloads").wait_for()


def test_a_search_finds_a_row_and_opens_it(page: Page) -> None:
    page.locator("#find").fill("notebook")
    page.locator("#hits button").first.wait_for()
    page.locator("#hits button").first.click()
    page.locator("dialog[open]").wait_for()
    assert "notebook" in page.locator("dialog").inner_text().lower()
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_a_heading_sorts_its_column_and_back_with_the_unknown_last(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#containers")
    heading = page.locator("#containers th", has_text="SM activity").first
    page.locator("#containers table.virtual").wait_for()
    index = page.locator("#containers thead tr").first.locator("th").all_inner_texts().index(heading.inner_text())
    for direction, isdown in (("descending", True), ("ascending", False)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == direction
        texts = page.locator(f"#containers tbody tr[data-position] td:nth-child({index + 1})").all_inner_texts()
        known = [float(text.removesuffix(" %").removeprefix("< ")) for text in texts if text != "—"]
        assert known == sorted(known, reverse=isdown)
        assert texts == [text for text in texts if text != "—"] + ["—"] * (len(texts) - len(known))


def test_filters_groups_and_a_row_by_keyboard(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#containers")
    page.locator("#containers table.virtual").wait_for()
    rows = page.locator("#containers tbody tr[data-position]")
    whole = rows.count()
    page.locator("#containers .tools input").fill("research")
    assert 0 < rows.count() < whole
    assert f"of {whole} rows" in page.locator("#containers .summary").inner_text()
    page.locator("#containers .tools input").fill("")
    page.locator("#containers select").select_option("team")
    assert "groups of" in page.locator("#containers .summary").inner_text()
    page.locator("#containers select").select_option("")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()


def test_a_group_says_where_its_sum_lacks_a_row_and_opens_its_rows(rich: Page) -> None:
    """Workloads by finding: those without one are a group as any other; where the hours of one are unknown it is at least."""
    rich.goto(rich.url.partition("#")[0] + "#workload")
    rich.locator("#workload table.virtual").wait_for()
    count = rich.evaluate("""async () => {
        const grid = await gridOf("workload"), found = grid.column("finding"), isNone = (key) => !found.words[key];
        grid.column("idle_gpu_hours").values[found.values.findIndex(isNone)] = null;
        return found.values.filter(isNone).length;
    }""")
    rich.locator("#workload select").select_option("finding")
    row = rich.locator("#workload tbody tr").filter(has_text="≥ ")
    assert row.count() == 1
    with rich.expect_download() as saved:
        rich.locator("#workload").get_by_role("button", name="Export CSV").click()
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        bounds = {each["finding"]: [*filter(None, each["at_least"].split(", "))] for each in csv.DictReader(file)}
    assert "idle_gpu_hours" in bounds[""]
    assert (len(bounds.pop("")), {*map(len, bounds.values())}) == (row.inner_text().count("≥ "), {0})
    row.click()
    assert rich.locator("#workload tbody tr[data-position]").count() == count
    rich.locator("#workload .chip", has_text="Finding: — ×").click()
    assert rich.locator("#workload .summary").inner_text() == ""


def test_idle_hours_of_the_week_are_at_least_where_use_of_some_is_not_measured(page: Page) -> None:
    """On Monday 1 of 10 GPU-h is idle at 5:00, beside 2 that are not measured; at 6:00, 1 of 4, and all are measured."""
    drawn = """async () => {
        const found = { weekday: [1, 1], hour_of_day: [5, 6], usable_gpu_hours: [11, 4], unnamed_gpu_hours: [1, 0],
            allocated_idle_gpu_hours: [1, 1], allocated_unmeasured_gpu_hours: [2, 0] };
        const figure = make("figure", {});
        await drawWeek(figure, { rows: 2, columns: Object.entries(found).map(([name, values]) => ({ name, values })) });
        return [...figure.querySelectorAll("td[title*=idle]")].map((cell) => cell.title);
    }"""
    assert page.evaluate(drawn) == ["Mon 5:00: ≥ 10.0 % idle", "Mon 6:00: 25.0 % idle"]


@pytest.mark.parametrize(
    ("board", "first", "second", "lacks"),
    [(5, None, None, False), (None, 2, 3, False), (None, 2, None, True), (None, None, None, True)],
)
def test_a_figure_of_a_split_gpu_is_its_boards_or_its_instances(
    page: Page, board: int | None, first: int | None, second: int | None, lacks: bool
) -> None:
    """Energy is the board's, idle hours are the instances': a sum over such GPUs lacks nothing."""
    told = """(values) => {
        const gpu_instance_id = { words: ["", "1", "2"], values: [0, 1, 2] };
        const columns = { gpu_instance_id, device_uuid: { words: ["GPU-1"], values: [0, 0, 0] } };
        return Grid.prototype.lacks.call({ trend: "device", column: (name) => columns[name] }, { values }, [0, 1, 2]);
    }"""
    assert page.evaluate(told, [board, first, second]) is lacks


@pytest.mark.parametrize(("values", "mean"), [((1, 1, 1, 0), 0.5), ((None, 0.2, 0.6, 1), 0.7), ((300, None, None, 100), 200)])
def test_the_mean_of_gpus_counts_a_split_one_once_by_its_hours(page: Page, values: tuple[float | None, ...], mean: float) -> None:
    """GPU-1 has 24 GPU-h, as its two instances together, and GPU-2 24: (24 x 1 + 0) / 48; (12 x 0.2 + 12 x 0.6 + 24) / 48."""
    told = """(values) => {
        const gpu_instance_id = { words: ["", "1", "2"], values: [0, 1, 2, 0] };
        const columns = { gpu_instance_id, device_uuid: { words: ["GPU-1", "GPU-2"], values: [0, 0, 0, 1] } };
        const grid = { trend: "device", column: (name) => columns[name] }, hours = { values: [24, 12, 12, 24] };
        return Grid.prototype.totalOf.call(grid, { values, total: "mean" }, {}, 0, [0, 1, 2, 3], hours);
    }"""
    assert page.evaluate(told, values) == pytest.approx(mean)


def test_gpus_have_their_hours_as_weight(rich: Page) -> None:
    """24 hours of one day."""
    told = """async () => {
        const grid = await gridOf("devices"), instance = grid.column("gpu_instance_id");
        return grid.column("gpu_hours").values.filter((_, row) => !raw(instance, row));
    }"""
    assert {*rich.evaluate(told)} == {24}


def test_the_name_of_a_model_with_a_line_end_is_whole_in_the_chart_of_energy(page: Page) -> None:
    told = """async () => {
        const column = (name, values, words) => ({ name, values, words, kind: words ? "text" : "joules" });
        const named = [column("dimension", [0], ["GPU model"]), column("value", [0], ["A\\nB"])];
        const figure = make("figure", {}, make("figcaption"));
        document.getElementById("main").append(figure);
        await drawEnergy(figure, { rows: 1, columns: [...named, column("active_joules", [7.2e6])] });
        return [...figure.querySelectorAll("th, .number")].map((each) => each.textContent);
    }"""
    assert page.evaluate(told) == ["A\nB", "2 kWh"]


def test_energy_is_filtered_in_the_unit_that_is_shown(rich: Page) -> None:
    rich.goto(rich.url.partition("#")[0] + "#energy_balance")
    rich.locator("#energy_balance table.virtual").wait_for()
    cells = rich.locator("#energy_balance tbody tr[data-position] td:nth-child(3)")
    whole = cells.count()
    rich.locator("#energy_balance").get_by_role("button", name="Filter columns").click()
    rich.get_by_label("Filter Energy", exact=True).fill("> 100")
    assert 0 < cells.count() < whole
    assert min(float(text.removesuffix(" kWh")) for text in cells.all_inner_texts()) > 100


@pytest.mark.parametrize(
    ("text", "found", "said", "passes"),
    [
        ("> 1,000", 1_500, "1,500", True), ("≤ 1,000", 1_500, "1,500", False), ("2 h .. 3 h", 8_000, "2 h 13 min", True),
        ("50", 50.04, "50.0 %", True), ("0", 0.3, "0.3", False), ("> 10 GiB", 11 * 2**30, "11 GiB", True),
        ("-5..5", 0, "0", True), ("1 h 30 min", 5_400, "1 h 30 min", True), ("> €5", 6, "€6", True), ("1,5", 15, "15", None),
        ("many", 15, "15", None), ("48", 48, "≥ $48", True),
    ],
)  # fmt: skip
def test_a_number_is_filtered_as_it_is_written(page: Page, text: str, found: float, said: str, passes: bool | None) -> None:
    """Of what is no number there is no row, and not every."""
    told = page.evaluate("([text, found, said]) => numberTest(text)?.(found, () => said) ?? null", [text, found, said])
    assert told is passes


def test_a_number_is_written_as_in_the_other_forms(page: Page) -> None:
    """Halves are rounded up: 100.5 is 101 in a sentence, so it is no 100 in the table below it."""
    found = [100.5, 12.25, 2.675, 1_234.5, 0.0125, 0.6565, 99.95, 2.6749, 0.0004]
    told = page.evaluate("(found) => found.map((each) => [significant(each), WRITE.share(each), lasting(each)])", found)
    assert told == [[formats.significant(each), formats.percent(each), formats.duration(each)] for each in found]
    assert [told[0][0], told[1][0], told[4][1]] == ["101", "12.3", "1.3 %"]


def test_a_lower_bound_is_written_as_in_the_other_forms(page: Page) -> None:
    found = [
        ["share", 0.0003],
        ["share", 0.25],
        ["share", 0.9997],
        ["share", 0],
        ["money", 0],
        ["money", 0.0004],
        ["kwh", 0.0002],
    ]
    told = page.evaluate("(found) => found.map(([kind, value]) => writtenAs(kind, value, true))", found)
    assert told == ["> 0 %", "≥ 25.0 %", "> 99.9 %", "≥ 0 %", "—", "> 0", "> 0 kWh"]


def test_an_exported_row_names_its_lower_bounds(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#containers")
    page.locator("#containers tbody tr[data-position]").first.wait_for()
    page.evaluate(
        "async () => { const { all, rows } = await gridOf('containers'); all[3].least = rows.map((row) => row === 0); }"
    )
    with page.expect_download() as saved:
        page.locator("#containers").get_by_role("button", name="Export CSV").click()
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [each["at_least"] for each in rows] == ["allocated_gpu_hours", *[""] * (len(rows) - 1)]


def test_names_are_whole_in_quotes_and_sorted_by_their_numbers(page: Page) -> None:
    names = ["node-1", "node-10", "on node-1; idle", "node-1.", "node-2"]
    assert page.evaluate("(names) => names.map(searched('\"node-1\"'))", names) == [True, False, True, True, False]
    ranks = "(words) => words.map((_, row) => ranked({ words, values: [0, 1, 2, 3] })(row))"
    assert page.evaluate(ranks, ["0", "1", "10", "2"]) == [0, 1, 3, 2]


def test_an_address_keeps_all_of_a_name_and_leaves_no_other_filter(rich: Page) -> None:
    """A team is called R&D+1? here. What was typed before, and groups, are gone; a broken address is the overview's."""
    address = rich.url.partition("#")[0]
    rich.goto(address + "#workload")
    rich.locator("#workload table.virtual").wait_for()
    count = rich.evaluate("""async () => {
        const column = (await gridOf("workload")).column("team");
        column.words[0] = "R&D+1?";
        return column.values.filter((word) => word === 0).length;
    }""")
    rich.locator("#workload").get_by_role("button", name="Filter columns").click()
    rich.get_by_label("Filter Workload", exact=True).fill("nothing")
    rich.locator("#workload select").select_option("team")
    rich.locator("#workload .chip", has_text="Workload: nothing ×").wait_for()
    rich.evaluate("go(`#workload?${new URLSearchParams({ team: 'R&D+1?' })}`)")
    rich.locator("#workload .chip", has_text="Team: R&D+1? ×").wait_for()
    assert rich.locator("#workload tbody tr[data-position]").count() == count
    assert rich.get_by_label("Filter Workload", exact=True).input_value() == ""
    rich.goto("about:blank")
    rich.goto(address + "#%")
    rich.locator("#overview.on").wait_for()


def test_a_link_to_a_table_that_a_page_lacks_leads_to_its_tab(page: Page) -> None:
    link = (
        "document.getElementById('main').append(make('a', { href: '#about', 'data-grid': 'none', 'data-query': 'q=x' }, 'None'))"
    )
    page.evaluate(link)
    page.get_by_role("link", name="None", exact=True).click()
    page.locator("#about.on").wait_for(timeout=5_000)


def test_what_is_filtered_is_exported(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#containers?team=research")
    page.locator("#containers .chip").wait_for()
    with page.expect_download() as saved:
        page.locator("#containers").get_by_role("button", name="Export CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0].startswith("pod,container,team,")
    assert len(lines) - 1 == page.locator("#containers tbody tr[data-position]").count() > 0


def test_an_exported_name_is_one_cell_of_text(page: Page) -> None:
    """As in the report's own files, whatever a spreadsheet takes for the end of a row or the start of a formula."""
    names = ["a\r=1+1", "\u00a0=1", "\uff1d1", "\x1b=1", "b\x1b\u202ec", "-5", 'd"e,f', "plain"]
    page.goto(page.url.partition("#")[0] + "#containers")
    page.locator("#containers tbody tr[data-position]").first.wait_for()
    page.evaluate(
        """async (names) => {
        const texts = (await gridOf("containers")).all.filter(isText);
        texts.forEach((column, at) => { column.words = column.words.map(() => names[at % names.length]); });
    }""",
        names,
    )
    with page.expect_download() as saved:
        page.locator("#containers").get_by_role("button", name="Export CSV").click()
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert {len(row) for row in rows} == {len(head)}
    assert {cell for row in rows for cell in row} >= {csv_cell(name) for name in names}


def test_without_scripts_every_tab_is_there_one_after_the_other(browser: Browser, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    tabs = page.locator("section.tab")
    assert [tab.is_visible() for tab in tabs.all()] == [True] * tabs.count()
    page.get_by_role("link", name="About", exact=True).click()
    assert page.locator("#about-title").is_visible()
    context.close()


@pytest.mark.parametrize("width", [1440, 768, 390])
def test_the_page_never_scrolls_sideways(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    for tab in opened.page.locator(".tabs a").all():
        tab.click()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_longest_name_pushes_no_column_out_of_sight(rich: Page) -> None:
    """A pod's name may have 253 characters: impact and action of its finding are behind it."""
    rich.evaluate("for (const each of document.querySelectorAll('.where')) each.textContent = 'x'.repeat(253)")
    edges = rich.locator(".worst td").evaluate_all("cells => cells.map(each => each.getBoundingClientRect().right)")
    assert edges and max(edges) <= 1440


def test_nor_does_one_with_quotas_on_a_phone(rich: Page) -> None:
    rich.set_viewport_size({"width": 390, "height": 900})
    for tab in rich.locator(".tabs a").all():
        tab.click()
        rich.wait_for_timeout(300)
        assert rich.evaluate("document.documentElement.scrollWidth") <= 390


def test_no_script_but_the_pages_own_may_run(opened: Opened) -> None:
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
    opened.page.wait_for_timeout(100)
    assert opened.page.title().startswith("GPU usage report")


CONTRAST = "color-contrast"
"""Three times as slow as all other rules; it looks at all tabs at once. Colors are of the scheme, all else is of the width."""


@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing(rich: Page, width: int) -> None:
    rich.set_viewport_size({"width": width, "height": 900})
    for tab in rich.locator(".tabs a").all():
        tab.click()
        assert violations(rich, rules={CONTRAST: {"enabled": False}}) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_color_without_contrast(rich: Page, scheme: Literal["light", "dark"]) -> None:
    rich.emulate_media(color_scheme=scheme)
    tabs = rich.locator(".tabs a").all()
    for tab in tabs:  # it is drawn when it is opened
        tab.click()
    rich.wait_for_timeout(300)  # the last one is shown, and no other, after its address has changed
    rich.evaluate("document.querySelectorAll('.tab').forEach((tab) => tab.classList.add('on'))")
    assert rich.locator(".tab:visible").count() == len(tabs)
    assert violations(rich, runOnly=[CONTRAST]) == []


def violations(page: Page, **options: Any) -> list[str]:
    """What axe holds against the page, a line a rule."""
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_timeout(200)
    return [told(each) for each in Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]]


def told(violation: Mapping[str, Any]) -> str:
    nodes = "; ".join(f"{node['html'][:120]} ({node['failureSummary'][:200]})" for node in violation["nodes"][:3])
    return f"{violation['id']}, {len(violation['nodes'])} times: {nodes}"


def test_a_chart_fits_its_panel_and_its_text_is_as_large_as_on_a_wide_screen(rich: Page) -> None:
    rich.set_viewport_size({"width": 390, "height": 844})
    rich.goto(rich.url.partition("#")[0] + "#capacity")
    rich.locator("#capacity .chart svg").first.wait_for()
    for drawing in rich.locator("#capacity .chart svg").all():
        scale = drawing.evaluate("svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width")
        assert 0.95 < scale < 1.05


def test_a_table_shows_what_matters_and_an_opened_row_all(rich: Page) -> None:
    rich.goto(rich.url.partition("#")[0] + "#rightsizing")
    rich.locator("#rightsizing table.virtual").wait_for()
    headings = rich.locator("#rightsizing thead th").all_inner_texts()
    assert headings[:4] == ["Workload", "Namespace", "Model", "Verdict"]
    assert "Container" not in headings
    rich.locator("#rightsizing tbody tr[data-position]").first.click()
    rich.locator("dialog[open]").wait_for()
    assert "Container" in rich.locator("dialog dt").all_inner_texts()


def test_a_row_leads_to_its_findings(rich: Page) -> None:
    rich.goto(rich.url.partition("#")[0] + "#devices?row=0")
    rich.locator("dialog[open]").wait_for()
    assert [told(each) for each in Axe().run(rich).response["violations"]] == []
    rich.get_by_role("link", name="Findings of this GPU").click()
    rich.locator("#findings .summary", has_text="of").wait_for()
    assert rich.locator("dialog[open]").count() == 0
    assert "GPU errors" in rich.locator("#findings tbody").inner_text()


def test_on_paper_nothing_is_cut(rich: Page) -> None:
    rich.emulate_media(media="print")
    rich.set_viewport_size({"width": 703, "height": 1000})  # A4 within its margins
    for name in ("teams", "worst"):
        right = rich.locator(f"#overview table.{name}").evaluate("table => table.getBoundingClientRect().right")
        assert right <= 703
    # A tab that still appears when the browser prints right after loading would be faint.
    assert rich.locator("#overview").evaluate("tab => getComputedStyle(tab).animationName") == "none"


def test_on_paper_it_is_few_pages_with_their_numbers(rich: Page) -> None:
    printed = rich.pdf(prefer_css_page_size=True)
    assert 1 <= printed.count(b"/Type /Page\n") <= PAGES_MAX
