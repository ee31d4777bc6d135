"""Conversion of Kubernetes objects to rows of the state tables, without input or output."""

from gpureport.collect.state.kinds import KINDS, Kind
from gpureport.collect.state.observation import Observation
from gpureport.collect.state.pod_devices import kubelet_rows

__all__ = ["KINDS", "Kind", "Observation", "kubelet_rows"]
