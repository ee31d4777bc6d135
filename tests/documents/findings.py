"""docs/findings.md, written from queries/catalog/finding.csv, xid.csv and the thresholds' own descriptions."""

from __future__ import annotations

from collections import defaultdict

from gpureport.config.findings import Thresholds, rules, xid_classes

from .markdown import markdown_table

_INTRO = """# Findings

`report.finding` has a row for each finding, with its evidence, the GPU-hours at stake, what to do, and the SQL that shows it.
Generated from `queries/catalog/finding.csv`, `queries/catalog/xid.csv` and `gpureport/config/findings.py`.

- A code never changes its meaning. Too little data gives no finding: of throttling and SM activity, under ten minutes.
- `gpureport report --fail-on warning` ends with exit code 3 if there is a warning or worse; a code (`GR101`) works too, and so
  does `report.fail_on` in the configuration.
- Words such as `idle_ratio` are [thresholds](#thresholds).
- A known finding can be suppressed until a day ([`[[suppressions]]`](operations.md#configuration)): it is still listed, but does
  not fail a run.

"""
_THRESHOLDS = """
## Thresholds

Set them under `[thresholds]` in the configuration. Those in force are beside each finding.

"""
_XIDS = """
## XID errors

What `report.finding` says of an XID error, with NVIDIA's names and its first action (the second is in its catalog, and in
`queries/catalog/xid.csv`); of some it names none. Any other code has no known class.

"""


def render_findings() -> str:
    """docs/findings.md."""
    codes = [(code, rule["title"], rule["severity"], rule["rule"], rule["action"]) for code, rule in rules().items()]
    thresholds = [(name, f"{field.default:g}", field.description) for name, field in Thresholds.model_fields.items()]
    actions = {row["immediate_action"]: row["action"] for row in xid_classes() if row["immediate_action"]}
    columns = ("class", "severity", "meaning", "immediate_action")
    named: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in xid_classes():
        named[tuple(row[column] for column in columns)][row["name"]].append(f"`{row['code']}`")
    xids = [(_codes(names), *cells) for cells, names in named.items()]
    return (
        _INTRO
        + markdown_table(("code", "finding", "severity", "reported when", "what to do"), codes)
        + _THRESHOLDS
        + markdown_table(("threshold", "default", "meaning"), thresholds)
        + _XIDS
        + markdown_table(("XID and name", "class", "severity", "meaning", "action"), xids, is_code=False)
        + "\n"
        + markdown_table(("action", "what to do"), actions.items())
    )


def _codes(names: dict[str, list[str]]) -> str:
    """Codes and names that share a row; of more than three names the first and the last."""
    if len(names) > 3:
        first, *_, last = names
        return f"{', '.join(code for found in names.values() for code in found)} {first} to {last}"
    return "; ".join(f"{', '.join(found)} {name}" for name, found in names.items())
