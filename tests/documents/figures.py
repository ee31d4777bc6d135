"""docs/figures.md, written from the figures' definitions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from gpureport.values.catalog import FIGURES, GROUPS, REASONS, Figure
from gpureport.values.tables import DROP_REASONS

from .markdown import markdown_table

_INTRO = """# Figures

For each figure of the report: its unit, formula and signals, and when it is absent. Generated from `queries/catalog/figure.csv`.
[metrics.md](metrics.md) has the metrics that carry a signal; the column `source_metrics` has the one that served.

How to read it:

- Names end in their unit. Costs are in the currency of the prices, `_units` are the resource's own. Ratios are 0 to 1, and so
  are means and maxima of activity. Σ is a sum; s, h and GPU-h are seconds, hours and hours of a whole GPU.
- `∫ x dt` adds x over time: each sample counts for as long as it was in force. `_avg` is `∫ x dt` ÷ seconds in which x was
  known, `_max` and `_min` are of any instant; their rows have x alone.
- In brackets are the signals, where the name does not say them: "activity" is any of gpu_util_ratio, gr_engine_active_ratio
  and sm_active_ratio, "energy" is energy_joules or power_watts. "The signal" is the one in brackets or in the name.
- **A ratio is over the time in which its own signal was seen**, and that time is beside it as `…_seconds`.
- **Held** is the time in which the device was allocated to a container, by
  [`facts.ownership`](architecture.md#who-held-a-device):
  `sharing_mode` says whether to it alone, `sharing_evidence` how that is known.
- A container with several devices has a row for each, and the roll-up of [`report.container`](schema.md#reportcontainer).

Absent is null, with a reason in `unknown_reasons`; it is never 0. A figure is absent if none of its signals has a sample or
they were seen for less than `--figure-min-coverage` of the time (half, unless set otherwise), if the last column says so, and,
if it is one of saturation, while `saturation.enabled` is false. Numbers in the last column:

"""
_REASONS_TITLE = "Why a figure is absent"
_SIGNALS = {"gpu_util_ratio, gr_engine_active_ratio, sm_active_ratio": "activity", "energy_joules, power_watts": "energy"}
_FEW, _SHORT = 3, 20
"""A clause of so many figures and more characters is written once and numbered."""


_OF = (
    # Means and extremes of the same quantity stand in one row; the page's introduction says what they are of it.
    r"∫ (.+) dt ÷ s in which (?:it was|both were) known",
    r"(?:largest at any instant|mean over snapshots|least of any snapshot|most of any snapshot): (.+)",
    r"largest sample of (.+)",
)


def render_figures() -> str:
    """docs/figures.md."""
    counts = Counter(clause for figure in FIGURES.values() for clause in _clauses(figure))
    common = [clause for clause, count in counts.items() if count >= _FEW and len(clause) > _SHORT]
    numbered = "".join(f"{number}. {text}\n" for number, text in enumerate(common, 1))
    reasons = markdown_table(("reason", "meaning"), (REASONS | DROP_REASONS).items())
    tables = [f"## {title}\n\n{_group(group, common)}" for title, group in GROUPS.items()]
    return "\n".join([f"{_INTRO}{numbered}", f"## {_REASONS_TITLE}\n", reasons, *tables])


def _group(group: Mapping[str, Figure], common: list[str]) -> str:
    """A line for the figures that are made alike, each with its own signal."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, figure in group.items():
        absent = "; ".join(str(common.index(each) + 1) if each in common else each for each in _clauses(figure))
        signals = ", ".join(figure.signals)
        own = f" ({_SIGNALS.get(signals, signals)})" if signals and not name.startswith(signals) else ""
        alike[_formula(name, figure), absent].append(f"`{name}`{own}")
    rows = ((", ".join(names), *cells) for cells, names in alike.items())
    return markdown_table(("figure", "formula", "absent"), rows, is_code=False)


def _clauses(figure: Figure) -> list[str]:
    """When it is absent, but for what the page's introduction says of all."""
    return [clause for clause in figure.absent.split("; ") if clause and not clause.startswith("no sample of ")]


def _formula(name: str, figure: Figure) -> str:
    text = figure.formula.replace(figure.signals[0], "the signal") if len(figure.signals) == 1 else figure.formula
    found = (re.fullmatch(pattern, text) for pattern in _OF if name.endswith(("_avg", "_max", "_min")))
    return next((match[1] for match in found if match), text)
