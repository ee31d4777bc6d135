"""What figures are worked out by, and when they are too thin to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gpureport.config.section import Section, formed

DEFAULT_MEMORY_THRESHOLD_RATIO = 0.9


class Saturation(Section):
    """What saturation figures are computed, and from where memory counts as full."""

    enabled: bool = True
    memory_threshold_ratio: float = Field(DEFAULT_MEMORY_THRESHOLD_RATIO, gt=0, le=1)


class Power(Section):
    """What energy is attributed by."""

    idle_watts: dict[str, Annotated[float, Field(ge=0, lt=10_000)]] = Field({})


class Nos(Section):
    """What nos' chart was installed with."""

    gpu_memory_gb_per_gpu: int = Field(32, gt=0, le=10_000)


class Koordinator(Section):
    """Arguments of Koordinator's ElasticQuota plugin."""

    enable_min_quota_scale: bool = True


class QuotaSystems(Section):
    """What quota systems count by, where their objects do not say."""

    nos: Nos = Nos()
    koordinator: Koordinator = Koordinator()


class Owners(Section):
    """Whose the holders are."""

    team_label: str = Field("team", min_length=1)


class Prices(Section):
    """What an hour of a GPU costs, by model or for ``all``, and a kWh; in one currency, whichever it is."""

    gpu_hour: dict[str, Annotated[float, Field(ge=0)]] = Field({})
    kwh: float | None = Field(None, ge=0)
    currency: str = ""


class Carbon(Section):
    """What a kWh emits, of the grid where it is used and by contract: a number, or the path of a CSV time series."""

    pue: float = Field(1.0, ge=1)
    grams_per_kwh: Annotated[float, Field(ge=0)] | Path | None = None
    market_grams_per_kwh: Annotated[float, Field(ge=0)] | Path | None = None


class Compute(Section):
    """DuckDB's limits, and how long a night computes older days again whose facts are of an older revision."""

    memory_limit: Annotated[str, formed(r"\d+(\.\d+)? ?([KMGT]i?B|%)", "a size, as 800MB, 2GiB or 60%")] = "1GB"
    threads: int = Field(2, gt=0)
    recompute_minutes: float = Field(60.0, ge=0)


class Report(Section):
    """When a figure is too thin to print, and a report to succeed."""

    figure_min_coverage_ratio: float = Field(0.5, ge=0, le=1)
    min_coverage_ratio: float = Field(0.0, ge=0, le=1)
    idle_policy: Literal["separate", "holder", "pool"] = "separate"
    fail_on: str = ""
    by: str = ""
    csv_rows: int = Field(100_000, ge=0)
    facts: bool = False


class Scheduler(Section):
    """Which of the scheduler's gauges the report tells."""

    pending_pod_count: bool = True
    pending_request_units: bool = True
    requested_allocatable_ratio: bool = True


class Link(Section):
    """What a model's links can carry in one direction, for clusters whose exporter does not say."""

    pcie_bytes_per_second: float | None = Field(None, gt=0)
    nvlink_bytes_per_second: float | None = Field(None, gt=0)
