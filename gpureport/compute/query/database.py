"""A DuckDB in memory, as every stage uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from gpureport.compute.query import define_functions
from gpureport.values.errors import LakeError
from gpureport.values.runtime.spill import spill_folder


@contextmanager
def connection(memory_limit: str = "1GB", threads: int = 1) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory DuckDB in UTC that spills into a folder of its own, which ends with it."""
    with spill_folder() as spill, duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; set parquet_metadata_cache = true; set asof_loop_join_threshold = 0")
        con.execute(f"set threads = {threads:d}")
        try:
            con.execute("set memory_limit = $limit", {"limit": memory_limit})
        except duckdb.Error as error:
            raise LakeError(f"compute.memory_limit {memory_limit!r} is not a size; write it like 1GB") from error
        con.execute("set temp_directory = $spill", {"spill": str(spill)})
        define_functions(con)
        yield con
