"""``gpureport whatif``: what somebody would change, into one pipeline call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from gpureport.commands.options import FORMAT, LAKE, Invocation
from gpureport.schedulers.change import SETTABLE
from gpureport.store import Place
from gpureport.text.rows import Output
from gpureport.window import Window, parse_instant

_TERMS = "; ".join(f"{system}: {terms}" for system, terms in SETTABLE.items())


@click.command()
@click.option("--since", required=True, help="Start: a UTC day or time, such as 2026-11-20 or 2026-11-20T23:51:40Z.")
@click.option("--until", help="End, not included (default: one day after the start).")
@click.option(
    "--set",
    "settings",
    multiple=True,
    help=f"A change: quota.NAME.TERM=VALUE, such as quota.team-a.min=20. Repeatable. {_TERMS}.",
)
@click.option("--remove", "removed", multiple=True, help="Leave out this quota. Repeatable.")
@click.option("--add-gpus", "added_gpus", type=float, default=0.0, help="Add this many GPUs (default: 0).")
@click.option(
    "--add-nodes",
    "added_nodes",
    type=int,
    default=0,
    help="Add this many nodes, with as many GPUs as most nodes have (default: 0).",
)
@click.option(
    "--pod-order", default="", help="nos only: the order in which pods are counted, such as creation,-priority,request,name."
)
@click.option("--cluster", help="Only this cluster.")
@click.option(
    "--system",
    help="Only this system's quotas: nos, scheduler-plugins, kueue, koordinator, volcano, kai, or kubernetes (ResourceQuota).",
)
@LAKE
@FORMAT
@click.pass_obj
def whatif(
    invocation: Invocation,
    /,
    since: str,
    until: str | None,
    output: Output,
    lake: Place | None,
    **asked: Any,
) -> None:
    """Say what other quotas or more nodes would have come to.

    Replays the recorded demand through the schedulers' rules, and prints the outcomes side by side.

    Values are in the quota's own unit (GB of gpu-memory, devices, percent of a GPU); 'none' removes a cap or limit. The table
    shows the quotas that are named or come out differently, CSV and JSON show all of them.

    Example: gpureport whatif --since 2026-11-20 --set quota.team-a.min=20 --add-nodes 1
    """
    from gpureport.pipeline.comparing import what_if
    from gpureport.whatif import parse_question

    question = parse_question(**asked)
    config = invocation.config(lake=lake)
    start = parse_instant(since)
    window = Window(start, parse_instant(until) if until else start + timedelta(days=1))
    what_if(config, window, question, output, invocation.say)
