"""Folders of the SQL, the templates and the bundled recording, in an installed package or a checkout."""

from __future__ import annotations

import csv
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_CHECKOUT = _PACKAGE.parent


def _folder(installed: str, checkout: str) -> Path:
    """Return the folder inside the package (wheel) or beside it (checkout or editable install)."""
    inside = _PACKAGE / installed
    return inside if inside.is_dir() else _CHECKOUT / checkout


QUERIES = _folder("queries", "queries")
TEMPLATES = _folder("templates", "templates")
RECORDING = _folder("fixtures", "data/fixtures") / "h200-recording"


def catalog_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in ``queries/catalog``."""
    return csv_rows(QUERIES / "catalog" / name)


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
