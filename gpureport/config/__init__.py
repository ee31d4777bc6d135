"""The configuration: its sections as frozen values, and how files, environment and flags become one."""

from gpureport.config.loading import load_config
from gpureport.config.night import Metrics, Retention
from gpureport.config.servers import Kubernetes, Prometheus
from gpureport.config.whole import Config

__all__ = ["Config", "Kubernetes", "Metrics", "Prometheus", "Retention", "load_config"]
