"""report.html in a browser: quiet, whole without scripts, tables that can be sorted and searched, links that lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from ..conftest import SCRIPT
from .conftest import Opened

WIDTHS = {"wide": 1440, "tablet": 820, "phone": 360}


def first_cells(table: Locator) -> list[str]:
    return [text.strip() for text in table.locator("tbody tr:visible > :first-child").all_text_contents()]


def numbers(table: Locator, column: int) -> list[float | None]:
    """What a column shows, unknown as None."""
    # Not as seen: what is out of sight is not laid out.
    texts = table.locator(f"tbody tr > :nth-child({column + 1})").all_text_contents()
    return [None if text.startswith("—") else float(text.replace(",", "")) for text in texts]


def test_it_asks_for_nothing_and_complains_of_nothing(opened: Opened, folder: Path) -> None:
    assert opened.requests == [(folder / "report.html").as_uri()]
    assert opened.complaints == []


def test_names_that_try_to_break_out_stay_text(browser: Browser, out: Path) -> None:
    page = browser.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a name became a script: {dialog.message}"))
    page.goto((out / "report.html").as_uri())
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator("#container_saturation td", has_text=SCRIPT).first.is_visible()
    assert page.locator("td b, td script, th script").count() == 0
    page.close()


def test_every_link_inside_leads_to_something_that_can_be_seen(opened: Opened) -> None:
    hidden = opened.page.evaluate(
        """() => [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href")).filter((href) => {
            const target = document.getElementById(href.slice(1));
            return !target || target.getClientRects().length === 0;
        })"""
    )
    assert hidden == []


def test_a_click_on_a_link_brings_its_target_into_view(opened: Opened) -> None:
    opened.page.locator("a[href='#about']").first.click()
    assert opened.page.url.endswith("#about")
    top = opened.page.evaluate("document.getElementById('about').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_from_a_team_links_lead_to_its_container_to_its_device_and_back(browser: Browser, demo: Path) -> None:
    page = browser.new_page()
    page.goto((demo / "report.html").as_uri())
    page.locator("#teams article table a").first.click()
    container = page.locator("article:target")
    assert container.get_attribute("id", timeout=2000) == "container-1"
    container.locator("table a").first.click()
    assert page.locator("article:target").get_attribute("id") == "device-1"
    page.locator("article:target table a").first.click()
    assert (page.locator("article:target").get_attribute("id") or "").startswith("container-")
    page.locator("article:target p.path a").first.click()
    assert (page.locator("article:target").get_attribute("id") or "").startswith("team-")
    page.close()


def test_a_heading_sorts_its_column_and_back_with_the_unknown_last(browser: Browser, demo: Path) -> None:
    page = browser.new_page()
    page.goto((demo / "report.html").as_uri())
    table = page.locator("#container table.sortable").first
    headings = table.locator("thead tr:last-child th").all_text_contents()
    column = next(number for number, text in enumerate(headings) if text.startswith("SM active avg"))
    before = numbers(table, column)
    heading = table.locator("thead tr:last-child th").nth(column)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert numbers(table, column) == sorted(before, key=lambda found: -(found or 0))
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert numbers(table, column) == sorted(before, key=lambda found: found or 0)
    page.close()


def test_typing_filters_the_rows_and_says_how_many_are_left(browser: Browser, demo: Path) -> None:
    page = browser.new_page()
    page.goto((demo / "report.html").as_uri())
    box = page.get_by_role("searchbox", name="Filter Coverage")
    box.fill("power_watts")
    table = page.locator("#coverage table").first
    total = table.locator("tbody tr").count()
    assert first_cells(table) == ["power_watts"]
    assert page.locator("#coverage .filter output").inner_text().strip() == f"1 of {total}"
    box.fill("")
    assert len(first_cells(table)) == total
    page.close()


def test_without_scripts_every_table_is_there(browser: Browser, opened: Opened, folder: Path) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((folder / "report.html").as_uri())
        for table in page.locator("table").all():
            assert table.is_visible()
        assert page.locator("table").count() == opened.page.locator("table").count()
        assert page.locator("tbody tr").count() == opened.page.locator("tbody tr").count()
        assert page.locator("button, input").count() == 0


@pytest.mark.parametrize("width", WIDTHS.values(), ids=list(WIDTHS))
def test_the_page_never_scrolls_sideways(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    assert overflow(opened.page) == []


def overflow(page: Page) -> list[str]:
    """Elements that reach beyond the window and do not stand in a box that scrolls."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
            [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1
                && !each.closest(".scroll, .chart, pre")).map((each) => `${each.tagName} ${each.className} ${each.id}`)"""
    )
    return found


def test_no_script_but_the_pages_own_may_run(opened: Opened) -> None:
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken = 1\">')")
    opened.page.evaluate(
        "{ const script = document.createElement('script'); script.text = 'window.broken = 1'; document.body.append(script); }"
    )
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("window.broken") is None
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_a_chart_is_enlarged_by_a_link_and_back_without_scripts(browser: Browser, demo: Path) -> None:
    with browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto((demo / "report.html").as_uri())
        drawing = page.locator("#idle-chart svg")
        before = (drawing.bounding_box() or {})["width"]
        page.locator("#idle a.enlarge").click()
        assert (drawing.bounding_box() or {})["width"] > 2 * before
        page.locator("#idle a.shrink").click()
        assert (drawing.bounding_box() or {})["width"] == before


def scale(page: Page) -> float:
    """How much larger than at first the first panel's chart is drawn, once what was asked for is on the screen."""
    drawn: float = page.locator("#idle-chart svg").evaluate(
        """svg => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
            done(new DOMMatrix(getComputedStyle(svg).transform).a))))"""
    )
    return drawn


def test_a_chart_is_zoomed_moved_and_shown_whole_again_by_buttons_keys_and_mouse(browser: Browser, demo: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto((demo / "report.html").as_uri())
    chart, buttons = page.locator("#idle-chart .chart"), page.locator("#idle-chart .zoom-controls button")
    assert scale(page) == 1 and buttons.nth(2).is_disabled()
    buttons.nth(0).click()
    assert scale(page) > 1.2
    buttons.nth(2).click()
    assert scale(page) == 1
    chart.press("+")
    chart.press("+")
    before, left = scale(page), (chart.locator("svg").bounding_box() or {})["x"]
    assert before > 2
    chart.press("ArrowRight")
    assert scale(page) == before
    assert (chart.locator("svg").bounding_box() or {})["x"] < left
    chart.press("-")
    assert 1 < scale(page) < before
    chart.press("0")
    assert scale(page) == 1
    chart.dblclick()
    assert scale(page) == 2
    chart.press("Escape")
    assert scale(page) == 1
    page.close()


def test_what_is_under_the_pointer_says_its_number(browser: Browser, demo: Path) -> None:
    with browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto((demo / "report.html").as_uri())
        for chart, words in (("header .bar", "effective: "), ("#idle-chart .chart", "held and idle")):
            page.locator(chart).first.scroll_into_view_if_needed()
            box = page.locator(f"{chart} path:has(title)").first.bounding_box() or {}
            middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
            told = page.evaluate("([x, y]) => document.elementFromPoint(x, y).querySelector('title')?.textContent", middle)
            assert words in told
