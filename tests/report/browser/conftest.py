"""Pages of the report in a real Chromium, opened from the disk as a reader opens them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chromium import chromium_program
from playwright.sync_api import Browser, Page, sync_playwright


@dataclass
class Opened:
    """A page, and what it asked for and complained of since it was opened."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium_program()
    if not program:
        pytest.skip("no Chromium here: run `make browser`, or set CHROMIUM_BIN")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program)
        yield opened
        opened.close()


def new_page(browser: Browser) -> Page:
    """A laptop's; patient, for the machine may be busy."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(300_000)
    return page


@pytest.fixture(params=["small", "demo"])
def folder(request: pytest.FixtureRequest) -> Path:
    """Where a report stands: the one made by hand, with hostile names, and the demo's."""
    chosen: Path = request.getfixturevalue("out" if request.param == "small" else "demo")
    return chosen


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Opened]:
    """The report as most read it: on a laptop, in light colours."""
    page = new_page(browser)
    seen = Opened(page)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.goto((folder / "report.html").as_uri())
    yield seen
    page.close()
