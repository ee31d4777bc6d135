"""Other engines read every table of a lake as Delta: the rows that it has, before and after days are replaced and pruned."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
from deltalake import DeltaTable
from golden_case import NOW
from kube.lake import RECORDING as STATE
from lake_rows import files
from prometheus.programs import SERVERS
from store.changes import FIRST, NEXT, export, observe
from store.conftest import address, azure_url, elsewhere, google_url, moto_url  # noqa: F401

from gpureport.cli import main
from gpureport.lake import Lake, open_lake, views
from gpureport.lake.delta import update_delta_logs
from gpureport.store import ObjectAddress, Place

DELTA = {"GPUREPORT_LAKE__DELTA": "true"}
DUCKDB = """
import duckdb, glob, os, sys
import duckdb_extension_delta
con = duckdb.connect()
con.execute(f"load '{glob.glob(os.path.dirname(duckdb_extension_delta.__file__) + '/extensions/*/delta.duckdb_extension')[0]}'")
for table, out in zip(sys.argv[1::2], sys.argv[2::2]):
    con.execute(f"copy (from delta_scan('{table}')) to '{out}' (format parquet)")
"""


def differences(lake: Lake, tmp_path: Path, *tables: str) -> list[str]:
    """The tables, else all, of which an engine does not read what the lake's own views show."""
    chosen = [*tables] or lake.tables()
    duck = {} if isinstance(lake.storage.place, ObjectAddress) else by_duckdb(lake, chosen, tmp_path)
    with duckdb.connect() as con:
        return [name for table in chosen for name in _differences(con, lake, table, duck.get(table))]


def _differences(con: duckdb.DuckDBPyConnection, lake: Lake, table: str, duck: Path | None) -> Iterator[str]:
    uri, options = lake.storage.reached(table)
    [view] = views(con, lake, [table])
    columns = ", ".join(sorted(con.table(view).columns))
    read = {
        "deltalake": DeltaTable(uri, storage_options=options).to_pyarrow_table(),
        "polars": pl.scan_delta(uri, storage_options=options).collect().to_arrow(),
        **({"duckdb": con.read_parquet(str(duck)).to_arrow_table()} if duck else {}),
    }
    own = con.sql(f"select {columns} from {view}").to_arrow_table()
    con.register("own", own)
    for engine, rows in read.items():
        if rows.select(own.column_names).cast(own.schema).equals(own):
            continue  # the same order too: a comparison by DuckDB costs ten times as much
        con.register("theirs", rows)
        lacking = f"select {columns} from own except all select {columns} from theirs"
        # As many rows of which none is another are the same; where there are none, as after prune, nothing is left to ask.
        if own.num_rows != rows.num_rows or (own.num_rows and con.sql(lacking).fetchall()):
            yield f"{engine}: {table}"


def by_duckdb(lake: Lake, tables: list[str], tmp_path: Path) -> dict[str, Path]:
    """What a DuckDB with its extension reads; nothing where there is none."""
    python = SERVERS / "s3" / "bin" / "python"
    found = {table: tmp_path / f"{table.replace('/', '.')}.parquet" for table in tables}
    told = [str(each) for table, file in found.items() for each in (lake.path / table, file)]
    if not [*SERVERS.glob("s3/lib/*/site-packages/duckdb_extension_delta")]:
        return {}
    subprocess.run([python, "-c", DUCKDB, *told], check=True, timeout=120)
    return found


def command(*arguments: str, lake: Path, **environ: str) -> None:
    assert main([*arguments, "--lake", str(lake)], environ=environ, now=NOW + timedelta(days=3)) == 0


def test_every_table_of_a_folder_is_read_alike_before_and_after_a_day_is_replaced_and_pruned(
    recorded_cluster: Path, tmp_path: Path
) -> None:
    lake = shutil.copytree(recorded_cluster / "lake", tmp_path / "lake")
    assert list(update_delta_logs(lake)) == []
    assert differences(open_lake(lake), tmp_path) == []
    before = files(lake, "facts/device_hour")
    with open_lake(lake).change() as change:
        for table in ("facts/device_hour", "facts/ownership"):
            [file] = files(lake, table)
            change.write(table, "lab", date(2026, 11, 21), pq.read_table(file, partitioning=None).slice(1))
    assert set(before).isdisjoint(files(lake, "facts/device_hour"))
    [left] = DeltaTable(lake / "facts" / "device_hour").file_uris()
    assert left == str(before[0])  # whoever does not keep the log leaves it as it was: whole
    command("import", "--kubernetes", str(STATE), "--observed-at", "2026-11-23T00:00:00Z", lake=lake, **DELTA)
    assert differences(open_lake(lake), tmp_path, "facts/device_hour", "facts/ownership", "node", "pod") == []
    command("prune", "--keep-samples", "2d", "--keep-facts", "2d", lake=lake, **DELTA)
    opened = open_lake(lake)
    assert not opened.partitions("facts/device_hour") and opened.partitions("node")
    assert differences(opened, tmp_path) == []
    assert DeltaTable(lake / "facts" / "device_hour").to_pyarrow_table().num_rows == 0


def test_a_packed_month_of_which_a_day_is_made_again_is_read_alike(tmp_path: Path) -> None:
    lake, days = tmp_path / "lake", [date(2026, 10, day) for day in range(1, 8)]
    for count, day in enumerate(days, 1):
        export(lake, count, day)
    assert open_lake(lake).pack_facts(date(2026, 11, 5)) == 1
    assert list(update_delta_logs(lake)) == []
    assert differences(open_lake(lake), tmp_path) == []
    export(lake, 100, days[4])
    opened = open_lake(lake)
    opened.remove(each for table in opened.tables() for each in opened.partitions(table) if each.date == days[0])
    assert list(update_delta_logs(lake)) == []
    assert differences(open_lake(lake), tmp_path) == []
    assert DeltaTable(lake / "facts" / "device_hour").to_pyarrow_table().num_rows == sum(range(2, 8)) - 5 + 100
    version = DeltaTable(lake / "facts" / "device_hour").version()
    assert list(update_delta_logs(lake)) == []
    assert DeltaTable(lake / "facts" / "device_hour").version() == version


def test_in_a_bucket_it_is_read_alike(address: ObjectAddress, elsewhere: ObjectAddress, tmp_path: Path) -> None:  # noqa: F811
    def is_alike(place: Place) -> None:
        assert list(update_delta_logs(place)) == []
        lake = open_lake(elsewhere)
        for table in lake.tables():
            uri, options = lake.storage.reached(table)
            logged = {each.partition(f"{address.prefix}/")[2] for each in DeltaTable(uri, storage_options=options).file_uris()}
            assert logged == {each.name for held, _, each in lake.root.each() if held == table}
        assert differences(lake, tmp_path, "device_sample", "facts/device_hour", "node") == []

    export(address, 2)
    observe(address, FIRST)
    is_alike(address)
    export(address, 3)
    export(elsewhere, 1, NEXT)
    is_alike(elsewhere)
    opened = open_lake(address)
    opened.remove(each for table in opened.tables() for each in opened.partitions(table) if each.date == NEXT)
    is_alike(address)
