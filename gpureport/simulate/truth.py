"""Planted truth with times and totals; a report on the simulated cluster must find it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpureport.simulate.exporter import instance_label, scrape_phase_ms
from gpureport.simulate.physics import POWER_CAP_BIT, THERMAL_BIT
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import Day, NodeHistory, node_histories
from gpureport.simulate.workload import Pod
from gpureport.values.window import from_ms, rfc3339

Entry = dict[str, Any]


def write_truth(plan: SimulationPlan, out: Path) -> Path:
    """Write ``truth.json``: devices, holders, gaps, exporter_restarts, resets, xids and throttled phases, one per line.

    Times are times of scrapes. ``start_at`` of a gap is its first missing scrape, ``end_at`` the next successful one. A
    throttled phase covers samples in [start_at, end_at); its counter grows by ``lost_seconds`` in it.
    """
    sections: dict[str, Callable[[NodeHistory], Iterator[Entry]]] = {
        "devices": _devices,
        "holders": _holders,
        "gaps": _gaps,
        "exporter_restarts": _restarts,
        "resets": _resets,
        "xids": _xids,
        "throttled": _throttled,
    }
    path, histories = out / "truth.json", tuple(node_histories(plan))
    out.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write(f'{{\n"plan": {json.dumps(asdict(plan), default=str)}')
        for name, entries in sections.items():
            lines = [json.dumps(entry) for history in histories for entry in entries(history)]
            file.write(f',\n"{name}": [\n' + ",\n".join(lines) + "\n]")
        file.write("\n}\n")
    return path


def _at(history: NodeHistory, step: int) -> str:
    """Return the time of a scrape of the node."""
    start_ms = history.plan.start_second * 1000 + scrape_phase_ms(Day(history, 0))
    return rfc3339(from_ms(start_ms + step * history.plan.step_seconds * 1000))


def _devices(history: NodeHistory) -> Iterator[Entry]:
    for row in history.node.rows:
        yield {
            "node": history.node.name,
            "device_uuid": row.gpu.uuid,
            "gpu_instance_id": row.gpu_instance_id,
            "gpu_instance_profile": row.instance.name if row.instance else "",
            "gpu_model": row.gpu.model.name,
            "is_shared": row.gpu.is_shared,
            "usable_mib": row.usable_mib,
        }


def _holders(history: NodeHistory) -> Iterator[Entry]:
    for pod in history.pods:
        yield {
            "namespace": pod.namespace,
            "pod": pod.name,
            "pod_uid": pod.uid,
            "container": pod.kind.container,
            "node": history.node.name,
            "kind": pod.kind.stem,
            "is_idle": pod.is_idle,
            "is_failed": pod.life.is_failed,
            "requested_by": "claim" if history.node.is_dra else pod.slot.resource,
            "vgpu": pod.slot.vgpu,
            "created_at": _timestamp(pod.life.created),
            "start_at": _timestamp(pod.life.start),
            "end_at": None if (end := pod.end(history.plan)) is None else _timestamp(end),
            "devices": [_device(history, pod, row) for row in pod.slot.rows],
        }


def _device(history: NodeHistory, pod: Pod, row: int) -> Entry:
    """Return a device of the pod, with the constant fraction of usable memory that the pod uses."""
    of = history.node.rows[row]
    ratio = round(pod.memory_mib(row) / of.usable_mib, 6)
    return {"device_uuid": of.gpu.uuid, "gpu_instance_id": of.gpu_instance_id, "memory_used_ratio": ratio}


def _timestamp(second: int) -> str:
    return rfc3339(from_ms(second * 1000))


def _gaps(history: NodeHistory) -> Iterator[Entry]:
    for gap in history.planted.gaps:
        interval = {"start_at": _at(history, gap.start_step), "end_at": _at(history, gap.end_step)}
        yield {"node": history.node.name, "cause": gap.cause, **interval, "missing_scrapes": gap.end_step - gap.start_step}


def _restarts(history: NodeHistory) -> Iterator[Entry]:
    for number, step in enumerate(history.planted.restart_steps):
        instances = {"instance": instance_label(history.node, number + 1), "was": instance_label(history.node, number)}
        yield {"node": history.node.name, "at": _at(history, step), **instances}


def _resets(history: NodeHistory) -> Iterator[Entry]:
    for step in history.planted.reload_steps:
        uuids = [gpu.uuid for gpu in history.node.gpus]
        yield {"node": history.node.name, "at": _at(history, step), "device_uuids": uuids}


def _xids(history: NodeHistory) -> Iterator[Entry]:
    for xid in history.planted.xids:
        uuid = history.node.gpus[xid.gpu_index].uuid
        yield {"node": history.node.name, "device_uuid": uuid, "at": _at(history, xid.step), "code": xid.code}


def _throttled(history: NodeHistory) -> Iterator[Entry]:
    for pod in history.pods:
        phase = pod.phase
        # Growth is visible in the next sample, so growth after the plan's last sample is never visible.
        end_step = min(phase.end_step, history.plan.step_count - 1) if phase else 0
        if phase is None or phase.start_step >= end_step:
            continue
        seconds = (end_step - phase.start_step) * history.plan.step_seconds
        for row in pod.slot.rows:
            yield {
                "device_uuid": history.node.rows[row].gpu.uuid,
                "namespace": pod.namespace,
                "pod": pod.name,
                "pod_uid": pod.uid,
                "reason": phase.reason,
                "reasons_bit": POWER_CAP_BIT if phase.reason == "power" else THERMAL_BIT,
                "start_at": _at(history, phase.start_step),
                "end_at": _at(history, end_step),
                "seconds": seconds,
                "lost_seconds": round(phase.ratio * seconds, 6),
            }
