"""The kinds of Kubernetes objects in a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

DRA_GROUP = "resource.k8s.io"
DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Newest first. v1alpha3 has another structure."""


@dataclass(frozen=True)
class Kind:
    """A resource of an API group. ``versions`` is in order of preference; empty means the server's own order."""

    resource: str
    kind: str
    group: str = ""
    quota_system: str = ""
    versions: tuple[str, ...] = ()
    is_namespaced: bool = False
    fields: str = ""
    """Field selector: only matching objects are listed."""

    @property
    def system(self) -> str:
        """System of the kind in ``kubernetes.systems``; '' for kinds that every report needs."""
        return _SYSTEM_BY_GROUP.get(self.group, self.quota_system)

    @property
    def name(self) -> str:
        """Name in kubectl: pods, resourceclaims.resource.k8s.io."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


_SYSTEM_BY_GROUP = {DRA_GROUP: "dra", "scheduling.koordinator.sh": "koordinator"}

NODES = Kind("nodes", "Node")
NAMESPACES = Kind("namespaces", "Namespace")
PODS = Kind("pods", "Pod", is_namespaced=True)
SLICES = Kind("resourceslices", "ResourceSlice", DRA_GROUP, versions=DRA_VERSIONS)
CLASSES = Kind("deviceclasses", "DeviceClass", DRA_GROUP, versions=DRA_VERSIONS)
CLAIMS = Kind("resourceclaims", "ResourceClaim", DRA_GROUP, versions=DRA_VERSIONS, is_namespaced=True)
KOORDINATOR_DEVICES = Kind("devices", "Device", "scheduling.koordinator.sh")
FLAVORS = Kind("resourceflavors", "ResourceFlavor", "kueue.x-k8s.io", "kueue")
WORKLOADS = Kind("workloads", "Workload", "kueue.x-k8s.io", "kueue", ("v1beta2", "v1beta1"), is_namespaced=True)
REFUSALS = Kind("events", "Event", quota_system="kubernetes", is_namespaced=True, fields="reason=FailedCreate")
QUOTAS = (
    Kind("resourcequotas", "ResourceQuota", quota_system="kubernetes", is_namespaced=True),
    Kind("elasticquotas", "ElasticQuota", "nos.nebuly.com", "nos", is_namespaced=True),
    Kind("compositeelasticquotas", "CompositeElasticQuota", "nos.nebuly.com", "nos", is_namespaced=True),
    Kind("elasticquotas", "ElasticQuota", "scheduling.x-k8s.io", "scheduler-plugins", is_namespaced=True),
    Kind("clusterqueues", "ClusterQueue", "kueue.x-k8s.io", "kueue"),
    Kind("localqueues", "LocalQueue", "kueue.x-k8s.io", "kueue", is_namespaced=True),
    Kind("cohorts", "Cohort", "kueue.x-k8s.io", "kueue"),
    FLAVORS,
    WORKLOADS,
    Kind("elasticquotas", "ElasticQuota", "scheduling.sigs.k8s.io", "koordinator", is_namespaced=True),
    Kind("elasticquotaprofiles", "ElasticQuotaProfile", "quota.koordinator.sh", "koordinator", is_namespaced=True),
    Kind("queues", "Queue", "scheduling.volcano.sh", "volcano"),
    Kind("podgroups", "PodGroup", "scheduling.volcano.sh", "volcano", is_namespaced=True),
    Kind("queues", "Queue", "scheduling.run.ai", "kai"),
)
KINDS = (NODES, NAMESPACES, SLICES, CLASSES, CLAIMS, PODS, KOORDINATOR_DEVICES, *QUOTAS, REFUSALS)
"""In listing order: claims come before pods, so that a pod's claims are probably listed."""
