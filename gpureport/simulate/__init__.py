"""Synthetic cluster of any size from a seed: samples, Kubernetes objects, and the planted truth about both.

``plan`` is the input. ``inventory``, ``workload`` and ``planted`` make a node's story from the seed and the node's number.
``physics`` computes readings, ``exporter`` adds labels, and the other modules write files or a lake.
"""

from gpureport.simulate.exporter import simulate_batches
from gpureport.simulate.kubernetes import write_kubernetes, write_states
from gpureport.simulate.lake_fill import fill_lake
from gpureport.simulate.openmetrics import write_openmetrics
from gpureport.simulate.plan import SIGNALS_14, SIGNALS_ALL, SimulationPlan, choose_signals, demo_plan, review_plan
from gpureport.simulate.truth import write_truth

__all__ = [
    "SIGNALS_14",
    "SIGNALS_ALL",
    "SimulationPlan",
    "choose_signals",
    "demo_plan",
    "fill_lake",
    "review_plan",
    "simulate_batches",
    "write_kubernetes",
    "write_openmetrics",
    "write_states",
    "write_truth",
]
