"""The lake: Parquet partitions that are written whole or not at all, and the DuckDB views over them."""

from gpureport.lake.change import Change
from gpureport.lake.layout import Lake, Partition, open_lake
from gpureport.lake.scan import footer, scan_view
from gpureport.lake.views import views

__all__ = ["Change", "Lake", "Partition", "footer", "open_lake", "scan_view", "views"]
