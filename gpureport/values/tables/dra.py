"""The lake's tables of dynamic resource allocation (DRA): devices that drivers advertise, and claims to them."""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.tables.table import AMOUNTS, CREATED, INSTANT, OBSERVED, TEXTS, Column, Table

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
        Column(
            "is_pool_complete", pa.bool_(), "all slices of the generation are there; the scheduler takes nothing from other pools"
        ),
        Column("is_name_unique", pa.bool_(), "no other device of the pool has its name; else the whole pool is void"),
        Column("device_type", pa.string(), "gpu, mig, vfio, …; '' where the driver does not say"),
        Column(
            "uuid", pa.string(), "the device's own UUID; '' where the driver gives none (a MIG instance that is made on demand)"
        ),
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
        Column(
            "requests", DEVICE_REQUESTS, "what it requests; alternatives (firstAvailable) have a subrequest; count null means all"
        ),
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
