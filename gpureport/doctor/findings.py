"""Finding of a check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpureport.values.catalog.figures import FIGURES

Status = Literal["missing", "partial", "note", "ok"]


@dataclass(frozen=True)
class Remedy:
    """Exact lines, and the place where they go."""

    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One row: what was read, what is there, what its absence costs and what to add.

    ``missing`` costs its figures on all devices, ``partial`` on some, ``note`` costs none.
    """

    code: str
    status: Status
    subject: str
    found: str
    costs: tuple[str, ...] = ()
    """Figures of the report that are unknown because of it; ``<table>.*`` for all of a table."""
    add: tuple[Remedy, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether a report lacks something because of it."""
        return self.status in ("missing", "partial")


def verdict(findings: Iterable[Finding], subject: str, what: str = "a report") -> str:
    """One sentence: what a report (or whatever else is made of it) would lack."""
    losses = [finding for finding in findings if finding.is_loss]
    if not losses:
        return f"{what} from {subject} would be whole"
    everywhere = _costs(losses, "missing")
    somewhere = [cost for cost in _costs(losses, "partial") if cost not in everywhere]
    lacks = [*_counted(everywhere, "all", ""), *_counted(somewhere, "some", " on some devices")]
    return f"{what} from {subject} would lack {' and '.join(lacks)}"


def _costs(losses: Iterable[Finding], status: Status) -> list[str]:
    return list(dict.fromkeys(cost for finding in losses if finding.status == status for cost in finding.costs))


def _counted(costs: list[str], how_many: str, where: str) -> list[str]:
    """Rows of whole tables, columns that are no figures, and figures by number and name."""
    tables = [cost.removesuffix(".*") for cost in costs if cost.endswith(".*")]
    figures = [name for name in FIGURES if name in costs]
    others = [cost for cost in costs if not cost.endswith(".*") and cost not in FIGURES]
    found = [f"{how_many} rows of {', '.join(tables)}"] if tables else []
    found += [f"{name}{where}" for name in others]
    return found + ([f"{len(figures)} of {len(FIGURES)} figures{where} ({', '.join(figures)})"] if figures else [])
