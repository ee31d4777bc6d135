"""Pictures of reports for people to look at: three widths, light and dark, and the page as it prints (``make screenshots``).

    python tests/screenshots.py --out FOLDER REPORT_FOLDER…

Writes ``<report>-<width>-<colours>.png``, the first screens, ``…-whole.png`` with what follows, and ``<report>.pdf``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from chromium import chromium_program

WIDTHS = {"wide": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WHOLE_PIXELS_MAX = 8000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    program = chromium_program()
    if not program:
        sys.exit("no Chromium here: run `make browser`, or set CHROMIUM_BIN")
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for report in given.reports:
            for path in picture(browser, report / "report.html", given.out / report.name):
                print(path)
        browser.close()


def picture(browser: Browser, page_file: Path, stem: Path) -> list[Path]:
    """Take the pictures of one page; return their paths."""
    written = []
    for name, (width, height) in WIDTHS.items():
        for scheme in SCHEMES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(page_file.resolve().as_uri())
            first, whole = (stem.with_name(f"{stem.name}-{name}-{scheme}{ending}.png") for ending in ("", "-whole"))
            page.screenshot(path=first)
            length = min(page.evaluate("document.documentElement.scrollHeight"), WHOLE_PIXELS_MAX)
            page.set_viewport_size({"width": width, "height": length})
            page.screenshot(path=whole)
            page.close()
            written += [first, whole]
    page = browser.new_page()
    page.goto(page_file.resolve().as_uri())
    printed = stem.with_name(f"{stem.name}.pdf")
    page.pdf(path=printed, prefer_css_page_size=True)
    page.close()
    return [*written, printed]


if __name__ == "__main__":
    main()
