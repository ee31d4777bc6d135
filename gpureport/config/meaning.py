"""Settings that figures depend on, and the coverage that figures and reports need."""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gpureport.config.section import Section, formed
from gpureport.values.window import parse_zone

DEFAULT_MEMORY_THRESHOLD_RATIO = 0.9
_LEAST_MB = 50
_MOST_GRAMS = 10_000.0


def _no_boolean(given: object) -> object:
    """Refuse a boolean, because pydantic converts it into a number."""
    if isinstance(given, bool):
        raise ValueError(f"give a number, not {str(given).lower()}")
    return given


_Amount = Annotated[float, BeforeValidator(_no_boolean), Field(ge=0)]


class Saturation(Section):
    """Saturation figures: whether they are computed, and the memory ratio that counts as full."""

    enabled: bool = True
    memory_threshold_ratio: float = Field(DEFAULT_MEMORY_THRESHOLD_RATIO, gt=0, le=1)


class Power(Section):
    """Settings of energy attribution."""

    idle_watts: dict[str, Annotated[_Amount, Field(lt=10_000)]] = Field({})


class Nos(Section):
    """Settings of nos' Helm chart."""

    gpu_memory_gb_per_gpu: int = Field(32, gt=0, le=10_000)


class Koordinator(Section):
    """Arguments of Koordinator's ElasticQuota plugin."""

    enable_min_quota_scale: bool = True


class Kueue(Section):
    """Settings of Kueue's configuration."""

    usage_half_life_hours: float = Field(0, ge=0, le=100_000)


class QuotaSystems(Section):
    """Settings of quota systems that their API objects do not show."""

    nos: Nos = Nos()
    koordinator: Koordinator = Koordinator()
    kueue: Kueue = Kueue()


class Owners(Section):
    """Teams of namespaces."""

    team_label: str = Field("team", min_length=1)


class Retired(Section):
    """Retirement of a cluster, a node or a GPU, which is not expected from a day on."""

    since: date
    cluster: str = ""
    node: str = ""
    device: str = ""

    @model_validator(mode="after")
    def _names_something(self) -> Retired:
        if not (self.cluster or self.node or self.device):
            raise ValueError("name a cluster, a node or a device (UUID), or several of them for one that is in all")
        return self


def _number_or_days(given: object) -> object:
    """Return a number, or amounts by day; ValueError for anything else."""
    try:
        amount = None if isinstance(given, dict) else float(_no_boolean(given))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        amount = -1.0
    if (not given and amount is None) or (amount is not None and not 0 <= amount < math.inf):
        raise ValueError("neither a number from 0 on nor amounts by day, such as { 2026-01-01 = 3.6 }")
    return given if amount is None else amount


Price = Annotated[dict[date, _Amount] | float, BeforeValidator(_number_or_days)]
"""An amount, or amounts by the first day on which each is in force."""


class Prices(Section):
    """Price of a GPU-hour, by model or for ``all``, and of a kWh; all in one currency."""

    gpu_hour: dict[str, Price] = Field({})
    kwh: Price | None = None
    currency: str = ""
    budgets: dict[str, _Amount] = Field({})
    """Monthly budget of each team."""

    @property
    def currency_code(self) -> str:
        """Currency code of ISO 4217; '' where the configured currency is neither a code nor a symbol of only one currency."""
        return {"$": "USD", "€": "EUR", "£": "GBP"}.get(
            self.currency, self.currency if re.fullmatch("[A-Z]{3}", self.currency) else ""
        )


def _number_or_file(given: object) -> object:
    """Return grams per kWh, or the path of a file. ValueError for a number with a unit, which is neither."""
    if given is None:
        return given
    try:
        grams = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        if isinstance(given, str) and re.match(r"\s*[-+\d]", given) and not Path(given).is_file():
            raise ValueError("neither a number of grams per kWh nor a CSV file that is there") from None
        return given
    if not 0 <= grams <= _MOST_GRAMS:
        raise ValueError(f"give grams per kWh, 0 to {_MOST_GRAMS:g}")
    return grams


class Carbon(Section):
    """Emissions per kWh, of the local grid and by contract: a number, or the path of a CSV time series."""

    pue: float = Field(1.0, ge=1, le=10)
    grams_per_kwh: Annotated[float | Path | None, BeforeValidator(_number_or_file)] = None
    market_grams_per_kwh: Annotated[float | Path | None, BeforeValidator(_number_or_file)] = None


def _listed(value: Any) -> Any:
    """Split text at its commas, as a flag or the environment gives it."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


class Compute(Section):
    """DuckDB's limits."""

    memory_limit: Annotated[str, formed(r"\d+(\.\d+)? ?([KMGT]i?B|%)", "a size, as 800MB, 2GiB or 60%")] = "1GB"
    threads: int = Field(2, gt=0, le=256)

    @model_validator(mode="after")
    def _is_enough(self) -> Compute:
        """Refuse too little memory, with which DuckDB fails in many ways, and a limit above any machine's memory."""
        size, unit = re.fullmatch(r"([\d.]+) ?(.)(?:i?B)?", self.memory_limit).groups()  # type: ignore[union-attr]
        if unit == "%" and not 1 <= float(size) <= 100:
            raise ValueError(f"memory_limit is {self.memory_limit}; give 1% to 100%")
        megabytes = float(size) * {"K": 1e-3, "M": 1, "G": 1e3, "T": 1e6, "%": math.inf}[unit]
        if megabytes < _LEAST_MB * self.threads or 1e8 < megabytes < math.inf:
            raise ValueError(
                f"memory_limit is {self.memory_limit}; give {_LEAST_MB}MB or more for each of the {self.threads} threads"
            )
        return self


def _zone(name: str) -> str:
    parse_zone(name)
    return name


class Notify(Section):
    """Messages with a report's answers: to a chat's webhook (its URL is a secret, so it is in a file), and by mail."""

    webhook_url_file: str = ""
    smtp_server: Annotated[str, formed(r"([^\s:/@]+(:\d{1,5})?)?", "the name of a mail server, as mail or mail:587")] = ""
    smtp_login_file: str = ""
    """A file with USER:PASSWORD."""
    mail_from: str = ""
    mail_to: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()

    @model_validator(mode="after")
    def _goes_together(self) -> Notify:
        if len({bool(self.smtp_server), bool(self.mail_from), bool(self.mail_to)}) > 1:
            raise ValueError("smtp_server, mail_from and mail_to go together")
        return self


class Report(Section):
    """Settings of a report, such as the coverage that it needs."""

    figure_min_coverage_ratio: float = Field(0.5, ge=0, le=1)
    min_coverage_ratio: float = Field(0.0, ge=0, le=1)
    idle_policy: Literal["separate", "holder", "pool"] = "separate"
    fail_on: str = ""
    by: Annotated[str, formed(r"([a-zA-Z0-9][a-zA-Z0-9_./-]*)?", "the name of a namespace label, or namespace")] = ""
    cluster: str = ""
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """Time zone of days, weekdays and hours; samples and facts are in UTC."""
    csv_rows: int = Field(100_000, ge=0)
    facts: bool = False
    only: Annotated[tuple[Literal["html", "csv", "parquet", "json", "duckdb"], ...], BeforeValidator(_listed)] = ()
    """Forms to write; all if empty."""
    notify: Notify = Notify()


class Link(Section):
    """Bandwidth of a model's links in one direction, for clusters whose exporter does not publish it."""

    pcie_bytes_per_second: float | None = Field(None, gt=0)
    nvlink_bytes_per_second: float | None = Field(None, gt=0)
