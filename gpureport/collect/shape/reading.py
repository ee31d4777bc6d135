"""Facts of a cluster's whole day that no single series shows: exporter pods, and units of ambiguous metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpureport.collect.shape.intervals import Values
from gpureport.collect.shape.names import DEVICE_LABELS, UNSCRAPED_POD, first
from gpureport.values.series import METRIC_LABEL, Labels

Unit = Literal["ratio", "percent", "unclear"]

REQUESTS = ("kube_pod_container_resource_requests", "kube_pod_resourceclaim_info")
NOT_EXTENDED = "cpu|memory|storage|ephemeral_storage|hugepages_.*|attachable_volumes_.*|pods"

LARGEST_PERCENT = 100.0
"""Larger values are garbage in either unit (DCGM 199) and are no evidence."""


@dataclass(frozen=True)
class Reading:
    """Rules for reading a day's series."""

    exporters: frozenset[str] = frozenset()
    """Places of exporter pods: ``pod`` is the exporter where another label, such as ``exported_pod``, has the workload."""
    requesting: frozenset[str] = frozenset()
    """Pods that request an extended resource. They are not exporters."""
    honoring: frozenset[str] = frozenset()
    """Jobs with some device series without a pod: a target's label would be on all series, so their pod labels are workloads."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """Units of ambiguous metrics. A metric without an entry is a ratio."""

    def unit(self, metric: str) -> Unit:
        """Return the unit of an ambiguous metric."""
        return self.units.get(metric, "ratio")


PLAIN = Reading()


@dataclass
class UnitEvidence:
    """Range of an ambiguous metric's values, over all devices of a day."""

    largest: float = 0.0
    has_fraction: bool = False

    def add(self, values: Values) -> None:
        """Add the values of a series."""
        plausible = values[(values >= 0) & (values <= LARGEST_PERCENT)]
        if plausible.size:
            self.largest = max(self.largest, float(plausible.max()))
            self.has_fraction = self.has_fraction or bool((plausible != np.floor(plausible)).any())

    def merge(self, other: UnitEvidence) -> None:
        """Add the evidence of another group."""
        self.largest = max(self.largest, other.largest)
        self.has_fraction = self.has_fraction or other.has_fraction

    @property
    def unit(self) -> Unit:
        """Integers above 1 are percent (DCGM 4.6), fractions up to 1 a ratio (4.7); anything else is unclear."""
        if self.largest == 0 or (self.largest <= 1 and self.has_fraction):
            return "ratio"
        return "percent" if self.largest > 1 and not self.has_fraction else "unclear"


def units_by_evidence(evidence: Mapping[str, UnitEvidence]) -> dict[str, Unit]:
    """Return the metrics' units by the values of the whole day. Ratios, the usual case, are left out."""
    return {metric: found.unit for metric, found in sorted(evidence.items()) if found.unit != "ratio"}


def read_labels(labels: Iterable[Labels], before: Reading = PLAIN) -> Reading:
    """Find the exporter pods of a day: their series have another pod, the workload, in a second label."""
    exporters, requesting, honoring = set(before.exporters), set(before.requesting), set(before.honoring)
    for each in labels:
        pod, exported = each.get("pod", ""), each.get("exported_pod", "")
        if pod not in ("", exported or first(each, UNSCRAPED_POD) or pod):
            exporters |= {target(each), target({**each, "container": ""})}  # also without a container: then it is the workload's
        if each.get(METRIC_LABEL) in REQUESTS:
            if not re.fullmatch(NOT_EXTENDED, each.get("resource", "")):
                requesting |= {pod, exported} - {""}
        elif not pod and each.get("job") and first(each, DEVICE_LABELS):
            honoring.add(each["job"])
    return Reading(frozenset(exporters), requesting=frozenset(requesting), honoring=frozenset(honoring))


def target(labels: Labels) -> str:
    """Return namespace, container and pod of a scrape target, without the pod's suffix within its DaemonSet.

    An exporter's pod on an idle node has no workload label. A workload with a similar name has another place.
    """
    pod = labels.get("pod", "")
    return "/".join([labels.get("namespace", ""), labels.get("container", ""), pod.rpartition("-")[0] or pod])
