"""Templates lay out what was prepared: they reckon nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, nodes

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
