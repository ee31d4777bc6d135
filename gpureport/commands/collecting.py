"""Commands that fill a lake: export, snapshot, import, simulate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpureport.commands import options
from gpureport.store import Place
from gpureport.values.errors import SourceError, UsageError
from gpureport.values.window import parse_instant

if TYPE_CHECKING:
    from gpureport.config import Config
_LOG = logging.getLogger(__name__)


@click.command()
@options.DATE
@options.LAKE
@options.CLUSTER
@options.connection_options
@options.KEEP_RAW
@options.cluster_options
@options.NO_KUBERNETES
@click.option(
    "--blocks", help="Folder or s3://BUCKET/PREFIX with blocks of Prometheus, Thanos, Mimir or Cortex, in place of a server."
)
@options.LOG_FORMAT
@click.pass_obj
def export(invocation: options.Invocation, /, day: str | None, no_kubernetes: bool, blocks: str | None, **flags: Any) -> None:
    """Copy one UTC day from Prometheus into the lake.

    Reads Prometheus, Mimir, Thanos or VictoriaMetrics. Also takes a snapshot of the Kubernetes cluster, if one is found.
    Blocks of their storage fill in days of the past without a server; then no snapshot is taken.

    Example: gpureport export --date 2026-11-20 --prometheus-url http://prometheus:9090
    """
    from gpureport.commands.work import collecting, observing

    config = invocation.changing(**flags)
    chosen = options.finished_day(invocation, day)
    if blocks:
        collecting.export_blocks(config, blocks, invocation.environ, chosen)
        click.echo(str(config.lake))
        return
    failures = list[SourceError]()
    sources = [*collecting.each_source(config, invocation.environ, chosen, failures)]
    seen = [] if no_kubernetes else [each for each in sources if each.kubernetes.enabled]  # before exports, which take hours
    taken = {each.cluster: observing.try_snapshot(each, invocation.environ, invocation.now) for each in seen}
    for each in sources:
        result = taken.get(each.cluster)
        try:
            collecting.log_export(collecting.export(each, invocation.environ, chosen))
        except SourceError as error:
            failures.append(error)
            result = None if isinstance(result, UsageError) else result  # the export's error matters more than a missing cluster
        failures += observing.log_tried_snapshot(result) if result else []
    collecting.raise_first(failures)
    click.echo(str(config.lake))


@click.command()
@options.cluster_options
@options.LAKE
@options.CLUSTER
@options.LOG_FORMAT
@click.pass_obj
def snapshot(invocation: options.Invocation, /, **flags: Any) -> None:
    """Copy the present Kubernetes state into the lake.

    Run it every few minutes: resource claims vanish with their pods, and claims without a snapshot stay unknown.

    Example: gpureport snapshot --kubeconfig ~/.kube/config --context prod --cluster prod --lake lake
    """
    from gpureport.commands.work.observing import take_snapshots

    config = invocation.changing(**flags)
    chosen = [each for each in config.each_cluster() if each.kubernetes.enabled]
    if not chosen:
        raise UsageError("no cluster of the configuration has a [kubernetes] section; add kubernetes.kubeconfig to one")
    take_snapshots(chosen, invocation.environ, invocation.now)
    click.echo(str(config.lake))


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--kubernetes", type=click.Path(path_type=Path), help="Folder with raw list replies: pods.json, resourceclaims.json, …"
)
@click.option("--observed-at", help="Time of these replies (default: the time in observed_at.txt of that folder).")
@options.LAKE
@options.CLUSTER
@click.pass_obj
def import_(
    invocation: options.Invocation, /, files: Sequence[Path], kubernetes: Path | None, observed_at: str | None, **flags: Any
) -> None:
    """Read metrics and Kubernetes replies from files into the lake.

    FILES are OpenMetrics text with timestamps, plain or .gz. No server is needed.

    Example: gpureport import metrics.openmetrics.txt.gz --kubernetes state --cluster lab --lake lake
    """
    from gpureport.commands.work import observing

    if not files and not kubernetes:
        raise UsageError("nothing to import; name files of OpenMetrics text, or a folder of list replies with --kubernetes")
    config = invocation.changing(**flags)
    if kubernetes:
        at = parse_instant(observed_at) if observed_at else None
        observing.log_snapshot(observing.import_state(config, kubernetes, at, invocation.now))
    if files:
        _import_samples(invocation, config, files)
    click.echo(str(config.lake))


def _import_samples(invocation: options.Invocation, config: Config, files: Sequence[Path]) -> None:
    from gpureport.commands.work.collecting import log_unread
    from gpureport.commands.work.observing import import_files

    imported = import_files(config, files, invocation.now)
    days = ", ".join(map(str, imported.days))
    _LOG.info(f"imported {imported.sample_count:,} samples of {imported.series_count:,} series into {days}")
    for metric, count in imported.nameless.items():
        _LOG.warning(f"{count:,} values of {metric} have no label that names their GPU (UUID or the like): they were left out")
    log_unread(imported.unread)


@click.command()
@click.option("--gpus", type=int, required=True, help="Number of GPUs, eight to a node.")
@click.option("--days", type=click.IntRange(1, 3660), default=1, show_default=True, help="Number of UTC days.")
@click.option("--start", "start", help="First UTC day (default: so that the last one is yesterday).")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--step-seconds", type=int, default=30, show_default=True, help="Seconds between scrapes.")
@click.option(
    "--signals", default="14", show_default=True, help="Signals of the exporter: 14, all, or names separated by commas."
)
@click.option("--scenario", default="mixed", show_default=True, help="mixed: trouble in random places; review: in known places.")
@click.option(
    "--mig-share", type=float, default=0.1, show_default=True, help="Share of the GPUs that are split into MIG instances, 0 to 1."
)
@click.option(
    "--sharing-share", type=float, default=0.1, show_default=True, help="Share of the GPUs that have several holders, 0 to 1."
)
@click.option("--out", type=options.FOLDER, help="Folder for OpenMetrics, Kubernetes JSON and truth.json.")
@options.LAKE
@options.CLUSTER
@click.pass_obj
def simulate(invocation: options.Invocation, /, out: Path | None, lake: Place | None, cluster: str | None, **plan: Any) -> None:
    """Make a synthetic cluster, as files or as a lake.

    Writes OpenMetrics and Kubernetes JSON (--out), a lake (--lake), or both.

    Example: gpureport simulate --gpus 64 --days 1 --out out/simulated
    """
    from gpureport.commands.work import rehearsing

    if out is None and lake is None:
        raise UsageError("nothing to write; give --out for files, --lake for a lake, or both")
    config = invocation.config(cluster=cluster, lake=lake)
    options.print_paths(rehearsing.simulate(config, plan, out, config.lake if lake else None, invocation.now.date()))
