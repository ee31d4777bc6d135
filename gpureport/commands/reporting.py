"""Commands that make a report: compute, report, demo."""

from __future__ import annotations

import logging
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import click

from gpureport.commands.options import (
    DATE,
    FOLDER,
    LAKE,
    LOG_FORMAT,
    ONE_CLUSTER,
    OUT,
    Invocation,
    finished_day,
    period,
    print_report,
    read_salt,
    report_options,
)
from gpureport.values.errors import UsageError

_LOG = logging.getLogger(__name__)


@click.command()
@click.option("--out", type=FOLDER, help="Folder to write into (default: out/demo or out/demo-h200).")
@click.option(
    "--simulated", is_flag=True, help="Report on a simulated cluster with trouble in known places (takes a minute or two)."
)
@click.option("--days", type=click.IntRange(1, 60), help="Simulated days in the report (default: 7), after as many others.")
@click.option("--gpus", type=click.IntRange(min=24), help="Simulated GPUs (default: 56).")
@click.pass_obj
def demo(invocation: Invocation, /, out: Path | None, simulated: bool, days: int | None, gpus: int | None) -> None:
    """Report on a bundled recording, or on a simulated cluster; without cluster or network.

    The recording is eight minutes of a real H200. --simulated shows everything that a report can have: six teams, prices, quotas,
    MIG, a sick GPU, and the previous period.

    Example: gpureport demo --simulated --out out/demo
    """
    from gpureport.commands.work import rehearsing

    config = invocation.config()
    if not simulated and (days or gpus):
        raise UsageError("--days and --gpus are of the simulated cluster; give them with --simulated")
    if not simulated:
        print_report(invocation, rehearsing.demo(config, out or Path("out/demo-h200"), invocation.now))
        return
    folder = out or Path("out/demo")
    print_report(invocation, rehearsing.demo_cluster(config, folder, invocation.now, days or 7, gpus or 56))
    end = rehearsing.DEMO_END
    shown = f"--since {end - timedelta(days=days or 7)} --until {end}"
    for line in (f"top teams {shown}", f"report --by team {shown} --out out/teams", f"whatif {shown} --add-nodes 1"):
        _LOG.info(f"next: gpureport {line} --lake {folder / 'lake'}")


@click.command()
@DATE
@click.option("--since", help="First of several days, or a period such as 2026-10 or 7d; days that the lake lacks are skipped.")
@click.option("--until", help="End, not included (default: the end of the period that --since names).")
@LAKE
@LOG_FORMAT
@click.pass_obj
def compute(invocation: Invocation, /, day: str | None, since: str | None, until: str | None, **flags: Any) -> None:
    """Turn one day of the lake, or several, into hourly facts.

    Computes every cluster of the lake.

    Example: gpureport compute --date 2026-11-20
    """
    from gpureport.commands.work import reporting

    config = invocation.changing(**flags)
    if day and (since or until):
        raise UsageError("--date is one day, --since and --until are several; give one or the other")
    if since or until:
        days = reporting.days_in_lake(config, period(invocation, config, since, until))
    else:
        days = [finished_day(invocation, day)]
    for line in chain(reporting.compute(config, days), reporting.outdated(config)):
        _LOG.info(line)
    click.echo(f"{config.lake}/facts")


@click.command()
@click.option("--since", help="Start: 2026-11-20, a time, 2026-10, 7d, 24h or yesterday (default: the last complete week).")
@click.option("--until", help="End, not included (default: the end of the day or period that --since names).")
@LAKE
@ONE_CLUSTER
@OUT
@report_options
@click.option(
    "--timezone",
    "report__timezone",
    help="Time zone of days, weekdays and hours, such as Europe/Berlin (default: UTC), whole hours from it. The days of "
    "coverage, demand_trend, focus, gpu_hour_balance, gpu_hour_ledger, power_sensor, restated_day and teams' pages are UTC's.",
)
@click.option("--anonymise", "is_anonymous", is_flag=True, help="Write a report to share: pseudonyms for names, no free text.")
@click.option(
    "--salt-file",
    type=click.Path(path_type=Path),
    help="File with the secret that pseudonyms are made with (default: a new secret).",
)
@LOG_FORMAT
@click.pass_obj
def report(
    invocation: Invocation, /, since: str | None, until: str | None, is_anonymous: bool, salt_file: Path | None, **flags: Any
) -> None:
    """Write the report of a period from its facts.

    Writes report.html, summary.md, csv/, tables/, report.json and gpureport.duckdb. Prints the six answers and the page's path.

    Example: gpureport report --since 2026-11-01 --until 2026-12-01 --out out/november
    """
    from gpureport.commands.work import reporting

    config = invocation.config(**flags)
    window = period(invocation, config, since, until)
    if salt_file and not is_anonymous:
        raise UsageError("--salt-file is the secret of pseudonyms; give it with --anonymise")
    if is_anonymous and config.report.by:
        raise UsageError("Team pages have the team's name. Use --anonymise without --by.")
    salt = read_salt(salt_file) if is_anonymous else ""
    print_report(invocation, reporting.report(config, window, config.out, invocation.now, salt))
