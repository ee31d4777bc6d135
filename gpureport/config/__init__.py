"""The configuration: its sections as frozen values, merged from a file, the environment and flags."""

from gpureport.config.loading import Config, load_config
from gpureport.config.servers import Kubernetes, Metrics, Prometheus, Retention

__all__ = ["Config", "Kubernetes", "Metrics", "Prometheus", "Retention", "load_config"]
