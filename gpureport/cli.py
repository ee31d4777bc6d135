"""The command line: options in, one pipeline call, paths or rows out; errors become one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from gpureport import __version__, pipeline
from gpureport.commands.nightly import migrate, prune, run
from gpureport.commands.options import (
    CLUSTER,
    DATE,
    FORMAT,
    LAKE,
    LOG_FORMAT,
    NO_KUBERNETES,
    OUT,
    Invocation,
    cluster_options,
    connection_options,
    finished_day,
    parse_headers,
    print_paths,
    prometheus_options,
    read_salt,
)
from gpureport.commands.whatif import whatif
from gpureport.config import Config
from gpureport.errors import GpureportError, UsageError
from gpureport.log import Log
from gpureport.nightly import each_source
from gpureport.row_printing import Output
from gpureport.window import Window, day_start, parse_instant


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpureport")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file (default: gpureport.toml).")
@click.pass_context
def cli(context: click.Context, config_path: Path | None) -> None:
    """What became of yesterday's GPU-hours.

    Three stages, each rerunnable alone: export (or import) fills a lake of Parquet files, compute turns a day of it into
    hourly facts, report writes HTML, CSV, JSON and a DuckDB file. 'run' does all three.
    """
    environ, now, log = context.obj or (os.environ, datetime.now(UTC), _new_log(os.environ))
    log.command = context.invoked_subcommand or ""
    context.obj = Invocation(config_path, environ, now, log)


@cli.command()
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write into (default: out/demo, or out/demo-month).")
@click.option("--simulated-month", is_flag=True, help="Of 30 simulated days of 24 GPUs with trouble in known places (a minute).")
@click.pass_obj
def demo(invocation: Invocation, /, out: Path | None, simulated_month: bool) -> None:
    """Report on the bundled recording of a real H200, or on a simulated month; needs no network and no cluster.

    Example: gpureport demo --out out/demo
    """
    if simulated_month:
        print_paths(pipeline.demo_month(invocation.config(), out or Path("out/demo-month"), invocation.now))
    else:
        print_paths(pipeline.demo(invocation.config(), out or Path("out/demo"), invocation.now))


@cli.command()
@DATE
@LAKE
@CLUSTER
@prometheus_options
@cluster_options
@NO_KUBERNETES
@LOG_FORMAT
@click.pass_obj
def export(invocation: Invocation, /, day: str | None, headers: Sequence[str], no_kubernetes: bool, **flags: Any) -> None:
    """Fetch one UTC day from a Prometheus-compatible server into the lake, and the cluster's state of this moment.

    Example: gpureport export --date 2026-11-20 --prometheus-url http://prometheus:9090
    """
    config = invocation.config(prometheus__headers=parse_headers(headers), **flags)
    chosen = finished_day(invocation, day)
    for each in each_source(config, invocation.environ, chosen):
        with_state = each.kubernetes.enabled and not no_kubernetes
        beside = pipeline.snapshot_beside(each, invocation.environ, invocation.now) if with_state else pipeline.Beside()
        exported = pipeline.export(each, invocation.environ, chosen)
        for line in pipeline.describe_export(exported):
            invocation.say(line)
        beside.conclude(invocation.say)
    click.echo(str(config.lake))


@cli.command()
@cluster_options
@LAKE
@CLUSTER
@LOG_FORMAT
@click.pass_obj
def snapshot(invocation: Invocation, /, **flags: Any) -> None:
    """Read the Kubernetes state of this moment into the lake; run it every few minutes, for claims vanish with their pods.

    Example: gpureport snapshot --kubeconfig ~/.kube/config --context prod --cluster prod --lake lake
    """
    config = invocation.config(**flags)
    for each in config.each_cluster():
        if each.kubernetes.enabled:
            for line in pipeline.describe_snapshot(pipeline.take_snapshot(each, invocation.environ, invocation.now)):
                invocation.say(line)
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
            invocation.say(line)
    if files:
        _import_samples(invocation, config, files)
    click.echo(str(config.lake))


def _import_samples(invocation: Invocation, config: Config, files: Sequence[Path]) -> None:
    imported = pipeline.import_files(config, files, invocation.now)
    days = ", ".join(map(str, imported.days))
    invocation.say(f"imported {imported.sample_count:,} samples of {imported.series_count:,} series into {days}")
    for metric, count in imported.nameless.items():
        invocation.say(f"warning: {count:,} values of {metric} have no UUID label, so they are nobody's and were left out")


@cli.command()
@DATE
@LAKE
@LOG_FORMAT
@click.pass_obj
def compute(invocation: Invocation, /, day: str | None, **flags: Any) -> None:
    """Turn one day of the lake into hourly facts, for every cluster in it.

    Example: gpureport compute --date 2026-11-20
    """
    config = invocation.config(**flags)
    for line in pipeline.compute(config, finished_day(invocation, day)):
        invocation.say(line)
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
@click.option("--by", "report__by", help="Also a page for each value of this label of namespaces (team), or for each namespace.")
@click.option("--fail-on", "report__fail_on", help="Exit 3 for findings of a code (GR101) or severity (info, warning, critical).")
@click.option("--anonymise", "is_anonymous", is_flag=True, help="Pseudonyms for names, and no free text: a report to share.")
@click.option("--salt-file", type=click.Path(path_type=Path), help="Secret by which pseudonyms are made (default: a new one).")
@LOG_FORMAT
@click.pass_obj
def report(
    invocation: Invocation, /, since: str, until: str | None, is_anonymous: bool, salt_file: Path | None, **flags: Any
) -> None:
    """Write report.html, csv/, report.json and gpureport.duckdb from the facts of a window.

    Example: gpureport report --since 2026-11-01 --until 2026-12-01 --out out/november
    """
    config = invocation.config(**flags)
    start = parse_instant(since)
    window = Window(start, parse_instant(until) if until else start + timedelta(days=1))
    if is_anonymous and config.report.by:
        raise UsageError("pages by owner bear the owner's name; give --anonymise without --by")
    salt = read_salt(salt_file) if is_anonymous else ""
    print_paths(pipeline.report(config, window, config.out, invocation.now, salt))


cli.add_command(run)
cli.add_command(prune)
cli.add_command(migrate)


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
@click.option("--show", type=click.Choice(["bridge", "namespaces", "findings", "periods", "restated"]), help="Only this part.")
@LAKE
@FORMAT
@click.pass_obj
def diff(
    invocation: Invocation, /, reports: Sequence[Path], show: str | None, output: Output, lake: Path | None, **times: str | None
) -> None:
    """Say what changed: between two windows of the lake, or between two reports (their folders, the earlier first).

    A bridge leads from the earlier GPU-hours to the later ones, allocated, effective and capacity, and adds up; then whose hours
    changed, which findings are new or resolved, and which days were stated anew. CSV holds one part, the bridge if none is
    named with --show.

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


cli.add_command(whatif)


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
    config = invocation.config(prometheus__headers=parse_headers(headers), **flags)
    lake_day = pipeline.LakeDay(finished_day(invocation, day), cluster) if flags["lake"] else None
    at = min(invocation.now, day_start(finished_day(invocation, day)) + timedelta(days=1)) if day else invocation.now
    with_state = not (is_past or no_kubernetes)
    invocation.say(pipeline.doctor(config, invocation.environ, lake_day, at, output, with_state))


@cli.command()
@click.option("--gpus", type=int, required=True, help="How many GPUs, eight to a node.")
@click.option("--days", type=int, default=1, show_default=True, help="How many UTC days.")
@click.option("--start", "start", help="First day (default: as many days before today as are simulated).")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--step-seconds", type=int, default=30, show_default=True, help="Time between scrapes.")
@click.option("--signals", default="14", show_default=True, help="How many signals the exporter gives: 14, or all.")
@click.option("--scenario", default="mixed", show_default=True, help="mixed: trouble at random; review: in known places.")
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
    print_paths(pipeline.simulate(config, plan, out, lake, invocation.now.date()))


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


def _new_log(environ: Mapping[str, str]) -> Log:
    """A new run's; the environment decides its form already before there is a configuration, for errors in that."""
    asked = environ.get("GPUREPORT_LOG_FORMAT")
    return Log(clock=lambda: datetime.now(UTC), run_id=uuid4().hex, format="json" if asked == "json" else "text")


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None, now: datetime | None = None) -> int:
    """Run a command; the exit code of the contract (0, 1 failure, 2 usage, 3 findings, 4 coverage, 5 source)."""
    environ = os.environ if environ is None else environ
    log = _new_log(environ)
    shared = (environ, now or datetime.now(UTC), log)
    try:
        cli.main(args=None if arguments is None else list(arguments), obj=shared, standalone_mode=False)
    except GpureportError as error:
        log.fail(str(error), error.exit_code)
        return error.exit_code
    except click.ClickException as error:
        if log.format == "json":
            log.fail(error.format_message(), UsageError.exit_code)
        else:
            error.show()
        return UsageError.exit_code
    except (KeyboardInterrupt, click.Abort):
        log.fail("interrupted; nothing half-written is left, run again", GpureportError.exit_code)
        return GpureportError.exit_code
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
