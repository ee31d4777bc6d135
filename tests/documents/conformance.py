"""docs/conformance.md, written from the corpus of exporters' texts in tests/conformance."""

from __future__ import annotations

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from gpureport.values.catalog import Catalog
from gpureport.values.runtime.resources import QUERIES
from gpureport.values.series import METRIC_LABEL, Labels

from .markdown import markdown_table

FOLDER = QUERIES.parent / "tests" / "conformance"
CORPUS = sorted(path.parent for path in FOLDER.glob("*/metrics.txt"))
_INTRO = """# Exporters that are read

Generated from `tests/conformance`: texts of exporters, version by version, each with its origin and what it must be read as,
worked out by hand. To add an exporter, add a folder with `metrics.txt`, `origin.txt` and `expected.csv`. "Read" is how many
metrics of the text are read ([which](metrics.md)), "not read" are metrics of accelerators that no figure needs; `import`,
`export` and `doctor` name such metrics of your own.
"""


def series_of(text: str) -> list[tuple[Labels, float]]:
    """The series of an exporter's text, and their values."""
    families = text_string_to_metric_families(text)
    return [({METRIC_LABEL: each.name, **each.labels}, each.value) for family in families for each in family.samples]


def render_conformance(catalog: Catalog) -> str:
    """docs/conformance.md."""
    rows = []
    for folder in CORPUS:
        series = [labels for labels, _ in series_of((folder / "metrics.txt").read_text(encoding="utf-8"))]
        read = {labels[METRIC_LABEL] for labels in series if catalog.meaning(labels) is not None}
        unread = catalog.unread(Counter(labels[METRIC_LABEL] for labels in series))
        origin = (folder / "origin.txt").read_text(encoding="utf-8").strip()
        rows.append((folder.name, len(read), ", ".join(f"`{name}`" for name in unread), origin))
    return f"{_INTRO}\n{markdown_table(('exporter and version', 'read', 'not read', 'origin'), rows)}"
