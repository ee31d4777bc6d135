"""Telemetry beside the recorded cluster: its GPUs, scraped each minute from 01:30 to 02:30, labelled as an exporter would.

On a server that no longer speaks the API version that the exporter asks for, series of DRA pods name no pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kube.lake import query

_FIRST = int(datetime(2026, 11, 21, 1, 30, tzinfo=UTC).timestamp())
_MINUTES = 60
_PARENT = "GPU-fb196fcb-1275-5cbd-ae1e-81a427b81e48"
INSTANCES = {"3": "3g.40gb", "11": "1g.10gb", "12": "1g.10gb", "13": "1g.10gb"}
"""What the exporter calls the parts of gpu-node-2's first GPU, and their profiles."""


def write_telemetry(lake: Path, file: Path) -> None:
    """OpenMetrics text of every GPU that the recording's slices and Koordinator's devices name."""
    gpus = query(
        lake,
        """select node_name, device_uuid from lake.device where device_type = 'gpu'
           union select node_name, device_id from lake.koordinator_device where device_type = 'gpu' order by all""",
    )
    whole = [f'Hostname="{node}",UUID="{uuid}",modelName="H100"' for node, uuid in gpus]
    mig = [
        f'Hostname="gpu-node-2",UUID="{_PARENT}",modelName="H100",GPU_I_ID="{number}",GPU_I_PROFILE="{profile}"'
        for number, profile in INSTANCES.items()
    ]
    # One of the three instances of a profile names its pod; and one label is wrong: finetune-0 never had gpu-6.
    mig[2] += ',namespace="serving",pod="embed-0",container="server"'
    wrong = next(number for number, (_, uuid) in enumerate(gpus) if uuid.startswith("GPU-5d7ac654"))
    whole[wrong] += ',namespace="research",pod="finetune-0",container="trainer"'
    text = [*_family("DCGM_FI_DEV_GPU_UTIL", whole, 50), *_family("DCGM_FI_PROF_GR_ENGINE_ACTIVE", [*whole, *mig], 0.5)]
    file.write_text("\n".join([*text, "# EOF\n"]))


def _family(metric: str, labels: list[str], value: float) -> Iterator[str]:
    yield f"# TYPE {metric} gauge"
    for each in labels:
        for minute in range(_MINUTES):
            yield f"{metric}{{{each}}} {value} {_FIRST + 60 * minute}"
