"""Prometheus and what speaks its language: raw samples by remote read, by raw matrix, or by VictoriaMetrics' export."""

from gpureport.config import Prometheus as PrometheusSettings
from gpureport.sources.prometheus.connection import Connection, NotServedError, TooMuchError, open_connection
from gpureport.sources.prometheus.matcher import Matcher, one_of
from gpureport.sources.prometheus.plan import Group, plan_groups
from gpureport.sources.prometheus.probe import Server, probe
from gpureport.sources.prometheus.reading import Reading, read
from gpureport.sources.prometheus.series_list import list_series, samples_per_hour

__all__ = [
    "Connection",
    "Group",
    "Matcher",
    "NotServedError",
    "PrometheusSettings",
    "Reading",
    "Server",
    "TooMuchError",
    "list_series",
    "one_of",
    "open_connection",
    "plan_groups",
    "probe",
    "read",
    "samples_per_hour",
]
