"""Prometheus and compatible servers: raw samples by remote read, raw matrix or VictoriaMetrics' export."""

from gpureport.collect.sources.prometheus.access import http_access
from gpureport.collect.sources.prometheus.connection import Connection, NoApiError, TooMuchError, open_connection, session
from gpureport.collect.sources.prometheus.glimpse import Glimpse, Labelled, glimpse
from gpureport.collect.sources.prometheus.outline import (
    HOST_LABELS,
    Group,
    Matcher,
    Outline,
    label_values,
    list_series,
    one_of,
    plan_groups,
    samples_per_hour,
)
from gpureport.collect.sources.prometheus.probe import Server, external_labels, probe
from gpureport.collect.sources.prometheus.reading import read

__all__ = [
    "HOST_LABELS",
    "Connection",
    "Glimpse",
    "Group",
    "Labelled",
    "Matcher",
    "NoApiError",
    "Outline",
    "Server",
    "TooMuchError",
    "external_labels",
    "glimpse",
    "http_access",
    "label_values",
    "list_series",
    "one_of",
    "open_connection",
    "plan_groups",
    "probe",
    "read",
    "samples_per_hour",
    "session",
]
