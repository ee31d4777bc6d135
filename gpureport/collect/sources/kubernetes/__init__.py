"""Raw Kubernetes objects by list, from an API server or from a folder of its replies."""

from gpureport.collect.sources.kubernetes.cluster import Cluster, FileReply, Page, open_cluster, read_folder, read_observed_at
from gpureport.collect.sources.kubernetes.connection import (
    HOW_TO_NAME_A_CLUSTER,
    ForbiddenError,
    NoClusterError,
    NotListedError,
    OutOfScopeError,
)

__all__ = [
    "HOW_TO_NAME_A_CLUSTER",
    "Cluster",
    "FileReply",
    "ForbiddenError",
    "NoClusterError",
    "NotListedError",
    "OutOfScopeError",
    "Page",
    "open_cluster",
    "read_folder",
    "read_observed_at",
]
