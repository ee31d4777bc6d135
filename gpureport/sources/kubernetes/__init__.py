"""Raw Kubernetes objects, list by list: from an API server, or from a folder of its replies."""

from gpureport.sources.kubernetes.access import HOW_TO_NAME_A_CLUSTER, NoClusterError
from gpureport.sources.kubernetes.cluster import Cluster, open_cluster
from gpureport.sources.kubernetes.connection import ForbiddenError, NotListedError, OutOfScopeError
from gpureport.sources.kubernetes.folder import FileReply, read_folder, read_observed_at
from gpureport.sources.kubernetes.reply import Page

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
