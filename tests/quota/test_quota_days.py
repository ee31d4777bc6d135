"""Three days of 24 teams under three schedulers: every hour as an oracle reckons it; and what holds of any cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import connection
from quota.cluster import DAYS, START, Cluster, Job, Team, Terms, Wish, database, facts, native, placed, some_days
from quota.oracle import HOUR, hours

DAY = 86_400
Con = duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Con]:
    with connection() as con:
        database(con, tmp_path_factory.mktemp("lake"))
        yield con


def quota_hours(con: Con, cluster: int = 0) -> dict[tuple[str, int], dict[str, object]]:
    rows = con.sql(f"from facts.quota_hour where cluster = '{cluster}'").to_arrow_table().to_pylist()
    return {(row["quota"], hour_of(row["hour_start_at"])): row for row in rows}


def hour_of(instant: datetime) -> int:
    return int((instant - START).total_seconds()) // HOUR


@dataclass(frozen=True)
class Amounts:
    """Amounts of the facts of some time."""

    quotas: dict[tuple[str, int], dict[str, object]]
    pods: dict[tuple[object, ...], tuple[object, ...]]
    short: float

    @classmethod
    def by(cls, con: Con) -> Amounts:
        return cls(quota_hours(con), pod_hours(con), short_hours(con))


@pytest.fixture(scope="module")
def whole(con: Con) -> Amounts:
    """The days of ``some_days(1)``, made at once."""
    facts(con, [some_days(1)])
    return Amounts.by(con)


def test_every_hour_is_as_an_oracle_reckons_it(whole: Amounts) -> None:
    expected = hours(some_days(1))
    found = whole.quotas
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        assert {name: found[key][name] for name in figures} == {
            name: pytest.approx(float(value), rel=1e-9, abs=1e-9) for name, value in figures.items()
        }, key
    assert sum(figures["unmet_native_hours"] for figures in expected.values()) > 0
    assert sum(figures["violated_native_hours"] for figures in expected.values()) > 0
    assert sum(figures["capped_seconds"] for figures in expected.values()) > 0


def test_days_on_their_own_add_up(con: Con, whole: Amounts) -> None:
    days, pods_of_days, short_of_days = {}, {}, 0.0
    for day in range(DAYS):
        facts(con, [some_days(1)], day * DAY, (day + 1) * DAY)
        found = Amounts.by(con)
        days |= found.quotas
        pods_of_days |= found.pods
        short_of_days += found.short
    assert days.keys() == whole.quotas.keys()
    assert [key for key in whole.quotas if not is_same(days[key], whole.quotas[key])] == []
    assert pods_of_days == whole.pods
    assert short_of_days == pytest.approx(whole.short)


def pod_hours(con: Con) -> dict[tuple[object, ...], tuple[object, ...]]:
    columns = "held_seconds, waiting_seconds, in_quota_seconds, over_quota_seconds, exposed_seconds, exposed_by"
    rows = con.execute(f"select pod_uid, hour_start_at, {columns} from facts.quota_pod_hour").fetchall()
    return {row[:2]: row[2:] for row in rows}


def short_hours(con: Con) -> float:
    return float(con.execute("select coalesce(sum(unmet_native_hours), 0) from facts.quota_starvation").fetchall()[0][0])


def is_same(one: dict[str, object], other: dict[str, object]) -> bool:
    """Whether two rows are equal, numbers to twelve digits: sums may be taken in another order."""
    return all(
        one[name] == (pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value)
        for name, value in other.items()
    )


def _waits(job: Job) -> bool:
    return job.bound is None or job.bound > job.created + 60


@st.composite
def _terms(draw: st.DrawFn, system: str) -> Terms:
    guaranteed, cap = draw(st.integers(0, 6)), draw(st.sampled_from([None, 4, 9]))
    return Terms(0, guaranteed, cap, deserved=guaranteed + draw(st.integers(0, 3)) if system == "volcano" else None)


@st.composite
def a_cluster(draw: st.DrawFn) -> Cluster:
    """Some teams of one scheduler on a few nodes for some hours, with some pods, of which none waits that fits.

    Without any pod that names its queue nothing is known of Volcano's and Kueue's.
    """
    system = draw(st.sampled_from(["nos", "volcano", "kueue"]))
    count = draw(st.integers(1, 4))
    teams = tuple(Team(system, f"t{number}", (draw(_terms(system)),), "cohort/x") for number in range(count))
    wish = st.builds(
        Wish,
        st.sampled_from(teams),
        st.sampled_from([1, 2, 3, 8]),
        st.integers(0, 4 * HOUR),
        st.integers(60, 2 * HOUR),
        st.integers(60, 2 * HOUR),
    )
    nodes = draw(st.integers(1, 3))
    return Cluster(teams, tuple(placed(draw(st.lists(wish, min_size=1, max_size=14)), nodes, 5 * HOUR)), nodes, 5 * HOUR)


def _is_known(cluster: Cluster) -> bool:
    """The demand of Kueue's queues is unknown where nothing waits."""
    return cluster.teams[0].system != "kueue" or any(map(_waits, cluster.jobs))


@settings(max_examples=4)
@given(clusters=st.lists(a_cluster().filter(_is_known), min_size=8, max_size=8))
def test_what_holds_of_any_cluster(con: Con, clusters: list[Cluster]) -> None:
    facts(con, clusters)
    for number, cluster in enumerate(clusters):
        expected = hours(cluster)
        found = quota_hours(con, number)
        figures = ("delivered_native_hours", "lent_native_hours", "unmet_native_hours", "violated_native_hours")
        assert {key: [row[name] for name in figures] for key, row in found.items()} == {
            key: pytest.approx([float(row[name]) for name in figures], abs=1e-9) for key, row in expected.items()
        }
        unit = native(cluster.teams[0].system)
        steps = con.execute(
            """select sum(delivered_native), sum(borrowed_native), sum(lendable_native), sum(lent_native),
                      bool_and(violated_native <= unmet_native and delivered_native <= demanded_native)
               from day.quota_step where cluster = $1::varchar group by start_at""",
            [number],
        ).fetchall()
        for delivered, borrowed, lendable, lent, is_sound in steps:
            assert delivered <= unit * 8 * cluster.nodes
            assert lent == pytest.approx(min(borrowed, lendable))
            assert is_sound
        if len(cluster.teams) == 1:  # alone in its cluster it is never violated
            for table in ("day.quota_step where violated_native > 0", "facts.quota_pair_hour where true"):
                assert con.execute(f"select count(*) from {table} and cluster = $1::varchar", [number]).fetchall() == [(0,)]
