"""Supply against demand in a sentence, from the rows of the table."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest

from gpureport.report.page.grids import supply_sentence
from gpureport.report.page.tables import Tables

MANY = [
    ("T4", "share", "G2", 926.0, 1161.0, 1000),
    ("T4", "share", "P100", 926.0, 47.0, 1000),
    ("any", "1", "G2", 236.0, 1161.0, 236),
    ("any", "1", "P100", 236.0, 47.0, 236),
]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (MANY, "1,161 of 1,208 free GPUs are G2; 926 of 1,162 pending GPUs are for T4."),
        ([("unknown", "share", "", 0.5, 0.0, 1)], "no GPU is free; 0.5 of 0.5 pending GPUs are of no known model."),
        ([("any", "1", "", 2.0, None, 2)], "2 of 2 pending GPUs may be of any model."),
        (
            [("any", "1", "", 2.0, None, 2), ("unknown", "unknown", "", None, None, 5)],
            "2 of ≥ 2 pending GPUs may be of any model.",
        ),
        ([("any", "1", "A10", 0.0, None, 0)], ""),
    ],
)
def test_the_models_of_most_free_and_most_pending_gpus(rows: Sequence[tuple[object, ...]], sentence: str) -> None:
    with duckdb.connect() as con:
        con.execute("create schema report")
        con.execute(
            "create table report.supply_demand (cluster text default 'c', wanted_model text, size text, gpu_model text, "
            "waiting_gpus double, free_gpus double, waiting_pod_count bigint)"
        )
        con.executemany(
            "insert into report.supply_demand (wanted_model, size, gpu_model, waiting_gpus, free_gpus, waiting_pod_count) "
            "values (?, ?, ?, ?, ?, ?)",
            rows,
        )
        assert supply_sentence(Tables(con)) == (f" At the end of the period: {sentence}" if sentence else "")


def test_free_gpus_of_a_cluster_without_known_ones_or_without_pending_pods_are_not_said_to_be_none() -> None:
    """In a no GPU is free, in b that is unknown, and in c no pod is pending, so its free GPUs are in no row."""
    with duckdb.connect() as con:
        con.execute("""
            create schema report;
            create table report.gpu_hour_ledger as select unnest(['a', 'b', 'c']) as cluster;
            create table report.supply_demand as select * from (values
                ('a', 'A10', '1', 'A10', 2.0, 0.0, 2), ('b', 'A10', '1', '', 3.0, null, 3)
            ) as t (cluster, wanted_model, size, gpu_model, waiting_gpus, free_gpus, waiting_pod_count)
        """)
        assert supply_sentence(Tables(con)) == " At the end of the period in a, b: 5 of 5 pending GPUs are for A10."
        con.execute("delete from report.supply_demand where cluster = 'b'")
        one = " At the end of the period in a: no GPU is free; 2 of 2 pending GPUs are for A10."
        assert supply_sentence(Tables(con)) == one
        con.execute("delete from report.gpu_hour_ledger where cluster != 'a'")
        assert supply_sentence(Tables(con)) == one.replace(" in a", "")
