"""``gpureport doctor``: turns its options into one call of ``work.examining``."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import click

from gpureport.commands import options
from gpureport.values.errors import UsageError
from gpureport.values.text.rows import Output
from gpureport.values.window import day_start

_LOG = logging.getLogger(__name__)


@click.command()
@options.connection_options
@options.cluster_options
@options.NO_KUBERNETES
@options.LAKE
@options.CLUSTER
@click.option("--date", "day", help="UTC day of the lake to examine, or of the server (default: now).")
@click.option(
    "--repair", is_flag=True, help="With --lake: compute damaged facts again, remove other damaged files from the lake."
)
@options.FORMAT
@click.pass_obj
def doctor(
    invocation: options.Invocation,
    /,
    day: str | None,
    output: Output,
    cluster: str | None,
    no_kubernetes: bool,
    repair: bool,
    **flags: Any,
) -> None:
    """Show the figures that a report would lack, and the lines to add.

    Finds missing metrics, labels, series and Kubernetes lists. Prints the figures that are lost, and the exact lines to add.

    Examines a Prometheus server (without fetching samples in bulk), the Kubernetes cluster of the kubeconfig or the pod, or
    both; with --lake and --date a day of a lake. If several clusters are configured, it examines each of them.

    With --lake alone it reads every file of the lake, and names damaged and missing files with their repair.

    Exit codes: 0 a report would be complete, 4 it would lack figures or a file is damaged, 5 a server cannot be read.

    Example: gpureport doctor --prometheus-url http://prometheus:9090 --kubeconfig ~/.kube/config
    """
    from gpureport.commands.work import examining

    if flags["lake"] and flags["prometheus__url"]:
        raise UsageError("give --prometheus-url or --lake, not both")
    if repair and (day or not flags["lake"]):
        raise UsageError("--repair goes with --lake, without --date")
    is_past = bool(flags["lake"] or day)
    if is_past and (flags["kubernetes__kubeconfig"] or flags["kubernetes__context"]):
        raise UsageError("Kubernetes has its present state only; give --kubeconfig and --context without --lake and --date")
    config = (invocation.changing if repair else invocation.config)(cluster=cluster, **flags)
    if flags["lake"] and not day:
        _LOG.info(examining.examine_files(config, repair, output))
        return
    lake_day = examining.LakeDay(options.finished_day(invocation, day), cluster) if flags["lake"] else None
    at = min(invocation.now, day_start(options.finished_day(invocation, day)) + timedelta(days=1)) if day else invocation.now
    scope = examining.Scope(at, lake_day, with_state=not (is_past or no_kubernetes))
    _LOG.info(examining.doctor(config, invocation.environ, scope, output))
