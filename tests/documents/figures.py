"""docs/figures.md, written from the figures' definitions."""

from __future__ import annotations

from collections.abc import Mapping

from documents import anchor
from gpureport.catalog.figures import GROUPS, REASONS, Figure
from gpureport.pipeline.schema import markdown_table
from gpureport.text import formats

_INTRO = """# Figures

For each figure of the report: its formula, its unit, the signals that it is made from, and when it is absent. Generated
from `queries/catalog/figure.csv`. The metrics that carry a signal are in [metrics.md](metrics.md); which one served is in the
column `source_metrics`. Each table of [schema.md](schema.md#report) lists its figures; its SQL is
`queries/<subject>/report.<table>.sql`.

How to read a formula:

- `∫ x dt` adds x over time: each sample counts for as long as it was in force. `∫ x dt ÷ s in which it was known` is a mean
  weighted by time.
- s, h, GPU-h: seconds, hours, hours of a whole GPU. Σ: sum. A name such as `power_watts` is a signal, one such as
  `held_gpu_hours` another figure.
- **A ratio is over the time in which its own signal was seen**, and that time is beside it as `…_seconds`. 1 is 100 %.
- **Held** is the time in which a container held the device, by [`facts.ownership`](architecture.md#who-held-a-device): the
  exporter's labels, corrected by what Kubernetes says. `sharing_mode` says whether it held the device alone,
  `sharing_evidence` how that is known. Time without a holder is unallocated.
- A container with several devices has a row for each, and the roll-up of [`report.container`](schema.md#reportcontainer).

When a figure is absent:

- Absent is null, with a reason in `unknown_reasons`. It is never 0.
- Besides what the tables below say, every figure is absent if its signal was seen for less than `--figure-min-coverage` of
  the time (half, unless set otherwise), and the saturation figures if `saturation.enabled` is false.

"""
_REASONS_TITLE = "Why a figure is absent"
_UNITS = {"%": "ratio", "": "count"}
_OTHER_UNITS = {
    # Endings of figures whose headings show no unit, and percentages that are not kept as ratios.
    "_percent": "%",
    "_percent_avg": "%",
    "gpu_hours": "GPU-h",
    "_cost": "currency of prices",
    "_kwh": "kWh",
    "_grams": "g CO2e",
    "_units": "units",
    "_units_avg": "units",
    "_units_min": "units",
    "_units_max": "units",
    "_bytes_min": "B",
    "_gpus_max": "GPUs",
    "xid_codes": "codes",
}


def render_figures() -> str:
    """docs/figures.md."""
    contents = [f"- [{title}](#{anchor(title)})" for title in (_REASONS_TITLE, *GROUPS)]
    reasons = markdown_table(("reason", "meaning"), REASONS.items())
    tables = [_group(title, group) for title, group in GROUPS.items()]
    return "\n".join([_INTRO + "\n".join(contents) + "\n", f"## {_REASONS_TITLE}\n", reasons, *tables])


def _group(title: str, group: Mapping[str, Figure]) -> str:
    rows = (_row(name, figure) for name, figure in group.items())
    return f"## {title}\n\n" + markdown_table(("figure", "unit", "formula", "signals", "absent"), rows)


def _row(name: str, figure: Figure) -> tuple[str, ...]:
    absent = figure.absent or ("no sample of its signals" if figure.signals else "never")
    return name, _unit(name), figure.formula, ", ".join(figure.signals), absent


def _unit(name: str) -> str:
    other = next((unit for ending, unit in _OTHER_UNITS.items() if name.endswith(ending)), "")
    shown = formats.unit(name)
    return other or _UNITS.get(shown, shown)
