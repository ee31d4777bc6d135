"""The kinds of Kubernetes objects that an observation lists."""

from __future__ import annotations

from dataclasses import dataclass

DRA_GROUP = "resource.k8s.io"
DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Newest first; v1alpha3 is another shape."""


@dataclass(frozen=True)
class Kind:
    """A resource of an API group; ``versions`` in the order of preference, empty for the server's own."""

    resource: str
    kind: str
    group: str = ""
    quota_system: str = ""
    versions: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """How kubectl names it: pods, resourceclaims.resource.k8s.io."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


NODES = Kind("nodes", "Node")
NAMESPACES = Kind("namespaces", "Namespace")
PODS = Kind("pods", "Pod")
SLICES = Kind("resourceslices", "ResourceSlice", DRA_GROUP, versions=DRA_VERSIONS)
CLASSES = Kind("deviceclasses", "DeviceClass", DRA_GROUP, versions=DRA_VERSIONS)
CLAIMS = Kind("resourceclaims", "ResourceClaim", DRA_GROUP, versions=DRA_VERSIONS)
KOORDINATOR_DEVICES = Kind("devices", "Device", "scheduling.koordinator.sh")
QUOTAS = (
    Kind("resourcequotas", "ResourceQuota", quota_system="kubernetes"),
    Kind("elasticquotas", "ElasticQuota", "nos.nebuly.com", "nos"),
    Kind("compositeelasticquotas", "CompositeElasticQuota", "nos.nebuly.com", "nos"),
    Kind("elasticquotas", "ElasticQuota", "scheduling.x-k8s.io", "scheduler-plugins"),
    Kind("clusterqueues", "ClusterQueue", "kueue.x-k8s.io", "kueue"),
    Kind("localqueues", "LocalQueue", "kueue.x-k8s.io", "kueue"),
    Kind("cohorts", "Cohort", "kueue.x-k8s.io", "kueue"),
    Kind("resourceflavors", "ResourceFlavor", "kueue.x-k8s.io", "kueue"),
    Kind("elasticquotas", "ElasticQuota", "scheduling.sigs.k8s.io", "koordinator"),
    Kind("elasticquotaprofiles", "ElasticQuotaProfile", "quota.koordinator.sh", "koordinator"),
    Kind("queues", "Queue", "scheduling.volcano.sh", "volcano"),
    Kind("podgroups", "PodGroup", "scheduling.volcano.sh", "volcano"),
    Kind("queues", "Queue", "scheduling.run.ai", "kai"),
)
KINDS = (NODES, NAMESPACES, SLICES, CLASSES, CLAIMS, PODS, KOORDINATOR_DEVICES, *QUOTAS)
"""In the order in which they are listed: claims before pods, so that a pod seen with a claim is likely to find it."""
