"""Names of a lake's files: ``<table>/cluster=<c>/date=<D>/<change>-NNNN.parquet``, unique and never written twice.

Facts have the day as a column, and so a folder ``<D>`` that no engine takes for a column too. A packed file of theirs holds
several days: it is above those folders, and its number says how many.
"""

from __future__ import annotations

import re
from datetime import date

from gpureport.config.section import CLUSTER_NAME
from gpureport.values.errors import UsageError

FACTS = "facts/"
ROOT = "gpureport-lake.json.gz"
"""The one object that is ever replaced: it says which files are the lake."""
_OWN_FILE = re.compile(r"(facts/)?\w+/cluster=[^/]+/((date=)?\d{4}-\d\d-\d\d/)?[0-9a-f]{16}-\d{4,}\.parquet")


def partition_folder(table: str, cluster: str, day: date) -> str:
    """A partition's folder, relative to the lake; UsageError for a cluster name that cannot be a folder."""
    if not re.fullmatch(CLUSTER_NAME, cluster):
        raise UsageError(f"{cluster!r} cannot name a cluster; use letters, digits, '.', '_' and '-', at most 100 of them")
    return f"{table}/cluster={cluster}/date={day.isoformat()}"


def file_name(table: str, cluster: str, day: date, change: str, number: int) -> str:
    """The name of a change's file."""
    folder = partition_folder(table, cluster, day)
    return f"{folder.replace('/date=', '/') if table.startswith(FACTS) else folder}/{change}-{number:04d}.parquet"


def packed_name(table: str, cluster: str, change: str, day_count: int) -> str:
    """The name of a file of several days."""
    return f"{table}/cluster={cluster}/{change}-{day_count:04d}.parquet"


def is_own(name: str) -> bool:
    """Whether the name is one that only a change gives."""
    return bool(_OWN_FILE.fullmatch(name))


def day_key(cluster: str, day: date) -> str:
    """A day of a cluster as the root names it."""
    return f"{cluster}/{day.isoformat()}"


def day_of(key: str) -> tuple[str, date]:
    """The cluster and day of a key."""
    cluster, _, day = key.partition("/")
    return cluster, date.fromisoformat(day)
