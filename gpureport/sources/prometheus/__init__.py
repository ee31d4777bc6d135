"""Prometheus and what speaks its language: raw samples by remote read, by raw matrix, or by VictoriaMetrics' export."""

from gpureport.config import Prometheus as PrometheusSettings
from gpureport.sources.prometheus.connection import Connection, NoApiError, NotServedError, TooMuchError, open_connection, session
from gpureport.sources.prometheus.glimpse import Glimpse, Labelled, glimpse
from gpureport.sources.prometheus.matcher import Matcher, one_of
from gpureport.sources.prometheus.outline import HOST_LABELS, DeviceOf, Outline
from gpureport.sources.prometheus.plan import Group, Question, plan_groups
from gpureport.sources.prometheus.probe import Server, external_labels, probe
from gpureport.sources.prometheus.reading import Reading, read
from gpureport.sources.prometheus.series_list import label_values, list_series, samples_per_hour

__all__ = [
    "HOST_LABELS",
    "Connection",
    "DeviceOf",
    "Glimpse",
    "Group",
    "Labelled",
    "Matcher",
    "NoApiError",
    "NotServedError",
    "Outline",
    "PrometheusSettings",
    "Question",
    "Reading",
    "Server",
    "TooMuchError",
    "external_labels",
    "glimpse",
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
