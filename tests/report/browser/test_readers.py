"""report.html for every reader: screen readers and keyboards by axe-core, light and dark, and on paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import Opened

SUMMARY_PAGES_MAX = 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_serious_violation(opened: Opened, scheme: Literal["light", "dark"], width: int) -> None:
    opened.page.emulate_media(color_scheme=scheme)
    opened.page.set_viewport_size({"width": width, "height": 900})
    violations = Axe().run(opened.page).response["violations"]
    assert [told(each) for each in violations if each["impact"] in ("serious", "critical")] == []


def told(violation: Mapping[str, Any]) -> str:
    nodes = "; ".join(f"{node['html'][:120]} ({node['failureSummary'][:200]})" for node in violation["nodes"][:3])
    return f"{violation['id']}, {len(violation['nodes'])} times: {nodes}"


def test_on_paper_it_is_a_summary_of_few_pages(browser: Browser, demo: Path) -> None:
    page = browser.new_page()
    page.goto((demo / "report.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    page.close()
    assert 1 <= printed.count(b"/Type /Page\n") <= SUMMARY_PAGES_MAX
