"""Render or lint a chart by Helm's own engine, for a process of its own: the engine is a Go runtime, which no test should fork.

Arguments: the chart's folder. Standard input: the values as YAML. Standard output: a JSON object of the templates' texts by
file, of what lint says, or of the error.
"""

from __future__ import annotations

import json
import sys

import helm_python

values = helm_python.values_from_yaml(sys.stdin.read() or "{}")
try:
    rendered = helm_python.Chart.load(sys.argv[1]).render(values, name="nightly", namespace="monitoring")
    print(json.dumps({"rendered": rendered, "lint": helm_python.lint(sys.argv[1], values, strict=True)}))
except helm_python.HelmError as error:
    print(json.dumps({"error": str(error)}))
