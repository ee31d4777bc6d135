"""A cluster with quotas that never was: teams, pods that come, wait, run and go, quotas that change; as tables."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
from rebuilding import empty_rule_tables

from gpureport.compute.query import build, load, needed
from gpureport.compute.quotas import QUOTA_FACTS, build_quota_facts
from gpureport.lake import open_lake, views
from gpureport.schedulers.model import Rules
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.window import Window

START = datetime(2026, 3, 1)
GPUS_PER_NODE = 8
GB_PER_GPU = 32
RESOURCE = {"nos": "nos.nebuly.com/gpu-memory"}
TABLES = ("day.quota_terms", "day.quota_pod", "day.quota_member", "day.quota_watch", "day.quota_node", "day.quota_reported")
QUERIES = load()


def native(system: str) -> int:
    """Units of the system's resource to a GPU."""
    return GB_PER_GPU if system == "nos" else 1


def resource(system: str) -> str:
    """What the system's quotas name."""
    return RESOURCE.get(system, "nvidia.com/gpu")


@dataclass(frozen=True)
class Terms:
    """What a quota grants in GPUs, from a second on."""

    since: int
    guaranteed: int
    cap: int | None = None
    deserved: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True)
class Team:
    """A quota and whose it is."""

    system: str
    name: str
    terms: tuple[Terms, ...]
    cohort: str = ""

    def at(self, second: int) -> Terms:
        """What it grants at a second."""
        return next(each for each in reversed(self.terms) if each.since <= second)


@dataclass(frozen=True)
class Job:
    """A pod: seconds since the start."""

    number: int
    team: Team
    gpus: int
    created: int
    bound: int | None = None
    ended: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class Cluster:
    """Everything over a number of seconds."""

    teams: tuple[Team, ...]
    jobs: tuple[Job, ...]
    nodes: int
    seconds: int
    watched: tuple[tuple[int, int], ...] = field(default=())
    """When the pods are known."""


@dataclass(frozen=True)
class Wish:
    """A pod as it is made: how long it would run, how long it would wait, and how lazy the scheduler is with it."""

    team: Team
    gpus: int
    created: int
    runs: int
    patience: int
    delay: int = 0


def placed(wishes: Iterable[Wish], nodes: int, seconds: int) -> list[Job]:
    """The pods in order of creation; each gets the first node on which it fits as soon as there is one and its delay is over."""
    made = sorted(wishes, key=lambda wish: (wish.created, wish.team.name, wish.gpus, wish.runs))
    jobs = [Job(number, wish.team, wish.gpus, wish.created) for number, wish in enumerate(made)]
    free = [GPUS_PER_NODE] * nodes
    events = [
        (at, number) for number, wish in enumerate(made) for at in (wish.created + wish.delay, wish.created + wish.patience)
    ]
    heapq.heapify(events)
    while events:
        now = events[0][0]
        numbers = set()
        while events and events[0][0] == now:
            numbers.add(heapq.heappop(events)[1])
        for number in sorted(numbers):
            job = jobs[number]
            if job.node is not None and job.ended == now:
                free[job.node] += job.gpus
            elif job.node is None and job.ended is None and now >= job.created + made[number].patience:
                jobs[number] = replace(job, ended=now)
        for number, job in enumerate(jobs):
            if job.created + made[number].delay > now or job.node is not None or job.ended is not None:
                continue
            node = next((node for node, left in enumerate(free) if left >= job.gpus), None)
            if node is not None:
                free[node] -= job.gpus
                jobs[number] = replace(job, bound=now, node=node, ended=now + made[number].runs)
                heapq.heappush(events, (now + made[number].runs, number))
    return [
        replace(job, ended=None if job.ended is None or job.ended >= seconds else job.ended)
        for job in jobs
        if job.created < seconds
    ]


DAYS = 3


def some_days(seed: int) -> Cluster:
    """24 teams of three schedulers, 14 nodes, some 300 pods; quotas change at noon of the second day; two hours are not seen."""
    chance = random.Random(seed)
    day = 86_400
    noon = day + day // 2
    teams = tuple(_team(chance, system, number, noon) for system in ("nos", "volcano", "kueue") for number in range(8))
    wishes = []
    for team in teams:
        for _ in range(chance.randint(9, 17)):
            gpus = chance.choice((1, 1, 1, 2, 4, 8))
            created = chance.randrange(DAYS * day)
            runs = chance.choice((1_800, 4_000, 20_000, 90_000)) + chance.randrange(1_000)
            delay = chance.choice((0, 0, 0, 600, 7_200))
            wishes.append(Wish(team, gpus, created, runs, delay + chance.choice((3_000, 40_000, 400_000)), delay))
    watched = ((0, 2 * day + 3_000), (2 * day + 10_200, DAYS * day))
    return Cluster(teams, tuple(placed(wishes, 14, DAYS * day)), 14, DAYS * day, watched)


def _team(chance: random.Random, system: str, number: int, noon: int) -> Team:
    def terms(since: int) -> Terms:
        guaranteed = chance.randint(0, 8)
        cap = chance.choice((None, guaranteed + 2, guaranteed + 10))
        if system == "volcano":
            return Terms(since, min(guaranteed, 2), cap, deserved=guaranteed)
        return Terms(since, guaranteed, cap, lending_limit=chance.choice((None, 0, 3)) if system == "kueue" else None)

    cohort = f"cohort/{number % 2}" if system == "kueue" else ""
    return Team(system, f"{system}-{number}", (terms(0), terms(noon)), cohort)


def database(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Every table that facts of quotas are made of, empty."""
    con.execute("set TimeZone = 'UTC'")
    views(con, open_lake(folder, create=True), TABLE_BY_NAME)
    empty_rule_tables(con)
    for query in needed(QUERIES, QUOTA_FACTS):
        build(con, query, {})
    con.execute("drop table day.quota_amount")  # facts are made over it as a view


def fill(con: duckdb.DuckDBPyConnection, clusters: Sequence[Cluster]) -> None:
    """Put clusters into the tables, named by their numbers, in place of what was there."""
    rows: dict[str, list[Mapping[str, object]]] = {table: [] for table in TABLES}
    for number, cluster in enumerate(clusters):
        for table, row in _rows(cluster):
            rows[table].append({**row, "cluster": str(number)})
    rows["day.quota_terms"] = [{**row, "terms_id": number} for number, row in enumerate(rows["day.quota_terms"])]
    for table, found in rows.items():
        con.execute(f"delete from {table}")
        _insert(con, table, found)


def _rows(cluster: Cluster) -> Iterable[tuple[str, Mapping[str, object]]]:
    for team in cluster.teams:
        yield from (("day.quota_terms", row) for row in _span_rows(team, cluster.seconds))
    for job in cluster.jobs:
        yield "day.quota_pod", _pod_row(job)
        yield "day.quota_member", _member_row(job)
    for start, end in cluster.watched or ((0, cluster.seconds),):
        yield "day.quota_watch", {"watched": "pods", "start_at": at(start), "end_at": at(end)}
    node = {"resource": "nvidia.com/gpu", "start_at": at(0), "end_at": at(cluster.seconds), "allocatable_native": GPUS_PER_NODE}
    yield from (("day.quota_node", {**node, "node_name": f"n{number}"}) for number in range(cluster.nodes))


def facts(con: duckdb.DuckDBPyConnection, clusters: Sequence[Cluster], since: int = 0, until: int | None = None) -> None:
    """Make the facts of clusters of a number of seconds, or of a part of their time."""
    fill(con, clusters)
    window = Window(utc(since), utc(clusters[0].seconds if until is None else until))
    build_quota_facts(con, Rules(GB_PER_GPU), window, TABLES)


def at(second: int) -> datetime:
    """An instant as the tables hold it."""
    return START + timedelta(seconds=second)


def utc(second: int) -> datetime:
    """The same with its zone."""
    return at(second).astimezone()


def _span_rows(team: Team, seconds: int) -> Iterable[Mapping[str, object]]:
    unit = native(team.system)
    for terms, following in zip(team.terms, (*team.terms[1:], None), strict=True):
        yield {
            "system": team.system,
            "quota": team.name,
            "resource": resource(team.system),
            "flavor": "",
            "start_at": at(terms.since),
            "end_at": at(following.since if following else seconds),
            "parent": team.cohort,
            "is_parent": False,
            "tree": "",
            "namespaces": [team.name],
            "may_lend": True,
            "uid": "",
            "guaranteed_native": terms.guaranteed * unit,
            "cap_native": None if terms.cap is None else terms.cap * unit,
            "is_cap_known": True,
            "weight": 1.0,
            "deserved_native": terms.deserved,
            "lending_limit_native": terms.lending_limit,
            "source": "object",
            "certainty": "certain",
        }


def _pod_row(job: Job) -> Mapping[str, object]:
    return {
        "namespace": job.team.name,
        "pod": f"p{job.number:04d}",
        "pod_uid": f"u{job.number:04d}",
        "created_at": at(job.created),
        "bound_at": None if job.bound is None else at(job.bound),
        "running_at": None if job.bound is None else at(job.bound),
        "ended_at": None if job.ended is None else at(job.ended),
        "end_reason": "",
        "placement": "",
        "owner_kind": "",
        "node_name": "" if job.node is None else f"n{job.node}",
        "requests": {"nvidia.com/gpu": float(job.gpus)},
    }


def _member_row(job: Job) -> Mapping[str, object]:
    same = {"system": job.team.system, "quota": job.team.name, "flavor": "", "namespace": job.team.name}
    return {**same, "pod": f"p{job.number:04d}", "pod_uid": f"u{job.number:04d}", "is_certain": True, "resources": []}


def _insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        columns = {name: _column([row[name] for row in rows]) for name in rows[0]}
        con.register("_rows", pa.table(columns))
        con.execute(f"insert into {table} by name from _rows")
        con.unregister("_rows")


def _column(values: Sequence[object]) -> pa.Array:
    if isinstance(values[0], dict):
        return pa.array([list(value.items()) for value in values], pa.map_(pa.string(), pa.float64()))
    return pa.array(values)
