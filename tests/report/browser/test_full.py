"""The page of a large cluster, with more of everything than it shows: few pages on paper, and for every reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from built_once import built_once
from playwright.sync_api import Browser, Page

from ..full import write_full_report
from .test_page import WIDTHS, overflow
from .test_readers import SUMMARY_PAGES_MAX, told

ROWS_FOR_AXE = 2
CARDS_FOR_AXE = 2


@pytest.fixture(scope="module")
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once("full-report", write_full_report, request, tmp_path_factory)


@pytest.fixture(scope="module")
def page(browser: Browser, full: Path) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((full / "report.html").as_uri())
    yield page
    page.close()


def test_it_shows_every_panel(page: Page) -> None:
    assert page.locator("#second .panel").count() == 15
    assert page.locator("#second dl.settings").count() == 0


def test_on_paper_it_is_four_pages_whatever_there_is(page: Page) -> None:
    assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") <= SUMMARY_PAGES_MAX


@pytest.mark.parametrize("width", WIDTHS.values(), ids=list(WIDTHS))
def test_it_never_scrolls_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert overflow(page) == []


def test_axe_finds_no_serious_violation(page: Page) -> None:
    # One of a kind suffices: of many rows, bars and cards alike the first are looked at, for axe reads every element.
    page.evaluate(
        """([rows, cards]) => {
            for (const kind of ["tbody tr", "svg path", "svg text", "dl.definitions > div"])
                for (const each of document.querySelectorAll(`${kind}:nth-child(n + ${rows + 1})`)) each.remove();
            for (const kind of [".card", ".team"])
                for (const each of [...document.querySelectorAll(kind)].slice(cards)) each.remove();
        }""",
        [ROWS_FOR_AXE, CARDS_FOR_AXE],
    )
    violations = Axe().run(page).response["violations"]
    assert [told(each) for each in violations if each["impact"] in ("serious", "critical")] == []
