"""Options common to all commands: configuration and its flags, clock, log, and groups of options."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpureport.store import Place, parse_place
from gpureport.values.errors import UsageError
from gpureport.values.text.log import Lines
from gpureport.values.window import Window, parse_date, parse_period, parse_zone

if TYPE_CHECKING:
    from gpureport.commands.work.reporting import Reported
    from gpureport.config import Config

_LOG = logging.getLogger(__name__)
_SALT_CHARACTERS = 16

FORMATS = click.Choice(["table", "wide", "md", "json", "csv"])


class Invocation:
    """Context of a command: configuration file, environment, time (read once) and form of the log."""

    def __init__(self, config_path: Path | None, environ: Mapping[str, str], now: datetime, lines: Lines) -> None:
        self.config_path = config_path
        self.environ = environ
        self.now = now
        self.lines = lines

    def config(self, **flags: Any) -> Config:
        """Return the configuration, overridden by these flags. A double underscore in a name is the dot of a section."""
        from gpureport.config import load_config  # slow to import, and help does not need it

        config, warnings = load_config(self.config_path, self.environ, flags)
        self.lines.form = config.log_format
        for warning in warnings:
            _LOG.warning(warning)
        return config

    def changing(self, **flags: Any) -> Config:
        """Return the configuration for a command that changes the lake. If configured, a Delta log is written when it ends."""
        config = self.config(**flags)
        if config.lake_delta:
            from gpureport.lake.delta import update_delta_logs

            click.get_current_context().call_on_close(lambda: [*map(_LOG.warning, update_delta_logs(config.lake))])
        return config

    def publish_refusal(self, flags: Mapping[str, Any], error: UsageError) -> None:
        """Publish metrics of a run that a wrong configuration ended, if its settings of metrics can be read."""
        from gpureport.commands.work.job_metrics import Night, publish  # slow to import, and only used here
        from gpureport.config import load_config

        chosen = {name: value for name, value in flags.items() if name.startswith("metrics__") or name == "cluster"}
        with suppress(UsageError):
            config, _ = load_config(self.config_path, self.environ, chosen, only=("metrics", "cluster"))
            night = Night(config.cluster, self.now, error.exit_code, failure=type(error).__name__)
            publish(night, config.metrics)


class PlaceType(click.ParamType[Place]):
    """Type of an option: a folder, or an address on object storage."""

    name = "place"

    def convert(self, value: str | Place, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return ``parse_place`` of the value; UsageError for '', which would mean the current folder."""
        if value == "":
            raise UsageError(
                f"{param.opts[0] if param else 'a place'} is empty; give a folder (. is this one), or s3://BUCKET/PREFIX"
            )
        return parse_place(value)


class FolderType(click.ParamType[Path]):
    """Type of an option: a folder of this machine, for output that cannot be on object storage."""

    name = "folder"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; UsageError for an address."""
        place = parse_place(value)
        if isinstance(place, Path):
            return place
        raise UsageError(f"{place} is object storage; give a folder here, and copy from there what is to be elsewhere")


PLACE, FOLDER = PlaceType(), FolderType()
LAKE = click.option("--lake", type=PLACE, help="The lake: a folder, or s3://, gs:// or az://BUCKET/PREFIX (default: lake).")
CLUSTER = click.option("--cluster", help="The cluster's name in the lake (default: default).")
ONE_CLUSTER = click.option("--cluster", "report__cluster", help="Read this cluster's facts alone (default: all of the lake).")
OUT = click.option("--out", type=PLACE, help="Where to write: a folder, or s3://, gs:// or az://BUCKET/PREFIX (default: out).")
DATE = click.option("--date", "day", help="UTC day, such as 2026-11-20, or today (default: yesterday).")
LOG_FORMAT = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Form of the log on standard error (default: text)."
)
FORMAT = click.option("-o", "--output", type=FORMATS, default="table", show_default=True, help="How rows are printed.")


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return one decorator for several options; help lists them in this order."""
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


NO_KUBERNETES = click.option("--no-kubernetes", is_flag=True, help="Do not read the cluster's Kubernetes state.")
connection_options = _together(
    click.option("--prometheus-url", "prometheus__url", help="Base URL, such as http://prometheus:9090."),
    click.option(
        "--http-config-file", "prometheus__http_config_file", help="HTTP client file in promtool's format: tokens, users, TLS."
    ),
)
"""Options that select the Prometheus server; its other settings are in the configuration."""
cluster_options = _together(
    click.option(
        "--kubeconfig", "kubernetes__kubeconfig", help="Kubeconfig (default: KUBECONFIG, ~/.kube/config, or the pod's own)."
    ),
    click.option("--context", "kubernetes__context", help="Context of the kubeconfig (default: its current one)."),
)
"""Options that select the Kubernetes cluster."""
report_options = _together(
    click.option(
        "--idle-policy",
        "report__idle_policy",
        type=click.Choice(["separate", "holder", "pool"]),
        help="Who is charged for idle energy: no one (separate, the default), its holder, or all holders of the model (pool).",
    ),
    click.option(
        "--figure-min-coverage",
        "report__figure_min_coverage_ratio",
        type=float,
        help="Smallest share of time with data at which a figure is shown (default: 0.5).",
    ),
    click.option(
        "--min-coverage",
        "report__min_coverage_ratio",
        type=float,
        help="Exit with code 4 if a smaller share of the time has data (default: 0).",
    ),
    click.option(
        "--by", "report__by", help="Also write a page for each value of this namespace label (team), or for each namespace."
    ),
    click.option(
        "--fail-on",
        "report__fail_on",
        help="Exit with code 3 for findings of this code (GR101), or of a severity or above (info, warning, critical).",
    ),
    click.option("--facts/--no-facts", "report__facts", default=None, help="Put the hourly facts into gpureport.duckdb too."),
    click.option("--only", "report__only", help="Forms to write: html, csv, parquet, json, duckdb (default: all)."),
    click.option("--csv-rows", "report__csv_rows", type=int, help="Largest table, in rows, that gets a CSV (default: 100000)."),
)
"""Options of a report; also for ``run``."""
retention_options = _together(
    click.option(
        "--keep-samples",
        "retention__keep_samples",
        help="Remove samples and state older than this, such as 30d (default: keep all).",
    ),
    click.option("--keep-facts", "retention__keep_facts", help="Remove facts older than this, such as 2y (default: keep all)."),
)
"""Options of ``prune``; also for ``run``."""
KEEP_RAW = click.option("--keep-raw", "export__keep_raw", is_flag=True, default=None, help="Also keep every raw sample.")


def finished_day(invocation: Invocation, /, text: str | None) -> date:
    """Return the given day, or yesterday without one; UsageError for a day that has not begun."""
    today = invocation.now.date()
    named = {None: today - timedelta(days=1), "yesterday": today - timedelta(days=1), "today": today}
    day = named.get(text) or parse_date(text or "")
    if day > today:
        raise UsageError(f"{day} has not begun (today is {today} UTC); give an earlier --date")
    return day


def print_paths(paths: Sequence[Place]) -> None:
    """Print paths on standard output, one a line."""
    for path in paths:
        click.echo(str(path))


def period(invocation: Invocation, /, config: Config, since: str | None, until: str | None) -> Window:
    """Return the given period; without one, the last complete week, or the part of it in the lake."""
    if since is None:
        if until:
            raise UsageError("--until needs --since. Give both, or neither for the last complete week.")
        from gpureport.commands.work.reporting import default_window

        return default_window(config, invocation.now)
    zone = parse_zone(config.report.timezone)
    named = parse_period(since, invocation.now, zone)
    return Window(named.start_at, parse_period(until, invocation.now, zone).start_at) if until else named


def print_report(invocation: Invocation, reported: Reported) -> None:
    """Print the report's answers, then the path of its page; log its warnings. At the end raise its failure, if any."""
    for warning in reported.warnings:
        _LOG.warning(warning)
    for line in reported.answers:
        click.echo(line)
    click.echo(str(reported.files[0]))
    if reported.failure:
        raise reported.failure


def read_salt(file: Path | None) -> str:
    """Return the secret in a file, or a new random one that is not stored. UsageError where the file's secret is too short."""
    if file is None:
        return secrets.token_hex(32)
    try:
        salt = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as text ({error}); check --salt-file") from None
    if len(salt) < _SALT_CHARACTERS:
        raise UsageError(f"{file} has fewer than {_SALT_CHARACTERS} characters, which could be guessed; give a longer secret")
    return salt
