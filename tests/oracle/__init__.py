"""A slow, obvious integration of device signals, written from the definitions alone: dicts, loops and no gpureport.

Tests compare gpureport with it. It reads OpenMetrics text, turns samples into spans, finds out who held which device, and
integrates. Everything is per signal: no wide rows, no hours, no facts.
"""

from oracle.device import Device, Run, devices
from oracle.figures import container_figures, device_figures
from oracle.samples import Sample, read_openmetrics
from oracle.spans import Span, integral, seconds, spans

__all__ = [
    "Device",
    "Run",
    "Sample",
    "Span",
    "container_figures",
    "device_figures",
    "devices",
    "integral",
    "read_openmetrics",
    "seconds",
    "spans",
]
