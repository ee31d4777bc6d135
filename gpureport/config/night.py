"""How the nightly job goes: what it fetches, what it keeps, and where it says how it went."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpureport.config.section import Section, formed
from gpureport.errors import UsageError
from gpureport.window import AGE


class Export(Section):
    """How a day is cut for fetching, and how far ``run`` looks back."""

    samples_per_group: int = Field(1_800_000, gt=0, le=4_000_000)
    keep_raw: bool = False
    backfill_days: int = Field(7, ge=0)
    restate_days: int = Field(3, ge=0)


MetricName = Literal[
    "gpureport_run_success",
    "gpureport_run_exit_code",
    "gpureport_run_last_success_timestamp_seconds",
    "gpureport_run_duration_seconds",
    "gpureport_run_samples_total",
    "gpureport_run_coverage_ratio",
    "gpureport_run_unknown_gpu_hours",
    "cluster_gpu_pending_pod_count",
    "cluster_gpu_pending_request_total",
    "cluster_gpu_requested_allocatable_ratio",
]


def _without_secrets(url: str) -> str:
    """A URL without credentials; one with them is not repeated."""
    if "@" in url:
        raise UsageError("metrics.pushgateway_url must not hold credentials; give metrics.username and metrics.password_file")
    return url


class Metrics(Section):
    """Where a run publishes how it went."""

    file: str = ""
    pushgateway_url: Annotated[str, AfterValidator(_without_secrets)] = ""
    job: str = Field("gpureport", min_length=1)
    username: str = ""
    password_file: str = ""
    leave_out: tuple[MetricName, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be published."""
        return bool(self.file or self.pushgateway_url)


_Age = Annotated[str, formed(AGE, "days, weeks or years, as 30d, 8w or 1y")]


class Retention(Section):
    """For how long samples and facts are kept, as 30d, 8w or 2y; without end where nothing is said."""

    keep_samples: _Age = ""
    keep_facts: _Age = ""
