"""Kubernetes objects as the API server prints them → rows of the state tables; no input or output."""

from gpureport.state.kinds import KINDS, Kind
from gpureport.state.kubelet import kubelet_rows
from gpureport.state.observation import Observation

__all__ = ["KINDS", "Kind", "Observation", "kubelet_rows"]
