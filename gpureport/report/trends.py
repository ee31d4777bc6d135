"""Changes against the window before, as tiles tell them: of the clusters of which both windows are known, like against like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpureport import formats
from gpureport.figures import REASONS
from gpureport.report.results import Result

_LEAST_CHANGE = 0.05
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class Trends:
    """Rows of report.period of both windows; none where there is no window before."""

    now: Sequence[_Row] = ()
    before: Sequence[_Row] = ()
    reasons: Sequence[Mapping[str, str]] = ()
    """Of ``before``, row by row: why figures are unknown."""

    def share(self, buckets: Sequence[str]) -> str:
        """Of a part of capacity, in percentage points."""
        now, before = (self._share(rows, buckets) for rows in (self.now, self.before))
        if now is None or before is None:
            return ""
        points = abs(now - before) * 100
        return "as before" if points < _LEAST_CHANGE else f"{_arrow(now - before)} {formats.percent_points(points)} points"

    def _share(self, rows: Sequence[_Row], buckets: Sequence[str]) -> float | None:
        part = [added(rows, f"{bucket}_gpu_hours") for bucket in buckets]
        capacity = added(rows, "capacity_gpu_hours")
        return sum(each for each in part if each is not None) / capacity if capacity and None not in part else None

    def amount(self, figure: str, where: Mapping[str, Any] | None = None) -> str:
        """Of a figure, in percent of what it was; with ``where`` only if all rows have these values, else nothing is alike."""
        if not self.before or any(row[name] != found for row in self.now for name, found in (where or {}).items()):
            return ""
        now, before = (added(rows, figure) for rows in (self.now, self.before))
        if before is None:
            reason = next((found[figure] for found in self.reasons if figure in found), "")
            return f"before: {formats.UNKNOWN}{f' ({REASONS.get(reason, reason)})' if reason else ''}"
        return "" if now is None else change(now, before)

    def of(self, cluster: str) -> Trends:
        """The same of one cluster."""
        kept = [number for number, row in enumerate(self.before) if row["cluster"] == cluster]
        now = [row for row in self.now if row["cluster"] == cluster]
        return Trends(now, [self.before[number] for number in kept], [self.reasons[number] for number in kept])


def read_trends(period: Result | None) -> Trends:
    """From report.period; nothing is known without it."""
    if period is None:
        return Trends()
    rows = list(zip(period.rows.iter_rows(named=True), period.reasons, strict=True))
    before = [(row, reasons) for row, reasons in rows if row["period"] == "before"]
    now = [row for row, _ in rows if row["period"] == "now"]
    return Trends(now, [row for row, _ in before], [reasons for _, reasons in before])


def added(rows: Sequence[_Row], figure: str) -> float | None:
    """Clusters added; unknown where one of them is, or there is none."""
    values = [row[figure] for row in rows]
    return None if not values or None in values else float(sum(values))


def change(now: float, before: float) -> str:
    """A change of an amount, in percent of what it was."""
    if not before:
        return "as before" if not now else "▲ from 0"
    points = abs(now / before - 1) * 100
    return "as before" if points < _LEAST_CHANGE else f"{_arrow(now - before)} {formats.percent_points(points)} %"


def _arrow(by: float) -> str:
    return "▲" if by > 0 else "▼"
