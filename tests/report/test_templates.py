"""Templates lay out what was prepared: they reckon nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from gpureport.compute.query import load
from gpureport.report.page.words import own_columns, tables_of_page
from gpureport.values.runtime.resources import TEMPLATES

RECKONING = (nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow)
RECKONING_FILTERS = {"sum", "round", "abs", "int", "float", "min", "max"}


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.j2")), ids=lambda path: path.name)
def test_a_template_holds_no_arithmetic(path: Path) -> None:
    tree = Environment().parse(path.read_text())
    added = [node for node in tree.find_all(nodes.Add) if not isinstance(node.left, nodes.List)]  # + joins lists too
    reckoned = [node for kind in RECKONING for node in tree.find_all(kind)]
    filtered = [node.name for node in tree.find_all(nodes.Filter) if node.name in RECKONING_FILTERS]
    assert (added, reckoned, filtered) == ([], [], [])


def test_hours_of_schedulable_gpus_and_of_unknown_allocation_have_one_name() -> None:
    """A table of the page without titles of its own shows those of the files."""
    queries = load()
    shown = {table: {*queries[f"report.{table}"].columns} for table in tables_of_page() if f"report.{table}" in queries}
    own = {table: {each.name: each.title for each in own_columns().get(table, ())} for table in shown}
    words = {"usable_gpu_hours": "Schedulable", "unnamed_gpu_hours": "Allocation unknown"}
    named = {own[table].get(name, name) for name in words for table, columns in shown.items() if name in columns}
    assert named == {f"{title}, GPU\u2011h" for title in words.values()}
    for table, columns in shown.items():  # days of the report's time zone, or of UTC
        query = queries[f"report.{table}"]
        has_zone = "timezone" in query.params
        assert own[table].get("day") in (None, "Day" if has_zone else "Day (UTC)"), table
        assert not has_zone or "day" not in columns or "time zone" in query.columns["day"], table
    assert own["idle_by_holder"]["idle_ratio"] == "Share of the cluster's idle"
