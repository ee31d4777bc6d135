"""The command line: options in, one pipeline call, paths or rows out; errors become one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from gpureport import __version__, pipeline
from gpureport.config import Config, load_config
from gpureport.errors import GpureportError, UsageError
from gpureport.row_printing import Output
from gpureport.window import Window, day_start, parse_date, parse_instant

FORMATS = click.Choice(["table", "json", "csv"])


class Invocation:
    """What every command shares: configuration file, environment, and the clock read once."""

    def __init__(self, config_path: Path | None, environ: Mapping[str, str], now: datetime) -> None:
        self.config_path = config_path
        self.environ = environ
        self.now = now

    def config(self, **flags: Any) -> Config:
        """The configuration with these flags over it; a double underscore stands for the dot of a section."""
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        config, warnings = load_config(self.config_path, self.environ, dotted)
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        return config


LAKE = click.option("--lake", type=click.Path(path_type=Path), help="Folder of the lake (default: lake).")
CLUSTER = click.option("--cluster", help="Name under which the cluster stands in the lake.")
OUT = click.option("--out", type=click.Path(path_type=Path), help="Folder to write into (default: out).")
DATE = click.option("--date", "day", help="UTC day, as 2026-11-20.")
FORMAT = click.option("-o", "--output", type=FORMATS, default="table", show_default=True, help="How rows are printed.")


def connection_options(command: Any) -> Any:
    """The options that say where Prometheus is; secrets come from files or the environment alone."""
    for option in reversed(
        [
            click.option("--prometheus-url", "prometheus__url", help="Base URL, as http://prometheus:9090."),
            click.option(
                "--read-path",
                "prometheus__read_path",
                type=click.Choice(["auto", "remote-read", "matrix", "victoria-metrics"]),
                help="How samples are fetched (default: auto, by probing).",
            ),
            click.option("--bearer-token-file", "prometheus__bearer_token_file", help="File with a bearer token."),
            click.option("--bearer-token-env", "prometheus__bearer_token_env", help="Variable with a bearer token."),
            click.option("--username", "prometheus__username", help="User for basic authentication."),
            click.option("--password-file", "prometheus__password_file", help="File with the user's password."),
            click.option("--ca-file", "prometheus__ca_file", help="CA certificates to trust, PEM."),
            click.option("--cert-file", "prometheus__cert_file", help="Client certificate, PEM."),
            click.option("--key-file", "prometheus__key_file", help="Client key, PEM."),
            click.option("--header", "headers", multiple=True, help="Extra header, as 'X-Scope-OrgID: team'. Repeatable."),
            click.option("--http-config", "prometheus__http_config_file", help="promtool's HTTP client file (YAML)."),
        ]
    ):
        command = option(command)
    return command


def cluster_options(command: Any) -> Any:
    """The options that say which Kubernetes cluster to read."""
    for option in (
        click.option("--context", "kubernetes__context", help="Context of the kubeconfig (default: its current one)."),
        click.option(
            "--kubeconfig", "kubernetes__kubeconfig", help="Kubeconfig (default: KUBECONFIG, ~/.kube/config, or the pod's own)."
        ),
    ):
        command = option(command)
    return command


NO_KUBERNETES = click.option("--no-kubernetes", is_flag=True, help="Leave the cluster's state alone: no snapshot, no look at it.")


def prometheus_options(command: Any) -> Any:
    """The options of an export."""
    for option in (
        click.option("--keep-raw", "export__keep_raw", is_flag=True, default=None, help="Keep every raw sample too."),
        click.option("--concurrency", "prometheus__max_concurrency", type=int, help="Worker processes and connections."),
    ):
        command = option(command)
    return connection_options(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpureport")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file (default: gpureport.toml).")
@click.pass_context
def cli(context: click.Context, config_path: Path | None) -> None:
    """What became of yesterday's GPU-hours.

    Three stages, each rerunnable alone: export (or import) fills a lake of Parquet files, compute turns a day of it into
    hourly facts, report writes HTML, CSV, JSON and a DuckDB file. 'run' does all three.
    """
    environ, now = context.obj or (os.environ, datetime.now(UTC))
    context.obj = Invocation(config_path, environ, now)


@cli.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Folder to write into.")
@click.pass_obj
def demo(invocation: Invocation, /, out: Path) -> None:
    """Report on the bundled recording of a real H200; needs no network and no cluster.

    Example: gpureport demo --out out/demo
    """
    _print_paths(pipeline.demo(invocation.config(), out, invocation.now))


@cli.command()
@DATE
@LAKE
@CLUSTER
@prometheus_options
@cluster_options
@NO_KUBERNETES
@click.pass_obj
def export(invocation: Invocation, /, day: str | None, headers: Sequence[str], no_kubernetes: bool, **flags: Any) -> None:
    """Fetch one UTC day from a Prometheus-compatible server into the lake, and the cluster's state of this moment.

    Example: gpureport export --date 2026-11-20 --prometheus-url http://prometheus:9090
    """
    config = invocation.config(prometheus__headers=_headers(headers), **flags)
    chosen = _finished_day(invocation, day)
    beside = pipeline.Beside() if no_kubernetes else pipeline.snapshot_beside(config, invocation.environ, invocation.now)
    exported = pipeline.export(config, invocation.environ, chosen)
    for line in pipeline.describe_export(exported):
        _say(line)
    beside.conclude(_say)
    click.echo(str(config.lake))


@cli.command()
@cluster_options
@LAKE
@CLUSTER
@click.pass_obj
def snapshot(invocation: Invocation, /, **flags: Any) -> None:
    """Read the Kubernetes state of this moment into the lake; run it every few minutes, for claims vanish with their pods.

    Example: gpureport snapshot --kubeconfig ~/.kube/config --context prod --cluster prod --lake lake
    """
    config = invocation.config(**flags)
    for line in pipeline.describe_snapshot(pipeline.take_snapshot(config, invocation.environ, invocation.now)):
        _say(line)
    click.echo(str(config.lake))


@cli.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--kubernetes", type=click.Path(path_type=Path), help="Folder of raw list replies: pods.json, resourceclaims.json, …"
)
@click.option("--observed-at", help="When those were saved (default: what its observed_at.txt says).")
@LAKE
@CLUSTER
@click.pass_obj
def import_(
    invocation: Invocation, /, files: Sequence[Path], kubernetes: Path | None, observed_at: str | None, **flags: Any
) -> None:
    """Read OpenMetrics text with timestamps (plain or .gz), and Kubernetes list replies, into the lake; no server needed.

    Example: gpureport import metrics.openmetrics.txt.gz --kubernetes state --cluster lab --lake lake
    """
    if not files and not kubernetes:
        raise UsageError("nothing to import; name files of OpenMetrics text, or a folder of list replies with --kubernetes")
    config = invocation.config(**flags)
    if kubernetes:
        at = parse_instant(observed_at) if observed_at else None
        for line in pipeline.describe_snapshot(pipeline.import_state(config, kubernetes, at, invocation.now)):
            _say(line)
    if files:
        _import_samples(invocation, config, files)
    click.echo(str(config.lake))


def _import_samples(invocation: Invocation, config: Config, files: Sequence[Path]) -> None:
    imported = pipeline.import_files(config, files, invocation.now)
    days = ", ".join(map(str, imported.days))
    _say(f"imported {imported.sample_count:,} samples of {imported.series_count:,} series into {days}")
    for metric, count in imported.nameless.items():
        _say(f"warning: {count:,} values of {metric} have no UUID label, so they are nobody's and were left out")


@cli.command()
@DATE
@LAKE
@click.pass_obj
def compute(invocation: Invocation, /, day: str | None, **flags: Any) -> None:
    """Turn one day of the lake into hourly facts, for every cluster in it.

    Example: gpureport compute --date 2026-11-20
    """
    config = invocation.config(**flags)
    for line in pipeline.compute(config, _finished_day(invocation, day)):
        _say(line)
    click.echo(str(config.lake / "facts"))


@cli.command()
@click.option("--since", required=True, help="Start: a UTC day, or a time as 2026-11-20T23:51:40Z.")
@click.option("--until", help="End, itself outside the window (default: a day after the start).")
@LAKE
@OUT
@click.option(
    "--idle-policy",
    "report__idle_policy",
    type=click.Choice(["separate", "holder", "pool"]),
    help="Whom idle energy counts for: nobody, each holder while it holds, or all holders of the model's GPUs (separate).",
)
@click.option("--figure-min-coverage", "report__figure_min_coverage_ratio", type=float, help="Print no thinner figure (0.5).")
@click.option("--min-coverage", "report__min_coverage_ratio", type=float, help="Exit 4 where the report covers less (0).")
@click.option("--fail-on", "report__fail_on", help="Exit 3 for findings of a code (GR101) or severity (info, warning, critical).")
@click.pass_obj
def report(invocation: Invocation, /, since: str, until: str | None, **flags: Any) -> None:
    """Write report.html, csv/, report.json and gpureport.duckdb from the facts of a window.

    Example: gpureport report --since 2026-11-01 --until 2026-12-01 --out out/november
    """
    config = invocation.config(**flags)
    start = parse_instant(since)
    window = Window(start, parse_instant(until) if until else start + timedelta(days=1))
    _print_paths(pipeline.report(config, window, config.out, invocation.now))


@cli.command()
@DATE
@LAKE
@OUT
@CLUSTER
@prometheus_options
@cluster_options
@NO_KUBERNETES
@click.pass_obj
def run(invocation: Invocation, /, day: str | None, headers: Sequence[str], no_kubernetes: bool, **flags: Any) -> None:
    """Export, compute and report a day (default: yesterday), filling days that are missing; what a CronJob calls.

    Example: gpureport run --prometheus-url http://prometheus:9090
    """
    config = invocation.config(prometheus__headers=_headers(headers), **flags)
    chosen = _finished_day(invocation, day)
    _print_paths(pipeline.run(config, invocation.environ, chosen, invocation.now, _say, with_state=not no_kubernetes))


@cli.command()
@click.argument("statement", required=False)
@LAKE
@FORMAT
@click.pass_obj
def sql(invocation: Invocation, /, statement: str | None, output: Output, **flags: Any) -> None:
    """Ask DuckDB over lake.*, facts.* and report.*; without a statement, an interactive prompt.

    Example: gpureport sql "select pod, sum(observed_seconds) / 3600 from facts.container_hour group by pod"
    """
    config = invocation.config(**flags)
    pipeline.sql(config, statement, output, invocation.now)


@cli.command()
@click.argument("reports", nargs=-1, type=click.Path(path_type=Path))
@click.option("--since", help="Start of the later window: a UTC day, or a time.")
@click.option("--until", help="Its end (default: a day after the start).")
@click.option(
    "--earlier-since", help="Start of the earlier window (default: so that it is as long, and ends where the later begins)."
)
@click.option("--earlier-until", help="Its end (default: the start of the later window).")
@click.option("--show", type=click.Choice(["bridge", "namespaces", "findings", "periods"]), help="Only this part.")
@LAKE
@FORMAT
@click.pass_obj
def diff(
    invocation: Invocation, /, reports: Sequence[Path], show: str | None, output: Output, lake: Path | None, **times: str | None
) -> None:
    """Say what changed: between two windows of the lake, or between two reports (their folders, the earlier first).

    A bridge leads from the earlier GPU-hours to the later ones, allocated, effective and capacity, and adds up; then whose hours
    changed, and which findings are new or resolved. CSV holds one part, the bridge if none is named with --show.

    Example: gpureport diff --since 2026-11-08 --until 2026-11-15
    """
    config = invocation.config(lake=lake)
    if reports:
        if len(reports) != 2 or any(times.values()):
            raise UsageError("give two reports, the earlier first, or the windows of a lake with --since; not both")
        pipeline.diff_reports(config, reports[0], reports[1], show, output)
        return
    window, earlier = _compared_windows(times)
    pipeline.diff_windows(config, window, earlier, show, output)


@cli.command()
@connection_options
@cluster_options
@NO_KUBERNETES
@LAKE
@CLUSTER
@click.option("--date", "day", help="UTC day of the lake (default: yesterday), or of the server (default: now).")
@FORMAT
@click.pass_obj
def doctor(
    invocation: Invocation,
    /,
    day: str | None,
    output: Output,
    headers: Sequence[str],
    cluster: str | None,
    no_kubernetes: bool,
    **flags: Any,
) -> None:
    """Say which metrics, labels, series and Kubernetes lists are missing, what that costs, and the exact lines to add.

    Looks at a server, without fetching samples in bulk, and at the Kubernetes cluster of the kubeconfig or the pod, at
    either alone, or with --lake at a day of a lake. Exit code 0: a report would be whole; 4: it would lack figures;
    5: a server cannot be read.

    Example: gpureport doctor --prometheus-url http://prometheus:9090 --kubeconfig ~/.kube/config
    """
    if flags["lake"] and flags["prometheus__url"]:
        raise UsageError("give --prometheus-url or --lake, not both")
    is_past = bool(flags["lake"] or day)
    if is_past and (flags["kubernetes__kubeconfig"] or flags["kubernetes__context"]):
        raise UsageError("Kubernetes tells of this moment alone; give --kubeconfig and --context without --lake and --date")
    config = invocation.config(prometheus__headers=_headers(headers), **flags)
    lake_day = pipeline.LakeDay(_finished_day(invocation, day), cluster) if flags["lake"] else None
    at = min(invocation.now, day_start(_finished_day(invocation, day)) + timedelta(days=1)) if day else invocation.now
    with_state = not (is_past or no_kubernetes)
    _say(pipeline.doctor(config, invocation.environ, lake_day, at, output, with_state))


@cli.command()
@click.option("--gpus", type=int, required=True, help="How many GPUs, eight to a node.")
@click.option("--days", type=int, default=1, show_default=True, help="How many UTC days.")
@click.option("--start", "start", help="First day (default: as many days before today as are simulated).")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--step-seconds", type=int, default=30, show_default=True, help="Time between scrapes.")
@click.option("--signals", default="14", show_default=True, help="How many signals the exporter gives: 14, or all.")
@click.option("--mig-share", type=float, default=0.1, show_default=True, help="Share of GPUs split into MIG instances.")
@click.option("--sharing-share", type=float, default=0.1, show_default=True, help="Share of GPUs with several holders.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for OpenMetrics, Kubernetes JSON and truth.json.")
@LAKE
@CLUSTER
@click.pass_obj
def simulate(invocation: Invocation, /, out: Path | None, lake: Path | None, cluster: str | None, **plan: Any) -> None:
    """Make a synthetic cluster: as OpenMetrics and Kubernetes JSON (--out), straight into a lake (--lake), or both.

    Example: gpureport simulate --gpus 64 --days 1 --out out/simulated
    """
    if out is None and lake is None:
        raise UsageError("nothing to write; give --out for files, --lake for a lake, or both")
    config = invocation.config(cluster=cluster)
    _print_paths(pipeline.simulate(config, plan, out, lake, invocation.now.date()))


@cli.command()
def schema() -> None:
    """Print the documented schema of every table, as Markdown."""
    click.echo(pipeline.schema(), nl=False)


def _compared_windows(times: Mapping[str, str | None]) -> tuple[Window, Window | None]:
    """The later window, and the earlier one where it is named."""
    if not times["since"]:
        raise UsageError("nothing to compare; give --since for a window of the lake, or two folders of reports")
    start = parse_instant(times["since"])
    window = Window(start, parse_instant(times["until"]) if times["until"] else start + timedelta(days=1))
    if not times["earlier_since"]:
        if times["earlier_until"]:
            raise UsageError("--earlier-until needs --earlier-since")
        return window, None
    end = parse_instant(times["earlier_until"]) if times["earlier_until"] else start
    return window, Window(parse_instant(times["earlier_since"]), end)


def _finished_day(invocation: Invocation, /, text: str | None) -> date:
    """The day asked for, or yesterday; a day that has not begun is a UsageError."""
    today = invocation.now.date()
    day = parse_date(text) if text else today - timedelta(days=1)
    if day > today:
        raise UsageError(f"{day} has not begun (today is {today} UTC); give an earlier --date")
    return day


def _headers(texts: Sequence[str]) -> dict[str, str] | None:
    pairs = [text.partition(":") for text in texts]
    if bad := [name for name, colon, _ in pairs if not (colon and name.strip())]:
        raise UsageError(f"--header {bad[0]!r} is not 'Name: value'")
    return {name.strip(): value.strip() for name, _, value in pairs} or None


def _say(line: str) -> None:
    click.echo(line, err=True)


def _print_paths(paths: Sequence[Path]) -> None:
    for path in paths:
        click.echo(str(path))


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None, now: datetime | None = None) -> int:
    """Run a command; the exit code of the contract (0, 1 failure, 2 usage, 3 findings, 4 coverage, 5 source)."""
    shared = (os.environ if environ is None else environ, now or datetime.now(UTC))
    try:
        cli.main(args=None if arguments is None else list(arguments), obj=shared, standalone_mode=False)
    except GpureportError as error:
        click.echo(f"gpureport: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return UsageError.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("gpureport: interrupted; nothing half-written is left, run again", err=True)
        return GpureportError.exit_code
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
