"""docs/findings.md, written from queries/catalog/finding.csv, xid.csv and the thresholds' own descriptions."""

from __future__ import annotations

from gpureport.documents.markdown import markdown_table
from gpureport.findings import Thresholds, rules, xid_classes

_INTRO = """# Findings

Generated from `queries/catalog/finding.csv`, `queries/catalog/xid.csv` and `gpureport/findings.py`.
`report.finding` has a row for each thing that deserves a look, with its evidence, what is at stake and the statement that
shows it. A code keeps its meaning for good. What was not seen for long enough gives no finding.
`gpureport report --fail-on warning` (or a code, or `report.fail_on`) ends with exit code 3 where there is one.

"""
_THRESHOLDS = """
## Thresholds

Each can be set in the configuration's `[thresholds]`; the ones in force stand beside each finding.

"""
_SUPPRESSIONS = """
## What is known already

A finding that is known is listed, and fails no run, until a day. `*` and `?` stand for letters; what is
left out matches everything.

```toml
[[suppressions]]
code = "GR101"
until = 2026-12-31
reason = "kept warm for the launch"
namespace = "ml-prod"
pod = "server-*"
```
"""
_XIDS = """
## XID errors

What an XID tells of, as `report.finding` classes it; a code that is not here counts as of no known class.

"""


def render_findings() -> str:
    """docs/findings.md."""
    codes = [(code, rule["title"], rule["severity"], rule["rule"], rule["action"]) for code, rule in rules().items()]
    thresholds = [(name, f"{field.default:g}", field.description) for name, field in Thresholds.model_fields.items()]
    xids = [
        (row["code"], row["class"], row["severity"], row["meaning"], f"{row['source']}, {row['as_of']}") for row in xid_classes()
    ]
    return (
        _INTRO
        + markdown_table(("code", "finding", "severity", "said when", "what to do"), codes)
        + _THRESHOLDS
        + markdown_table(("threshold", "default", "meaning"), thresholds)
        + _SUPPRESSIONS
        + _XIDS
        + markdown_table(("XID", "class", "severity", "meaning", "source"), xids)
    )
