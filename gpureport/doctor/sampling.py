"""Series to sample closely: one metric of each exporter, on hosts of every kind, never on all of a large fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gpureport.collect.shape import names
from gpureport.doctor.evidence import Carried
from gpureport.values.series import Labels

POD_SERIES = ["kube_pod_info", "kube_pod_container_resource_requests", "kube_pod_resourceclaim_info"]
"""Evidence that a pod can hold a device: its address, its requests, its claims."""
SAMPLED_HOSTS = 25
SAMPLED_SERIES = 5_000


def leading_metrics(carried: Sequence[Carried]) -> list[str]:
    """Of each exporter the metric that most devices have; the first by name among equals."""
    counts: dict[str, Counter[str]] = {}
    for each in carried:
        counts.setdefault(each.exporter, Counter())[each.metric] += each.device_count
    return [min(found, key=lambda metric: (-found[metric], metric)) for found in counts.values()]


def chosen_hosts(carried: Iterable[Carried]) -> list[tuple[str, str]]:
    """Host labels and hosts: at least one of each model, with and without MIG; the others spread evenly over the names."""
    kinds: dict[tuple[str, bool], tuple[str, str]] = {}
    hosts: set[tuple[str, str]] = set()
    for each in sorted(carried, key=lambda each: each.host):
        kinds.setdefault((each.model, each.is_mig), (each.host_label, each.host))
        hosts.add((each.host_label, each.host))
    step = max(1, -(-len(hosts) // SAMPLED_HOSTS))
    return sorted({*sorted(hosts)[::step], *kinds.values()})


def named_pods(labels: Iterable[Labels]) -> list[str]:
    """The names of pods on series of devices."""
    return sorted({pod for each in labels for pod in (names.first(each, names.POD), each.get("exported_pod")) if pod})
