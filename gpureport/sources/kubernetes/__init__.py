"""Raw Kubernetes objects, list by list: from an API server, or from a folder of its replies."""

from gpureport.sources.kubernetes.folder import FileReply, read_folder, read_observed_at
from gpureport.sources.kubernetes.reply import Page

__all__ = ["FileReply", "Page", "read_folder", "read_observed_at"]
