"""The lake: immutable Parquet files, the root object that lists them (in a folder or a bucket), and DuckDB views over them."""

from gpureport.lake.check import DamagedError
from gpureport.lake.commit import Change, LakeBusyError
from gpureport.lake.lake import Lake, Partition, exclusive_run, open_lake
from gpureport.lake.views import scan_view, views

__all__ = ["Change", "DamagedError", "Lake", "LakeBusyError", "Partition", "exclusive_run", "open_lake", "scan_view", "views"]
