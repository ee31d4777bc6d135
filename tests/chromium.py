"""The path of the Chromium that shows the page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FETCHED = Path(__file__).parents[1] / ".cache" / "browser" / "chromium"
OWN = ("chromium", "chromium-browser", "google-chrome")


def chromium_program() -> str:
    """CHROMIUM_BIN, else the machine's own Chromium, else the one unpacked by `make browser`; '' where there is none."""
    found = [os.environ.get("CHROMIUM_BIN"), *map(shutil.which, OWN), str(FETCHED) if FETCHED.exists() else None]
    return next(filter(None, found), "")
