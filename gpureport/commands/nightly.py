"""Commands of the nightly job and of lake maintenance: run, prune, migrate."""

from __future__ import annotations

import logging
import time
from typing import Any

import click

from gpureport.commands import options
from gpureport.values.errors import UsageError

_LOG = logging.getLogger(__name__)


@click.command()
@options.DATE
@click.option("--until", type=click.Choice(["now"]), help="Today up to the last full hour, as --date today.")
@options.LAKE
@options.OUT
@options.CLUSTER
@options.connection_options
@options.KEEP_RAW
@options.cluster_options
@options.NO_KUBERNETES
@options.retention_options
@options.report_options
@click.option("--metrics-file", "metrics__file", help="Write the run's own metrics here (node_exporter textfile).")
@click.option("--pushgateway-url", "metrics__pushgateway_url", help="Push the run's own metrics to this Pushgateway.")
@options.LOG_FORMAT
@click.pass_obj
def run(invocation: options.Invocation, /, day: str | None, until: str | None, no_kubernetes: bool, **flags: Any) -> None:
    """Export, compute and report yesterday: the nightly job.

    Also fills in missing days, reads recent days again for late samples, and removes data beyond its retention. A second
    run over the same lake ends at once.

    Example: gpureport run --prometheus-url http://prometheus:9090 --keep-samples 30d --keep-facts 2y
    """
    from gpureport.commands.work import nightly

    try:
        config = invocation.changing(**flags)
    except UsageError as error:
        invocation.publish_refusal(flags, error)
        raise
    if until and day not in (None, "today"):
        raise UsageError("--until now reports today; leave out --date")
    chosen = options.finished_day(invocation, "today" if until else day)
    plan = nightly.NightPlan(config, invocation.environ, chosen, invocation.now, with_state=not no_kubernetes)
    if reported := nightly.run(plan, time.monotonic):
        options.print_report(invocation, reported)


@click.command()
@options.LAKE
@options.retention_options
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@click.pass_obj
def prune(invocation: options.Invocation, /, dry_run: bool, **flags: Any) -> None:
    """Remove samples and facts beyond their retention.

    Nothing else is removed; files of other programs stay.

    Example: gpureport prune --lake lake --keep-samples 30d --keep-facts 2y --dry-run
    """
    from gpureport.lake import open_lake
    from gpureport.lake.retention import describe_pruned
    from gpureport.lake.retention import prune as prune_lake

    config = (invocation.config if dry_run else invocation.changing)(**flags)
    if not (config.retention.keep_samples or config.retention.keep_facts):
        raise UsageError("no retention is set; give --keep-samples 30d, --keep-facts 2y or both")
    lake = open_lake(config.lake)
    pruned = prune_lake(lake, config.retention, invocation.now.date(), dry_run)
    if not dry_run:
        lake.delete_unused_files()
    for line in describe_pruned(pruned, "would be removed" if dry_run else "removed") or ["nothing is over its age"]:
        _LOG.info(line)
    options.print_paths([config.lake])


@click.command()
@options.LAKE
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.pass_obj
def migrate(invocation: options.Invocation, /, dry_run: bool, **flags: Any) -> None:
    """Bring a lake of an older version to the present schema.

    Values that the older lake lacks are unknown afterwards.

    Example: gpureport migrate --lake /var/lib/gpureport
    """
    from gpureport.lake.migrate import migrate as migrate_lake
    from gpureport.values.tables import SCHEMA_VERSION

    config = (invocation.config if dry_run else invocation.changing)(**flags)
    done = migrate_lake(config.lake, dry_run)
    if done.from_version is None:
        _LOG.info(f"the lake has schema {SCHEMA_VERSION} already")
    else:
        verb = "would go" if dry_run else "went"
        _LOG.info(f"the lake {verb} from schema {done.from_version} to {SCHEMA_VERSION}: {done.file_count:,} files")
    options.print_paths([config.lake])
