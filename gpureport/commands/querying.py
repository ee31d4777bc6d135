"""Commands that answer a question on the terminal: sql, diff, top, schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from gpureport.commands.options import FORMAT, LAKE, ONE_CLUSTER, PLACE, Invocation, period
from gpureport.store import Place
from gpureport.values.errors import UsageError
from gpureport.values.text.rows import Output
from gpureport.values.window import Window, rfc3339

if TYPE_CHECKING:
    from gpureport.config import Config


@click.command()
@click.argument("statement", required=False)
@click.option("--since", help="Window of report.*, and UTC days of other tables: 2026-11-20, a time, 2026-10, 7d (default: all).")
@click.option("--until", help="Its end, not included (default: the end of the period named).")
@click.option(
    "--rows", "rows_at_most", type=click.IntRange(1, 10**9), help="Most rows to print (default: 1000 in a table, else all)."
)
@click.option("--allow-files", is_flag=True, help="Let statements read and write files other than the lake's.")
@LAKE
@ONE_CLUSTER
@FORMAT
@click.pass_obj
def sql(
    invocation: Invocation,
    /,
    statement: str | None,
    since: str | None,
    until: str | None,
    rows_at_most: int | None,
    allow_files: bool,
    output: Output,
    **flags: Any,
) -> None:
    """Run SQL over lake.*, facts.* and report.*, or open a prompt.

    Tables of report.* are built when a statement names them. Statements read the lake and nothing else, and write nothing.

    Example: gpureport sql "select namespace, bucket, sum(gpu_hours) from report.gpu_hour_ledger group by all order by all"
    """
    from gpureport.commands.work import querying

    config = invocation.config(**flags)
    if until and not since:
        raise UsageError("--until needs --since")
    window = period(invocation, config, since, until) if since else None
    querying.sql(config, statement, output, window, invocation.now, rows_at_most, allow_files)


@click.command()
@click.argument("reports", nargs=-1, type=PLACE)
@click.option("--since", help="Start of the later window: 2026-11-20, a time, 2026-10 or 7d.")
@click.option("--until", help="Its end, not included (default: the end of the period named).")
@click.option("--previous-since", help="Start of the previous period (default: as long, just before the later one).")
@click.option("--previous-until", help="Its end, not included (default: the start of the later period).")
@click.option(
    "--show", type=click.Choice(["bridge", "namespaces", "findings", "periods", "restated"]), help="Print only this part."
)
@LAKE
@ONE_CLUSTER
@FORMAT
@click.pass_obj
def diff(
    invocation: Invocation,
    /,
    reports: Sequence[Place],
    show: str | None,
    output: Output,
    lake: Place | None,
    report__cluster: str | None,
    **times: str | None,
) -> None:
    """Show changes between two windows, or between two reports.

    REPORTS are the folders of two reports, the earlier one first. Without them, give the windows of the lake.

    Prints a bridge from the earlier GPU-hours to the later ones (allocated, effective and capacity), which adds up; then
    hours by namespace, new and resolved findings, and restated days. CSV has one part: the bridge, or the part that --show
    names.

    Example: gpureport diff --since 2026-11-08 --until 2026-11-15
    """
    from gpureport.commands.work import comparing

    config = invocation.config(lake=lake, report__cluster=report__cluster)
    if reports:
        if len(reports) != 2 or any(times.values()):
            raise UsageError("give two reports, the earlier first, or the windows of a lake with --since; not both")
        first, second = (config.reached_place(each, invocation.environ) for each in reports)
        comparing.diff_reports(config, first, second, show, output)
        return
    window, previous = _compared_windows(invocation, config, times)
    comparing.diff_windows(config, window, previous, show, output)


def _compared_windows(invocation: Invocation, config: Config, times: Mapping[str, str | None]) -> tuple[Window, Window | None]:
    """Return the later window, and the earlier one if it is given."""
    if not times["since"]:
        raise UsageError("nothing to compare; give --since for a window of the lake, or two folders of reports")
    window = period(invocation, config, times["since"], times["until"]).over_by(invocation.now)
    if not times["previous_since"]:
        if times["previous_until"]:
            raise UsageError("--previous-until needs --previous-since")
        return window, None
    end = times["previous_until"] or rfc3339(window.start_at)
    return window, period(invocation, config, times["previous_since"], end)


@click.command()
@click.argument("what", type=click.Choice(["teams", "workloads", "gpus"]))
@click.option("--since", help="Start: 2026-11-20, a time, 2026-10, 7d or yesterday (default: the last complete week).")
@click.option("--until", help="Its end, not included.")
@click.option("--rows", "count", type=click.IntRange(1, 10**9), default=20, show_default=True, help="Rows to print.")
@LAKE
@ONE_CLUSTER
@FORMAT
@click.pass_obj
def top(
    invocation: Invocation, /, what: str, since: str | None, until: str | None, count: int, output: Output, **flags: Any
) -> None:
    """Print the largest teams or workloads, or the GPUs with findings.

    Example: gpureport top teams --since 7d
    """
    from gpureport.commands.work import querying

    config = invocation.config(**flags)
    querying.top(config, what, period(invocation, config, since, until).over_by(invocation.now), output, count)


@click.command()
def schema() -> None:
    """Print every table and its columns with their meanings, as Markdown."""
    from gpureport.commands.work.schema import render_schema
    from gpureport.compute.query import load

    click.echo(render_schema(load()), nl=False)
