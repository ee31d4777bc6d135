"""Tables of a report database as the page queries them, with the team and the workload of each pod."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import polars as pl

from gpureport.compute.query import define_functions
from gpureport.report.results import fetched

_NAMED = re.compile(r"\b(?:report|facts|period|page)\.\w+")
_POD = """
    create or replace table page.pod as
    with namespace as (select cluster, namespace, max(team) as team from period.workload group by all)
    select
        pod.*,
        coalesce(known.workload, if(pod.pod = '', '(no pod)', workload_by_name(pod.pod))) as workload,
        coalesce(known.workload_kind, if(pod.pod = '', '', 'by name')) as kind,
        coalesce(nullif(owner.owner, ''), nullif(namespace.team, ''), pod.namespace) as team
    from (
        select distinct cluster, namespace, pod, pod_uid from report.gpu_hour_ledger where namespace != ''
        union
        select distinct cluster, namespace, pod, pod_uid from report.container
    ) as pod
    left join period.workload as known using (cluster, namespace, pod, pod_uid)
    left join namespace using (cluster, namespace)
    left join page.owner as owner using (cluster, namespace)
"""
_FINDING = """
    create or replace table page.finding as
    select
        case severity when 'critical' then 0 when 'warning' then 1 else 2 end as gravity,
        row_number() over (order by gravity, gpu_hours desc nulls last, code, cluster, node_name, namespace, pod, device_uuid)
            as number,
        finding.*,
        gpu_index,
        coalesce(team.team, owner) as team,
        concat_ws('/', nullif(namespace, ''), coalesce(nullif(pod, ''), nullif(workload, ''))) as holder,
        coalesce(nullif(holder, ''), nullif(regexp_replace(detail, '^([a-z_]+|[0-9]+)$', ''), ''), cluster) as subject, -- no code
        -- Only the evidence names the pods on the GPU.
        array(select distinct own.team from page.team as own
            where own.cluster = finding.cluster and position(' ' || own.namespace || '/' in finding.evidence) > 0) as concerned
    from report.finding as finding
    left join page.team as team using (cluster, namespace)
    left join (select cluster, device_uuid, any_value(gpu_index) as gpu_index from report.device group by all)
        using (cluster, device_uuid)
    where suppressed_until is null
"""
_ENDED = """
    insert into page.team
    select cluster, namespace, coalesce(max(owner.owner), nullif(max(ledger.team), ''), namespace)
    from previous.workload_ledger as ledger
    anti join page.team using (cluster, namespace)
    left join page.owner as owner using (cluster, namespace)
    where namespace != '' group by cluster, namespace
"""
_NO_PRICE = "create table page.price (gpu_model varchar, day date, hour_cost double)"
UNMEASURED = 0.005
"""Share of hours above which missing hours make a sum a lower bound."""
_USE = f"""
    create or replace table page.use as
    select
        ledger.cluster, coalesce(pod.team, '') as team, namespace, coalesce(pod.workload, '') as workload,
        coalesce(pod.kind, '') as kind, pod, pod_uid, ledger.gpu_model, ledger.day,
        bucket, sum(gpu_hours) as gpu_hours,
        sum(gpu_hours * price.hour_cost) as cost, is_unknown
    from report.gpu_hour_ledger as ledger
    left join page.pod using (cluster, namespace, pod, pod_uid)
    left join page.price on coalesce(ledger.gpu_model, '') = price.gpu_model and ledger.day = price.day
    left join ( -- in these clusters any team may have had more hours
        select cluster, coalesce(sum(gpu_hours) filter (bucket = 'unknown') > {UNMEASURED} * sum(gpu_hours), false) as is_unknown
        from report.gpu_hour_ledger group by cluster
    ) as allocation using (cluster)
    group by all
"""


Namespace = tuple[str, str]
"""Cluster and namespace."""


class Tables:
    """Tables ``report.*`` and ``facts.*`` of a database, and the page's own: ``page.pod``, ``use``, ``price``, ``finding``."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self.columns = self._read_columns()

    def _read_columns(self) -> dict[str, list[str]]:
        rows = self.con.execute(
            "select table_schema || '.' || table_name, list(column_name order by ordinal_position)"
            " from information_schema.columns where table_catalog = current_database() group by 1"
        ).fetchall()
        return dict(rows)

    def has(self, *tables: str) -> bool:
        """Return whether the report has these tables."""
        return all(table in self.columns for table in tables)

    def can(self, sql: str) -> bool:
        """Return whether all tables that a statement names exist."""
        return self.has(*_NAMED.findall(sql))

    def rows(self, sql: str, **params: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement; [] where the report lacks one of its tables."""
        return fetched(self.con.execute(sql, params)) if self.can(sql) else []

    def frame(self, sql: str, **params: Any) -> pl.DataFrame:
        """Return the rows of a statement as a frame; sums of counts are integers."""
        found = pl.DataFrame(pl.from_arrow(self.con.sql(sql, params=params).to_arrow_table()))
        return found.with_columns(pl.selectors.decimal().cast(pl.Int64, strict=False))

    def row(self, sql: str, **params: Any) -> dict[str, Any]:
        """Return the first row of a statement; {} where there is none."""
        return next(iter(self.rows(sql, **params)), {})

    def add_use(self, owners: Mapping[Namespace, str]) -> None:
        """Build ``page.pod``, ``page.use``, ``page.price`` and ``page.finding`` where the report has the tables that they read.

        ``owners`` of namespaces take precedence over the teams in the facts.
        """
        for name in ("owner", "team"):
            self.con.execute(f"create table page.{name} (cluster varchar, namespace varchar, {name} varchar)")
        if owners:
            self.con.executemany("insert into page.owner values (?, ?, ?)", [[*key, owner] for key, owner in owners.items()])
        self.con.execute("create table page.price as from period.price" if self.has("period.price") else _NO_PRICE)
        if self.has("report.gpu_hour_ledger", "report.container", "period.workload"):
            define_functions(self.con, _POD)
            self.con.execute(_POD)
            self.con.execute("insert into page.team select distinct cluster, namespace, team from page.pod")
            self.con.execute(_USE)
        if self.has("previous.workload_ledger"):
            self.con.execute(_ENDED)
        if self.has("report.finding", "report.device"):
            self.con.execute(_FINDING)
        self.columns = self._read_columns()


@contextmanager
def opened_tables(con: duckdb.DuckDBPyConnection, owners: Mapping[Namespace, str]) -> Iterator[Tables]:
    """Open the tables of a report database; drop the page's own tables afterwards."""
    con.execute("create schema if not exists page")
    try:
        tables = Tables(con)
        tables.add_use(owners)
        yield tables
    finally:
        con.execute("drop schema if exists page cascade")
