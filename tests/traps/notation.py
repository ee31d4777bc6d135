"""Samples in the notation of promtool's rule tests, as OpenMetrics text.

A line is a series and its values at successive scrapes: ``metric{labels} 1 2 _ 5x3 0+10x3``. ``_`` is a scrape without the
series, ``_x3`` three of them, ``5x3`` is 5 and three more, ``0+10x3`` is 0 10 20 30.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Template

from golden_case import NOON

SMI_UUID = "GPU-0aa1b2c3-0000-1111-2222-333344445555"
# Labels that many tests share: a GPU and its neighbour, two workloads, and what other exporters say of a device.
SHORT = {
    "gpu": 'UUID="GPU-a",gpu="0",Hostname="n1",job="dcgm"',
    "other": 'UUID="GPU-b",gpu="1",Hostname="n1",job="dcgm"',
    "p": 'namespace="ns",pod="p",container="c"',
    "q": 'namespace="ns",pod="q",container="c"',
    "smi": f'uuid="{SMI_UUID.removeprefix("GPU-")}",node="n1"',
    "amd": 'serial_number="S1",gpu_id="0",gpu_partition_id="0",gpu_compute_partition_type="spx",hostname="n1"',
    "ksm": 'job="kube-state-metrics"',
}
_MARKED = re.compile(
    r'\b(UUID|(gpu_)?uuid|serial_number|hw_id|acc(elerator)?_id|[Hh]ostname|node(_name)?|(exported_|pod_)?namespace|job|(pod_)?uid)="[^"]+(?=")'
)
_REPEATED = re.compile(r"(?P<first>_|[-+]?[\d.]+(?:e[-+]?\d+)?)(?P<step>[-+][\d.]+(?:e[-+]?\d+)?)?x(?P<count>\d+)")


def series_lines(text: str, step_seconds: float, mark: str = "") -> list[str]:
    """A line of OpenMetrics for each sample, from noon on, a scrape every ``step_seconds``.

    ``mark`` is put behind the names of devices, nodes, namespaces and jobs, so that many tests' samples can stand side by side.
    """
    return [line for each in filter(None, map(str.strip, text.splitlines())) for line in _samples(each, step_seconds, mark)]


def _samples(line: str, step_seconds: float, mark: str) -> list[str]:
    head, _, values = Template(line).substitute(SHORT).rpartition("} ")
    head = _MARKED.sub(rf"\g<0>{mark}", head)
    return [
        f"{head}}} {value} {NOON + number * step_seconds:.3f}" for number, value in enumerate(expanded(values)) if value != "_"
    ]


def openmetrics(lines: Iterable[str]) -> str:
    """The lines as OpenMetrics text, family by family."""
    families: dict[str, list[str]] = {}
    for line in lines:
        families.setdefault(line.partition("{")[0], []).append(line)
    text = [line for metric, found in families.items() for line in (f"# TYPE {metric} unknown", *found)]
    return "\n".join([*text, "# EOF\n"])


def expanded(values: str) -> list[str]:
    """Each scrape's value."""
    return [value for word in values.split() for value in _expanded(word)]


def _expanded(word: str) -> list[str]:
    match = _REPEATED.fullmatch(word)
    if match is None:
        return [word]
    count = int(match["count"])
    if match["first"] == "_":
        return ["_"] * count
    first, step = float(match["first"]), float(match["step"] or 0)
    return [repr(first + step * number) for number in range(count + 1)]
