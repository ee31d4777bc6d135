"""Roles of the nodes of a reviewed cluster: trouble in known places, and none elsewhere."""

from __future__ import annotations

from typing import Literal

from gpureport.simulate.plan import GPUS_PER_NODE, SimulationPlan

Role = Literal["ordinary", "troubled", "rack", "stranded"]

CUT_GPU = GPUS_PER_NODE - 1
"""The GPU of a troubled node of which only a part is made into a MIG instance."""
SICK_GPU = 3
_TROUBLED_EVERY = 8
_STRANDED_EVERY = 16
_RACK_SHARE = 10


def role(plan: SimulationPlan, node_index: int) -> Role:
    """A node's role; every node of any other scenario is ordinary.

    troubled: an idle holder, a bandwidth-bound workload, a sick GPU, a starved team, a GPU cut in part, side by side.
    rack: hot in the same hours, a tenth of the nodes. stranded: MIG instances are made of less than half of it, nobody holds any.
    """
    if plan.scenario != "review":
        return "ordinary"
    if node_index % _TROUBLED_EVERY == 1 and (node_index + 1) * GPUS_PER_NODE <= plan.gpus:
        return "troubled"
    if 2 <= node_index < 2 + max(1, plan.node_count // _RACK_SHARE):
        return "rack"
    return "stranded" if node_index % _STRANDED_EVERY == 12 else "ordinary"


def is_cut(plan: SimulationPlan, node_index: int, gpu_index: int) -> bool:
    """Whether only the first instance of the model's layout is made of the GPU."""
    found = role(plan, node_index)
    return found == "stranded" or (found == "troubled" and gpu_index == CUT_GPU)
