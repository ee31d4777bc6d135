"""Write the generated documents anew: ``make docs``."""

from __future__ import annotations

from pathlib import Path

from documents.conformance import render_conformance
from documents.figures import render_figures
from documents.findings import render_findings
from documents.metrics import render_metrics
from documents.queries import render_index
from gpureport.commands.work.schema import render_schema
from gpureport.compute.query import load
from gpureport.values.catalog import load_catalog
from gpureport.values.runtime.resources import QUERIES


def documents() -> dict[Path, str]:
    """Every generated document's text by its path from the checkout's root."""
    queries = load()
    return {
        Path("docs/schema.md"): render_schema(queries),
        Path("docs/figures.md"): render_figures(),
        Path("docs/metrics.md"): render_metrics(load_catalog()),
        Path("docs/findings.md"): render_findings(),
        Path("docs/conformance.md"): render_conformance(load_catalog()),
        Path("queries/README.md"): render_index(queries),
    }


def main() -> None:
    """Write each document into the checkout."""
    for path, text in documents().items():
        (QUERIES.parent / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
