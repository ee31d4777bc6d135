"""What the figures of the scheduler's tables are: what was requested and was there, and how long pods waited."""

from __future__ import annotations

from gpureport.figures.figure import Figure

_GAUGES = {
    # gauge: what it is at an instant; whether its maximum is told too
    "pending_pod_count": ("pods of phase Pending that request the resource, bound or not", True),
    "pending_request_units": ("Σ requests, else limits, of the containers of pending pods", True),
    "requested_units": ("Σ requests, else limits, of the containers of pending and running pods", False),
    "allocatable_units": ("Σ allocatable of all nodes, including cordoned and not ready ones", False),
    "requested_allocatable_ratio": ("requested ÷ allocatable of all nodes", True),
    "unscheduled_pod_count": ("pods without a node that the scheduler may place", True),
    "unscheduled_units": ("Σ their effective requests: containers and sidecars, or the largest init step, and overhead", True),
    "gated_pod_count": ("pods with scheduling gates", False),
    "bound_pending_pod_count": ("pods with a node that do not run yet", True),
    "bound_pending_units": ("Σ their effective requests", False),
    "held_units": ("Σ effective requests of all pods with a node that have not finished, and devices of claims", False),
    "schedulable_units": ("Σ allocatable of nodes that are ready and not cordoned, without tainted devices", False),
    "cordoned_units": ("Σ allocatable of cordoned nodes that are ready", False),
    "not_ready_units": ("Σ allocatable of nodes that are not ready", False),
    "demand_schedulable_ratio": ("(held + unscheduled units) ÷ schedulable units", True),
}
_OPENCOSTS = ("pending_pod_count", "pending_request_units", "requested_allocatable_ratio")
_RATIOS = frozenset({"requested_allocatable_ratio", "demand_schedulable_ratio"})
_WAITS = {
    "placing": "from creation to placement on a node, or to the window's end, of pods that were placed in it or wait still",
    "starting": "from placement to the first running container, of pods that began to run in the window",
}
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p95": "0.95"}


def _absent(gauge: str) -> str:
    nothing = "; nothing is allocatable" if gauge in _RATIOS else ""
    return f"neither kube-state-metrics nor snapshots covered it{nothing}"


def _pressure() -> dict[str, Figure]:
    found = {}
    for gauge, (meaning, has_maximum) in _GAUGES.items():
        found[f"{gauge}_avg"] = Figure(f"∫ {meaning} dt ÷ s in which it was known", absent=_absent(gauge))
        if has_maximum:
            found[f"{gauge}_max"] = Figure(f"largest at any instant: {meaning}", absent=_absent(gauge))
    for gauge in _OPENCOSTS:
        found[f"opencost_{gauge}_avg"] = Figure("mean over time of OpenCost's own gauge", absent="Prometheus does not have it")
    return found


def _waits() -> dict[str, Figure]:
    found = {
        f"{wait}_seconds_{name}": Figure(f"{share}-quantile, interpolated, of s {meaning}", absent="no such pod")
        for wait, meaning in _WAITS.items()
        for name, share in _QUANTILES.items()
    }
    longest = {f"{wait}_seconds_max": Figure(f"longest s {meaning}", absent="no such pod") for wait, meaning in _WAITS.items()}
    waiting = Figure("longest s from creation until last seen waiting for a node", absent="no such pod")
    pending = Figure("∫ requested GPUs dt within the window, from creation to placement", absent="units have no size in GPUs")
    return found | longest | {"waiting_seconds_max": waiting, "pending_gpu_hours": pending}


def _room() -> dict[str, Figure]:
    """What is left, every five minutes, of what nodes that take pods have to give."""
    best = "units that one node has left, the most of any node"
    fits = {
        f"fits_{units}_ratio": Figure(f"looks, every five minutes, at which a node had {units} or more units left ÷ looks")
        for units in (1, 2, 4, 8)
    }
    return {
        "free_units_avg": Figure("mean over looks of Σ schedulable - held units over nodes"),
        "free_units_min": Figure("least of any look: Σ schedulable - held units over nodes"),
        "largest_request_units_avg": Figure(f"mean over looks of {best}"),
        "largest_request_units_min": Figure(f"least of any look: {best}"),
        "largest_request_units_max": Figure(f"most of any look: {best}"),
        "fragmentation_ratio": Figure(
            "1 - largest request that fits ÷ everything that is free, each summed over the looks", absent="nothing is free"
        ),
        **fits,
        "fitting_8_pod_count_avg": Figure("mean over looks of Σ ⌊free units ÷ 8⌋ over nodes"),
    }


def _koordinators() -> dict[str, Figure]:
    """What Koordinator says of its devices; memory is null for devices that have none."""
    none = "the device has no memory, or it is unknown how much"
    return {
        "free_core_percent_avg": Figure("∫ free computing power dt ÷ s in which the device was looked at"),
        "memory_bytes": Figure("gpu-memory of the device; of a node Σ over healthy devices", absent=none),
        "held_memory_bytes": Figure("Σ gpu-memory of the pods that have a part, shares of memory × the device's", absent=none),
        "free_memory_bytes": Figure("memory - held; 0 for a device that is not healthy", absent=none),
        "free_memory_bytes_avg": Figure("∫ free memory dt ÷ s in which the device was looked at", absent=none),
        "requested_memory_bytes": Figure(
            "bytes requested of the device, else its asked share × memory_total_bytes, whole bytes",
            absent="only computing power is requested; a share is requested and the device's memory is unknown",
        ),
        "used_memory_bytes": Figure("memory_used_bytes of report.accelerator", ("fb_used_bytes",), "see report.accelerator"),
        "used_memory_bytes_max": Figure(
            "memory_used_bytes_max of report.accelerator", ("fb_used_bytes",), "see report.accelerator"
        ),
        "largest_memory_bytes": Figure("most free memory of any one device", absent=none),
    }


SCHEDULER_FIGURES = _pressure() | _waits() | _room() | _koordinators()
"""The figures of the tables about the scheduler: pressure, waits, what is left, what of Koordinator's devices is free."""
