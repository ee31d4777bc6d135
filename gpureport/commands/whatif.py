"""``gpureport whatif``: turns its options into one call of ``work.comparing``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpureport.commands.options import FORMAT, LAKE, Invocation, period
from gpureport.schedulers.change import SETTABLE
from gpureport.store import Place
from gpureport.values.errors import UsageError
from gpureport.values.text.rows import Output

if TYPE_CHECKING:
    from gpureport.whatif.placement import Policy

_TERMS = "; ".join(f"{system}: {terms}" for system, terms in SETTABLE.items())


@click.command()
@click.option("--since", help="Start: 2026-11-20, a time, 2026-10, 7d or yesterday (default: the last complete week).")
@click.option("--until", help="Its end, not included.")
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
@click.option("--nodes", help="Without quotas: nodes to add or remove: +4, -3, or each number of a range, -2..+6.")
@click.option("--wait-below", help="Without quotas: the fewest added nodes with a p95 wait below this, such as 30min.")
@click.option("--like", default="", help="With --nodes: the node or GPU model to copy (default: the most common).")
@click.option(
    "--idle-timeout", help="Without quotas: end a pod when its GPUs have been idle for this long, such as 2h, 90min or 1d."
)
@click.option("--return-idle", is_flag=True, help="Without quotas: pods get only the GPUs that they used.")
@click.option(
    "--mig",
    "slices",
    type=(str, click.Choice(["for"]), str),
    multiple=True,
    metavar="PROFILE for NAMESPACE/WORKLOAD",
    help="Without quotas: a MIG instance in place of each whole GPU, such as 1g.10gb for 'research/*'. Repeatable.",
)
@click.option(
    "--placement",
    type=click.Choice(["spread", "best-fit", "first-fit"]),
    help="Without quotas: place pods where most or fewest GPUs are free, or on the first node (default: as recorded).",
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
    since: str | None,
    until: str | None,
    output: Output,
    lake: Place | None,
    nodes: str | None,
    wait_below: str | None,
    like: str,
    idle_timeout: str | None,
    return_idle: bool,
    slices: tuple[tuple[str, str, str], ...],
    placement: Policy | None,
    cluster: str | None,
    **changes: Any,
) -> None:
    """Replay recorded demand with other quotas, nodes or pods.

    Applies the schedulers' rules to the recorded demand, and prints the outcomes side by side.

    Values are in the quota's own unit (GB of gpu-memory, devices, percent of a GPU); 'none' removes a cap or limit. The table
    shows named quotas and quotas with a different outcome; CSV and JSON show all of them.

    With --nodes, --idle-timeout, --return-idle and --mig, recorded pods are placed again by node, model, GPUs, CPU and memory;
    waits are seconds from creation to a node. A pod that waited for another reason keeps its start.

    Example: gpureport whatif --since 2026-11-20 --set quota.team-a.min=20 --add-nodes 1
    """
    from gpureport.commands.work.comparing import what_if, what_if_nodes
    from gpureport.whatif import parse_question
    from gpureport.whatif.nodes import NodeScenario, parse_counts
    from gpureport.whatif.pods import PodChange, parse_duration

    config = invocation.config(lake=lake)
    window = period(invocation, config, since, until).over_by(invocation.now)
    change = PodChange(
        parse_duration(idle_timeout) if idle_timeout else None, return_idle, tuple((profile, whom) for profile, _, whom in slices)
    )
    wait = parse_duration(wait_below, "--wait-below") if wait_below else None
    if nodes or wait or change != PodChange():
        if nodes and wait:
            raise UsageError("--wait-below finds the number of nodes; leave out --nodes")
        if any(changes.values()):
            raise UsageError("placement of pods ignores quotas; give changes of quotas (--set, --remove, --add-nodes, …) alone")
        scenario = NodeScenario(parse_counts(nodes or "0"), like, placement, cluster or "", change, wait)
        what_if_nodes(config, window, scenario, output)
        return
    question = parse_question(**changes, cluster=cluster)
    what_if(config, window, question, output)
