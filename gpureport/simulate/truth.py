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
from gpureport.simulate.story import Day, NodeStory, stories
from gpureport.simulate.workload import Pod
from gpureport.values.errors import GpureportError
from gpureport.values.window import from_ms, rfc3339

Entry = dict[str, Any]


def write_truth(plan: SimulationPlan, out: Path) -> Path:
    """Write ``truth.json``: devices, holders, gaps, exporter_restarts, resets, xids and throttled phases, one per line.

    Times are times of scrapes. ``start_at`` of a gap is its first missing scrape, ``end_at`` the next successful one. A
    throttled phase covers samples in [start_at, end_at); its counter grows by ``lost_seconds`` in it.
    """
    sections: dict[str, Callable[[NodeStory], Iterator[Entry]]] = {
        "devices": _devices,
        "holders": _holders,
        "gaps": _gaps,
        "exporter_restarts": _restarts,
        "resets": _resets,
        "xids": _xids,
        "throttled": _throttled,
    }
    path, all_stories = out / "truth.json", tuple(stories(plan))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            file.write(f'{{\n"plan": {json.dumps(asdict(plan), default=str)}')
            for name, entries in sections.items():
                lines = [json.dumps(entry) for story in all_stories for entry in entries(story)]
                file.write(f',\n"{name}": [\n' + ",\n".join(lines) + "\n]")
            file.write("\n}\n")
    except OSError as error:
        raise GpureportError(f"{out} cannot be written ({error.strerror or error}); give --out a folder with space") from error
    return path


def _at(story: NodeStory, step: int) -> str:
    """Return the time of a scrape of the node."""
    start_ms = story.plan.start_second * 1000 + scrape_phase_ms(Day(story, 0))
    return rfc3339(from_ms(start_ms + step * story.plan.step_seconds * 1000))


def _devices(story: NodeStory) -> Iterator[Entry]:
    for row in story.node.rows:
        yield {
            "node": story.node.name,
            "device_uuid": row.gpu.uuid,
            "gpu_instance_id": row.gpu_instance_id,
            "gpu_instance_profile": row.instance.name if row.instance else "",
            "gpu_model": row.gpu.model.name,
            "is_shared": row.gpu.is_shared,
            "usable_mib": row.usable_mib,
        }


def _holders(story: NodeStory) -> Iterator[Entry]:
    for pod in story.pods:
        yield {
            "namespace": pod.namespace,
            "pod": pod.name,
            "pod_uid": pod.uid,
            "container": pod.kind.container,
            "node": story.node.name,
            "kind": pod.kind.stem,
            "is_idle": pod.is_idle,
            "is_failed": pod.life.is_failed,
            "requested_by": "claim" if story.node.is_dra else pod.slot.resource,
            "vgpu": pod.slot.vgpu,
            "created_at": _second(pod.life.created),
            "start_at": _second(pod.life.start),
            "end_at": None if (end := pod.end(story.plan)) is None else _second(end),
            "devices": [_device(story, pod, row) for row in pod.slot.rows],
        }


def _device(story: NodeStory, pod: Pod, row: int) -> Entry:
    """Return a device of the pod, with the constant fraction of usable memory that the pod uses."""
    of = story.node.rows[row]
    ratio = round(pod.memory_mib(row) / of.usable_mib, 6)
    return {"device_uuid": of.gpu.uuid, "gpu_instance_id": of.gpu_instance_id, "memory_used_ratio": ratio}


def _second(second: int) -> str:
    return rfc3339(from_ms(second * 1000))


def _gaps(story: NodeStory) -> Iterator[Entry]:
    for gap in story.planted.gaps:
        interval = {"start_at": _at(story, gap.start_step), "end_at": _at(story, gap.end_step)}
        yield {"node": story.node.name, "cause": gap.cause, **interval, "missing_scrapes": gap.end_step - gap.start_step}


def _restarts(story: NodeStory) -> Iterator[Entry]:
    for number, step in enumerate(story.planted.restart_steps):
        instances = {"instance": instance_label(story.node, number + 1), "was": instance_label(story.node, number)}
        yield {"node": story.node.name, "at": _at(story, step), **instances}


def _resets(story: NodeStory) -> Iterator[Entry]:
    for step in story.planted.reload_steps:
        uuids = [gpu.uuid for gpu in story.node.gpus]
        yield {"node": story.node.name, "at": _at(story, step), "device_uuids": uuids}


def _xids(story: NodeStory) -> Iterator[Entry]:
    for xid in story.planted.xids:
        uuid = story.node.gpus[xid.gpu_index].uuid
        yield {"node": story.node.name, "device_uuid": uuid, "at": _at(story, xid.step), "code": xid.code}


def _throttled(story: NodeStory) -> Iterator[Entry]:
    for pod in story.pods:
        phase = pod.phase
        # Growth is visible in the next sample, so growth after the plan's last sample is never visible.
        end_step = min(phase.end_step, story.plan.step_count - 1) if phase else 0
        if phase is None or phase.start_step >= end_step:
            continue
        seconds = (end_step - phase.start_step) * story.plan.step_seconds
        for row in pod.slot.rows:
            yield {
                "device_uuid": story.node.rows[row].gpu.uuid,
                "namespace": pod.namespace,
                "pod": pod.name,
                "pod_uid": pod.uid,
                "reason": phase.reason,
                "reasons_bit": POWER_CAP_BIT if phase.reason == "power" else THERMAL_BIT,
                "start_at": _at(story, phase.start_step),
                "end_at": _at(story, end_step),
                "seconds": seconds,
                "lost_seconds": round(phase.ratio * seconds, 6),
            }
