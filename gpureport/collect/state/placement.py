"""Nodes that a pod allows: its node selector and its required affinity as one list of alternatives."""

from __future__ import annotations

import json
from typing import Any

from gpureport.collect.state.fields import Object, listed, mapping, objects, text, texts

Expression = dict[str, Any]


def placement(spec: Object) -> str:
    """Alternatives as JSON, each a list of expressions on node labels that must all hold; '' where any node is allowed."""
    chosen = [_expression(name, "In", [value]) for name, value in sorted(texts(spec.get("nodeSelector")).items())]
    required = mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = objects(mapping(required).get("nodeSelectorTerms"))
    alternatives = [[*chosen, *map(_read, objects(term.get("matchExpressions")))] for term in terms or [{}]]
    return json.dumps(alternatives, separators=(",", ":")) if any(alternatives) else ""


def _read(found: Object) -> Expression:
    values = [each for each in listed(found.get("values")) if isinstance(each, str)]
    return _expression(text(found.get("key")), text(found.get("operator")), values)


def _expression(key: str, operator: str, values: list[str]) -> Expression:
    return {"key": key, "operator": operator, "values": values}
