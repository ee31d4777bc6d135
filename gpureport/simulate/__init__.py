"""A synthetic cluster of any size, seeded: samples, Kubernetes objects and the truth about both.

``plan`` says what; ``inventory``, ``workload`` and ``planted`` make a node's story from the seed and the node's number;
``load`` and ``physics`` turn it into readings; ``batches`` puts labels on them; the writers stand beside.
"""

from gpureport.simulate.batches import simulate_batches
from gpureport.simulate.plan import SIGNALS_14, SIGNALS_ALL, SimulationPlan, choose_signals

__all__ = ["SIGNALS_14", "SIGNALS_ALL", "SimulationPlan", "choose_signals", "simulate_batches"]
