"""docs/findings.md, written from queries/catalog/finding.csv, xid.csv and the thresholds' own descriptions."""

from __future__ import annotations

from gpureport.config.findings import Thresholds, rules, xid_classes
from gpureport.pipeline.schema import markdown_table

_INTRO = """# Findings

`report.finding` has a row for each thing that deserves a look, with its evidence, what is at stake, what to do about it, and
the SQL that shows it. Generated from `queries/catalog/finding.csv`, `queries/catalog/xid.csv` and `gpureport/config/findings.py`.

- A code never changes its meaning.
- Too little data gives no finding.
- `gpureport report --fail-on warning` ends with exit code 3 if there is a warning or worse; a code (`GR101`) works too, and so
  does `report.fail_on` in the configuration.
- Words in the third column such as `idle_ratio` are [thresholds](#thresholds). Known findings can be
  [suppressed](#suppressions), and the [classes of XID errors](#xid-errors) are at the end.

"""
_THRESHOLDS = """
## Thresholds

Each one can be set under `[thresholds]` in the configuration. The thresholds in force are beside each finding.

"""
_SUPPRESSIONS = """
## Suppressions

A finding that is known and accepted can be suppressed until a day: it is still listed, but does not fail a run. `*` and `?` are
wildcards; what is left out matches everything.

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

The class that `report.finding` gives to an XID. A code that is not listed here has no known class.

"""


def render_findings() -> str:
    """docs/findings.md."""
    codes = [(code, rule["title"], rule["severity"], rule["rule"], rule["action"]) for code, rule in rules().items()]
    thresholds = [(name, f"{field.default:g}", field.description) for name, field in Thresholds.model_fields.items()]
    columns = ("code", "name", "class", "severity", "meaning", "action", "investigatory_action")
    xids = [tuple(row[column] for column in columns) for row in xid_classes()]
    return (
        _INTRO
        + markdown_table(("code", "finding", "severity", "reported when", "what to do"), codes)
        + _THRESHOLDS
        + markdown_table(("threshold", "default", "meaning"), thresholds)
        + _SUPPRESSIONS
        + _XIDS
        + markdown_table(("XID", "NVIDIA's name", "class", "severity", "meaning", "what to do", "NVIDIA's second step"), xids)
    )
