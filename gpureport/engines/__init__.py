"""Where the parts of a day are worked on: in threads, in processes, or on a Ray cluster. The same work gives the same bytes."""

from gpureport.engines.local import Processes, Threads
from gpureport.engines.ray_cluster import RayCluster
from gpureport.engines.work import Engine, Progress, Work, quiet

__all__ = ["Engine", "Processes", "Progress", "RayCluster", "Threads", "Work", "quiet"]
