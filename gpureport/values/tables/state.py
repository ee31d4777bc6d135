"""The lake's state tables: what a Kubernetes API server and its nodes said at one instant.

They are append-only: each observation is a part file of its own under the day of ``observed_at``, several a day. Amounts are
in base units (cores, bytes, devices, or what the resource counts in); unreadable ones are null. '' means that the object
does not say it; null is an instant or number that it does not give.
"""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.tables.dra import DRA_TABLES
from gpureport.values.tables.quota import QUOTA_TABLES
from gpureport.values.tables.table import AMOUNTS, CREATED, INSTANT, OBSERVED, TEXTS, Column, Table

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
        Column(
            "capacity", AMOUNTS, "extended resources in all; a GPU may be offered under several names, so never sum the names"
        ),
        Column("allocatable", AMOUNTS, "extended resources that may be allocated"),
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
        Column(
            "running_at", INSTANT, "UTC, when the first of its containers that are known started (init containers aside)", True
        ),
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
        Column(
            "effective_requests",
            AMOUNTS,
            "what the scheduler reckons with: containers and sidecars, or the largest init step if more, and the overhead",
        ),
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
        Column("finished_at", INSTANT, "UTC, end of the last run; null while it runs", True),
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
