"""The lake's state tables: what a Kubernetes API server and its nodes said at one instant.

They are append-only: each observation is a part file of its own under the day of ``observed_at``, several a day. Amounts are
in base units (cores, bytes, devices, or what the resource counts in); unreadable ones are null. '' means that the object
does not say it; null is an instant or number that it does not give.
"""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.tables.table import AMOUNTS, CREATED, INSTANT, OBSERVED, TEXTS, Column, Table

QUOTA = Table(
    "quota",
    "Objects of quota systems, as they are.",
    ("system", "kind", "namespace", "name", "uid", "observed_at"),
    (
        OBSERVED,
        Column("system", pa.string(), "quota system"),
        Column("kind", pa.string(), "resource and API group, elasticquotas.nos.nebuly.com"),
        Column("api_version", pa.string(), "API version in which it was read"),
        Column("namespace", pa.string(), "namespace, '' for what belongs to the cluster"),
        Column("name", pa.string(), "object's name"),
        Column("uid", pa.string(), "object's uid"),
        CREATED,
        Column("labels", TEXTS, "labels"),
        Column("annotations", TEXTS, "annotations"),
        Column("spec", pa.string(), "spec as JSON, keys sorted"),
        Column("status", pa.string(), "status as JSON, keys sorted"),
    ),
)


def _amount(name: str, doc: str) -> Column:
    return Column(name, pa.float64(), f"{doc}; null where it says none", True)


QUOTA_TERM = Table(
    "quota_term",
    "What quota objects say of each resource, in the same words for all systems. Amounts are in base units of the resource.",
    ("system", "kind", "namespace", "name", "uid", "resource", "flavor", "observed_at"),
    (
        OBSERVED,
        Column("system", pa.string(), "quota system"),
        Column("kind", pa.string(), "resource and API group, elasticquotas.nos.nebuly.com"),
        Column("namespace", pa.string(), "namespace, '' for what belongs to the cluster"),
        Column("name", pa.string(), "object's name"),
        Column("uid", pa.string(), "object's uid"),
        CREATED,
        Column("quota", pa.string(), "what the system knows it by: namespace/name, the name alone, or cohort/name"),
        Column("parent", pa.string(), "quota that contains it, '' where none does"),
        Column("is_parent", pa.bool_(), "said to contain others; what it holds is theirs"),
        Column("namespaces", pa.list_(pa.string()), "namespaces that it governs by their name"),
        Column("tree", pa.string(), "Koordinator's quota tree"),
        Column("display_name", pa.string(), "name for people, which KAI's scheduler gives its series"),
        Column("priority", pa.int64(), "priority among quotas", True),
        Column("may_lend", pa.bool_(), "what it does not use may go to others"),
        Column("resource", pa.string(), "resource as the quota names it; gpu for KAI; '' of a Cohort's place"),
        Column("flavor", pa.string(), "Kueue's flavor of the resource, or ''"),
        _amount("guaranteed", "min, nominalQuota, guarantee, quota (infinite for KAI's -1)"),
        _amount("cap", "max, capability, limit, hard"),
        _amount("weight", "part of what is over: shared-weight, weight, overQuotaWeight, fairSharing.weight"),
        _amount("deserved", "Volcano's capacity plugin: what it has before others may reclaim"),
        _amount("borrowing_limit", "Kueue: most that it may borrow"),
        _amount("lending_limit", "Kueue: most that it lends"),
        _amount("delivered", "what its status says is in use"),
        _amount("demanded", "what its status says is requested"),
        _amount("fair_share", "what its scheduler says it may have: Koordinator's runtime"),
        Column("changed_at", INSTANT, "UTC, when its spec last changed, as far as its managed fields tell", True),
    ),
)

_REQUEST = pa.struct(
    [
        ("pod_set", pa.string()),
        ("pod_count", pa.int64()),
        ("resource", pa.string()),
        ("flavor", pa.string()),
        ("amount", pa.float64()),
        ("placement", pa.string()),
    ]
)


def _event(name: str, doc: str) -> Column:
    return Column(name, INSTANT, f"UTC, {doc}; null where that is not its state", True)


WORKLOAD = Table(
    "workload",
    "Kueue's Workloads: what requests quota, before there are pods and after, and its outcome.",
    ("namespace", "workload", "workload_uid", "observed_at"),
    (
        OBSERVED,
        Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
        Column("workload", pa.string(), "workload's name"),
        Column("workload_uid", pa.string(), "workload's uid"),
        CREATED,
        Column("owner_kind", pa.string(), "kind of what it was made for: Job, JobSet, RayJob, Pod, …"),
        Column("owner_name", pa.string(), "name of that"),
        Column("local_queue", pa.string(), "LocalQueue in which it waits"),
        Column("cluster_queue", pa.string(), "ClusterQueue whose quota it has reserved; '' while it has none"),
        Column("priority", pa.int64(), "priority; null where unknown", True),
        Column("priority_class", pa.string(), "priority class"),
        Column("is_active", pa.bool_(), "it may be admitted; a deactivated one waits for nothing"),
        _event("reserved_at", "when it reserved quota"),
        _event("released_at", "since when it has no quota, from its creation or after it had some"),
        _event("admitted_at", "when it was admitted"),
        _event("evicted_at", "when it was evicted"),
        Column("eviction_reason", pa.string(), "why it was evicted: Preempted, PodsReadyTimeout, AdmissionCheck, …"),
        Column("preemption_reason", pa.string(), "why it was preempted: InClusterQueue, InCohortReclamation, …"),
        Column("preemptor_uid", pa.string(), "uid of the workload for which it was preempted"),
        _event("finished_at", "when it finished"),
        Column("finish_reason", pa.string(), "how it finished: Succeeded, Failed, …"),
        Column("waiting_message", pa.string(), "why it has no quota, in Kueue's words"),
        Column("requests", pa.list_(_REQUEST), "what it requests or has reserved, by pod set and resource, of all its pods"),
    ),
)

QUOTA_TABLES = (QUOTA, QUOTA_TERM, WORKLOAD)


DEVICE_REQUESTS = pa.list_(
    pa.struct(
        [
            ("request", pa.string()),
            ("subrequest", pa.string()),
            ("device_class", pa.string()),
            ("allocation_mode", pa.string()),
            ("device_count", pa.int64()),
            ("is_admin_access", pa.bool_()),
            ("capacities", AMOUNTS),
        ]
    )
)

_CLAIM = (
    Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
    Column("claim", pa.string(), "claim's name"),
    Column("claim_uid", pa.string(), "claim's uid; '' where only labels name it"),
)
_POOL_DEVICE = (
    Column("driver", pa.string(), "DRA driver"),
    Column("pool", pa.string(), "pool of the driver"),
    Column("device", pa.string(), "device's name in the pool"),
)

DEVICE = Table(
    "device",
    "Devices that DRA drivers offer, of each pool the newest generation. Partitions of a GPU are beside it: never count rows.",
    ("driver", "pool", "device", "observed_at"),
    (
        OBSERVED,
        *_POOL_DEVICE,
        Column("node_name", pa.string(), "node, '' where the device is not one node's"),
        Column("pool_generation", pa.int64(), "generation of the pool"),
        Column("is_pool_complete", pa.bool_(), "all slices of the generation are there; else nothing is allocated"),
        Column("is_name_unique", pa.bool_(), "no other device of the pool has its name; else the whole pool is void"),
        Column("device_type", pa.string(), "gpu, mig, vfio, …; '' where the driver does not say"),
        Column("uuid", pa.string(), "the device's own UUID; '' where the driver gives none"),
        Column("parent_uuid", pa.string(), "UUID of the GPU that it is a part of"),
        Column("device_uuid", pa.string(), "UUID of the physical GPU, as in the other tables: the parent's, or its own"),
        Column("profile", pa.string(), "MIG or partition profile"),
        Column("gpu_model", pa.string(), "product name"),
        Column("pci_bus_id", pa.string(), "PCI address, as 0000:18:00.0; of a part that has none, its parent's"),
        Column("attributes", TEXTS, "all attributes by full name (domain/id), as text; lists joined by a comma"),
        Column("capacities", AMOUNTS, "capacities by the driver's names; partitions repeat their parent's, so never sum them"),
        Column("consumed_counters", AMOUNTS, "what it takes from counters shared with other devices, by counter set/counter"),
        Column("is_shareable", pa.bool_(), "may be allocated several times (allowMultipleAllocations)"),
        Column("taints", pa.list_(pa.string()), "taints as key=value:effect"),
    ),
)
DEVICE_CLASS = Table(
    "device_class",
    "Classes of devices that claims request.",
    ("device_class", "observed_at"),
    (
        OBSERVED,
        Column("device_class", pa.string(), "DeviceClass's name"),
        Column("device_class_uid", pa.string(), "DeviceClass's uid"),
        CREATED,
        Column("extended_resource", pa.string(), "extended resource that pods may request instead; '' none"),
        Column("selectors", pa.list_(pa.string()), "CEL expressions that a device must meet"),
    ),
)
CLAIM = Table(
    "claim",
    "ResourceClaims: what was requested and whether it was granted. They vanish with their pods.",
    ("namespace", "claim", "claim_uid", "observed_at"),
    (
        OBSERVED,
        *_CLAIM,
        CREATED,
        Column("deletion_at", INSTANT, "UTC, when its deletion was requested", True),
        Column("owner_kind", pa.string(), "kind of the object that it was made for: Pod, or '' where a person made it"),
        Column("owner_name", pa.string(), "that object's name"),
        Column("owner_uid", pa.string(), "that object's uid"),
        Column("pod_claim", pa.string(), "the pod's own name for it, where it was made from a template"),
        Column("is_extended_resource", pa.bool_(), "made by the scheduler for a pod's extended resource: the same devices, once"),
        Column("requests", DEVICE_REQUESTS, "what it requests; alternatives have a subrequest; count null means all"),
        Column("is_allocated", pa.bool_(), "devices are allocated to it"),
        Column("allocated_at", INSTANT, "UTC, when; servers before 1.36 do not say", True),
        Column("node_name", pa.string(), "the one node from which it can be used, '' where it is not one"),
    ),
)
CLAIM_DEVICE = Table(
    "claim_device",
    "Devices allocated to claims.",
    ("namespace", "claim", "claim_uid", "driver", "pool", "device", "share_id", "request", "observed_at"),
    (
        OBSERVED,
        *_CLAIM,
        *_POOL_DEVICE,
        Column("request", pa.string(), "request of the claim that it answers"),
        Column("subrequest", pa.string(), "the alternative that was taken (firstAvailable), or ''"),
        Column("share_id", pa.string(), "which share of a device that may be allocated several times, or ''"),
        Column("consumed_capacity", AMOUNTS, "what the share takes of the device's capacities"),
        Column("is_admin_access", pa.bool_(), "for watching only: takes nothing, and others hold the device beside it"),
    ),
)
CLAIM_CONSUMER = Table(
    "claim_consumer",
    "Who reserved a claim.",
    ("namespace", "claim", "claim_uid", "consumer_uid", "observed_at"),
    (
        OBSERVED,
        *_CLAIM,
        Column("consumer_resource", pa.string(), "pods, or podgroups: those are no pods, though they have a uid"),
        Column("consumer_group", pa.string(), "API group of the resource, '' for pods"),
        Column("consumer", pa.string(), "consumer's name"),
        Column("consumer_uid", pa.string(), "consumer's uid"),
    ),
)

DRA_TABLES: tuple[Table, ...] = (DEVICE, DEVICE_CLASS, CLAIM, CLAIM_DEVICE, CLAIM_CONSUMER)


CONTAINER_CLAIMS = pa.list_(
    pa.struct([("claim", pa.string()), ("pod_claim", pa.string()), ("request", pa.string()), ("resource", pa.string())])
)
ALLOCATED_DEVICES = pa.list_(pa.struct([("resource", pa.string()), ("device_id", pa.string()), ("health", pa.string())]))

_POD = (
    Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
    Column("pod", pa.string(), "pod of the workload; not an identity, names come again"),
    Column("pod_uid", pa.string(), "its uid; '' where unknown"),
)

NODE = Table(
    "node",
    "Nodes: readiness, what they offer of extended resources, and what feature discovery says of their GPUs.",
    ("node_name", "observed_at"),
    (
        OBSERVED,
        Column("node_name", pa.string(), "node; '' where unknown"),
        Column("node_uid", pa.string(), "node's uid"),
        CREATED,
        Column("is_ready", pa.bool_(), "condition Ready is True; null where the node has no such condition", True),
        Column("ready_changed_at", INSTANT, "UTC, when readiness last changed", True),
        Column("is_unschedulable", pa.bool_(), "cordoned"),
        Column("taints", pa.list_(pa.string()), "taints as key=value:effect"),
        Column("capacity", AMOUNTS, "extended resources in all; never sum names, which may be of the same GPU"),
        Column("allocatable", AMOUNTS, "extended resources, CPU and memory that may be allocated"),
        Column("labels", TEXTS, "labels about accelerators, partitioning and topology"),
        Column("annotations", TEXTS, "annotations about partitioning (nos)"),
    ),
)
NAMESPACE = Table(
    "namespace",
    "Namespaces and their labels.",
    ("namespace", "observed_at"),
    (
        OBSERVED,
        Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
        Column("namespace_uid", pa.string(), "namespace's uid"),
        CREATED,
        Column("labels", TEXTS, "all labels"),
    ),
)
POD = Table(
    "pod",
    "Pods: where and when they ran or waited, whose they are, and what they request as a whole.",
    ("namespace", "pod", "pod_uid", "observed_at"),
    (
        OBSERVED,
        *_POD,
        Column("node_name", pa.string(), "node that it is bound to, '' while it is to none"),
        Column("phase", pa.string(), "Pending, Running, Succeeded, Failed or Unknown"),
        CREATED,
        Column("scheduled_at", INSTANT, "UTC, when it was bound", True),
        Column("started_at", INSTANT, "UTC, when the kubelet took it", True),
        Column("running_at", INSTANT, "UTC, when the first of its containers started, init containers aside", True),
        Column("finished_at", INSTANT, "UTC, when its last container ended; only of finished pods", True),
        Column("deletion_at", INSTANT, "UTC, when a deletion that was requested takes effect", True),
        Column("owner_kind", pa.string(), "kind of the controller that made it: Job, ReplicaSet, …"),
        Column("owner_name", pa.string(), "the controller's name"),
        Column("placement", pa.string(), "node selector and required affinity: alternatives as JSON; '' where it takes any node"),
        Column("priority", pa.int64(), "priority; null where unknown", True),
        Column("priority_class", pa.string(), "priority class"),
        Column("scheduler", pa.string(), "scheduler that places it"),
        Column("scheduling_group", pa.string(), "group of pods that are placed together"),
        Column("unschedulable_at", INSTANT, "UTC, since when the scheduler has found no place; null where it found one", True),
        Column("unschedulable_reason", pa.string(), "why, in a word: Unschedulable, SchedulingGated"),
        Column("unschedulable_message", pa.string(), "why, in the scheduler's words"),
        Column("status_reason", pa.string(), "why it is in its phase: Evicted, Preempting, …"),
        Column("effective_requests", AMOUNTS, "containers and sidecars, or the largest init step if more, and overhead"),
        Column("quota_scopes", pa.list_(pa.string()), "scopes of ResourceQuotas that it is in, but for its priority class", True),
        Column("resource_claims", TEXTS, "ResourceClaim by the pod's own name for it; '' where it is not made yet"),
        Column("extended_resource_claim", pa.string(), "claim that the scheduler made for the pod's extended resources"),
        Column("labels", TEXTS, "all labels but the hashes that controllers add"),
        Column("annotations", TEXTS, "annotations about devices, quotas and queues"),
    ),
)
POD_CONTAINER = Table(
    "pod_container",
    "Containers of pods: what they request, which claims they use, which devices they were given, when they ran.",
    ("namespace", "pod", "pod_uid", "container", "observed_at"),
    (
        OBSERVED,
        *_POD,
        Column("container", pa.string(), "container of the workload"),
        Column("container_kind", pa.string(), "app, init, or sidecar (an init container that keeps running)"),
        Column("requests", AMOUNTS, "what it requests; where it sets a limit alone, that"),
        Column("limits", AMOUNTS, "limits"),
        Column(
            "claims",
            CONTAINER_CLAIMS,
            "claims that it uses: name ('' not made yet), the pod's name for it, the one request ('' all), the extended resource "
            "that it stands for: requests[resource] and the claim are the same devices",
        ),
        Column("allocated_devices", ALLOCATED_DEVICES, "devices that the kubelet says it was given, and their health"),
        Column("state", pa.string(), "waiting, running or terminated; '' before the kubelet has said anything"),
        Column("reason", pa.string(), "why it waits or ended: ImagePullBackOff, OOMKilled, …"),
        Column("started_at", INSTANT, "UTC, start of the present or last run", True),
        Column("finished_at", INSTANT, "UTC, end of the last run that ended", True),
        Column("restart_count", pa.int64(), "restarts", True),
        Column("exit_code", pa.int64(), "exit code of the last run", True),
    ),
)
KOORDINATOR_DEVICE = Table(
    "koordinator_device",
    "Devices of nodes as Koordinator's agent reports them.",
    ("node_name", "device_type", "minor", "device_id", "observed_at"),
    (
        OBSERVED,
        Column("node_name", pa.string(), "node; '' where unknown"),
        Column("device_type", pa.string(), "gpu, rdma, fpga or xpu"),
        Column("minor", pa.int64(), "minor number of the device on the node"),
        Column("device_id", pa.string(), "UUID of a GPU, PCI address of others"),
        Column("is_healthy", pa.bool_(), "fit for use"),
        Column("health_reason", pa.string(), "why it is not, as Xid79"),
        Column("resources", AMOUNTS, "what it counts for: 100 of gpu-core and gpu-memory-ratio per GPU, gpu-memory in bytes"),
        Column("socket_id", pa.int64(), "CPU socket; null where not told", True),
        Column("numa_node", pa.int64(), "NUMA node; null where not told", True),
        Column("pcie_id", pa.string(), "PCIe switch"),
        Column("pci_bus_id", pa.string(), "PCI address, as 0000:18:00.0"),
        Column("module_id", pa.int64(), "module on the board", True),
        Column("virtual_function_count", pa.int64(), "virtual functions that it offers"),
        Column("labels", TEXTS, "labels of the device and of its Device object"),
        Column("gpu_partitions", pa.string(), "which minors make a linked partition, by size, as JSON; '' where not said"),
    ),
)
POD_DEVICE = Table(
    "pod_device",
    "Devices that pods hold by what is said outside of claims: Koordinator's annotation, the kubelet's checkpoint, PodResources.",
    ("source", "namespace", "pod", "pod_uid", "container", "resource", "device_type", "minor", "device_id", "observed_at"),
    (
        OBSERVED,
        Column("source", pa.string(), "koordinator, kubelet-checkpoint or pod-resources"),
        Column("namespace", pa.string(), "namespace; '' where only the uid is known"),
        Column("pod", pa.string(), "pod's name; '' where only the uid is known"),
        Column("pod_uid", pa.string(), "pod's uid; '' where only the name is known"),
        Column("node_name", pa.string(), "node that the pod is bound to, where the pod is known"),
        Column("container", pa.string(), "container; '' where the pod as a whole holds the device"),
        Column("resource", pa.string(), "resource that was requested; '' for Koordinator and claims"),
        Column("device_type", pa.string(), "gpu, rdma, fpga (Koordinator), or ''"),
        Column("device_id", pa.string(), "device's id as said: UUID, MIG UUID, nvidia0; a replica's number is left out"),
        Column("replica", pa.string(), "number of the replica of a shared device, or ''"),
        Column("minor", pa.int64(), "device's number on the node (Koordinator)", True),
        Column("numa_nodes", pa.list_(pa.int64()), "NUMA nodes that the kubelet puts it to"),
        Column("amounts", AMOUNTS, "how much of the device: gpu-core and gpu-memory-ratio in percent, gpu-memory in bytes"),
        Column("claim", pa.string(), "ResourceClaim behind it (PodResources), or ''"),
        Column("driver", pa.string(), "DRA driver behind it (PodResources), or ''"),
        Column("pool", pa.string(), "the driver's pool, or ''"),
        Column("device", pa.string(), "device's name in the pool, or ''"),
        Column("share_id", pa.string(), "share of the device, or ''"),
    ),
)

STATE_TABLES: tuple[Table, ...] = (
    NODE,
    NAMESPACE,
    POD,
    POD_CONTAINER,
    *DRA_TABLES,
    *QUOTA_TABLES,
    KOORDINATOR_DEVICE,
    POD_DEVICE,
)
