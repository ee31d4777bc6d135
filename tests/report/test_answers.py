"""The six answers from tables that are made by hand; the numbers are worked out beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from gpureport.report.page.answers import Answer, answers
from gpureport.report.page.overview import overview
from gpureport.report.page.tables import Tables, opened_tables
from gpureport.report.page.words import Money

from .answer_tables import HEADER, LEDGER, add_device, add_finding, fill


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        fill(con, LEDGER)
        yield con


def _answers(con: duckdb.DuckDBPyConnection, team: str = "", currency: str = "$") -> dict[str, Answer]:
    with opened_tables(con, {}) as tables:
        return {each.title: each for each in answers(tables, HEADER, Money(currency), team)}


def test_use_is_shares_of_capacity(con: duckdb.DuckDBPyConnection) -> None:
    found = _answers(con)["Capacity use"]
    assert found.headline == "12.5 % effective"  # 12 of 96
    assert found.detail == "75.0 % allocated · 37.5 % underutilized · 25.0 % idle · 96 GPU-h of capacity"
    assert found.confidence == "high"  # 99.5 % of the device time has data


def test_mean_utilization_is_known_for_half_of_the_capacity() -> None:
    """Of 96 GPU-hours 47 are known, 36 of them as used: less than half. With 48 it is 37 / 48; the team has 12 of 24."""
    with duckdb.connect() as con:
        fill(con, [("a", "p-0", "effective", 24.0), ("", "", "unknown", 72.0)])
        con.execute("""
            create table report.distribution as select * from (values
                ('cluster', '', 'gpu_util_ratio', 36.0, 47.0), ('team', 'a', 'gpu_util_ratio', 9.0, 12.0)
            ) as t (scope, team, signal, weighted_gpu_hours, known_gpu_hours)
        """)
        assert "utilization" not in _answers(con)["Capacity use"].detail
        assert "mean GPU utilization 75.0 %" in _answers(con, "a")["Capacity use"].detail
        con.execute("update report.distribution set weighted_gpu_hours = 37, known_gpu_hours = 48 where scope = 'cluster'")
        assert "mean GPU utilization 77.1 %" in _answers(con)["Capacity use"].detail


def test_an_answer_is_one_line_without_control_characters() -> None:
    """A label may have both; a terminal would obey them."""
    with duckdb.connect() as con:
        fill(con, [("a", "p\n\x1b[2Jq-0", "allocated_idle", 96.0)])
        line = _answers(con)["Largest waste"].line
    assert line.startswith("Largest waste: a / p \\x1b[2Jq")
    assert line.isprintable()


def test_shares_of_use_are_lower_bounds_where_use_is_not_measured() -> None:
    """Of 96 hours 48 are not measured: they may be idle or underutilized too. Active ones are not idle."""
    ledger = [("a", "p-0", "underutilized", 12.0), ("a", "p-0", "allocated_idle", 36.0)]
    for bucket, idle in (("allocated_unmeasured", "≥ 37.5 %"), ("active_unmeasured", "37.5 %")):
        with duckdb.connect() as con:
            fill(con, [*ledger, ("a", "p-1", bucket, 48.0)])
            found = _answers(con)["Capacity use"]
        assert found.detail.startswith(f"100.0 % allocated · ≥ 12.5 % underutilized · {idle} idle · ")


def test_many_small_wastes_are_no_waste_of_none_and_a_trace_is_not_none() -> None:
    """2,000 of 2,400 workloads are idle for an hour each, in which none has 0.05 % of 2,400; then half an hour in all of it."""
    pods = [("a", f"web{number}-0", "allocated_idle" if number < 2_000 else "effective", 1.0) for number in range(2_400)]
    with duckdb.connect() as con:
        fill(con, pods)
        found = _answers(con)["Largest waste"]
        assert (found.headline, found.detail) == ("a / web0", "1 GPU-h idle in 1 pod, $2. In all: 2,000 GPU-h idle.")
        con.execute("update report.gpu_hour_ledger set bucket = 'effective' where pod != 'web0-0'")
        con.execute("update report.gpu_hour_ledger set gpu_hours = 0.5 where pod = 'web0-0'")
        found = _answers(con)
    assert found["Largest waste"].headline == "Almost none"
    assert found["Largest waste"].detail == "No allocated GPU was idle or underutilized, but for 0.5 GPU-h."
    assert found["GPUs to return"].headline == "< 0.1 of 100"
    assert found["GPUs to return"].detail.startswith("0.02 idle on average · ")


def test_the_largest_waste_is_named_with_the_workload_of_its_pods_and_its_price(con: duckdb.DuckDBPyConnection) -> None:
    found = _answers(con)["Largest waste"]
    assert found.headline == "serving / web"  # 36 underutilized hours are more than 24 idle ones; at 144 / 72 = $2 they are $72
    assert found.detail == (
        "36 GPU-h underutilized (SM activity below 50 %) in 1 pod, $72. Next: research / hold, 24 GPU-h idle. "
        "In all: 24 GPU-h idle, 36 GPU-h underutilized."
    )


def test_a_job_and_a_deployment_of_one_name_are_two_workloads() -> None:
    """Idle: web of the Deployment for 30 h, web of the Job for 20 h, hold for 40 h: no workload has more than 40."""
    pods = {"web-a": ("Deployment", "web", 30.0), "web-b": ("Job", "web", 20.0), "hold-0": ("StatefulSet", "hold", 40.0)}
    with duckdb.connect() as con:
        fill(con, [("a", pod, "allocated_idle", hours) for pod, (_, _, hours) in pods.items()])
        for pod, (kind, workload, _) in pods.items():
            con.execute("insert into period.workload values ('lab', 'a', ?, '', ?, ?, '')", [pod, kind, workload])
        found = _answers(con)["Largest waste"]
    assert (found.headline, found.detail) == ("a / hold", "40 GPU-h idle in 1 pod, $80. In all: 90 GPU-h idle.")


def test_names_that_two_clusters_have_are_told_apart(con: duckdb.DuckDBPyConnection) -> None:
    """web has 36 underutilized hours here and 30 there; GPU 3 of node-1 is sick in both: two GPUs."""
    con.execute("update report.gpu_hour_ledger set bucket = 'underutilized' where namespace = 'research'")
    con.execute(
        "insert into report.gpu_hour_ledger select 'far', * exclude (cluster) replace (30 as gpu_hours)"
        " from report.gpu_hour_ledger where namespace = 'serving' and bucket = 'underutilized'"
    )
    con.execute("insert into report.device select * replace ('far' as cluster) from report.device where device_uuid = 'GPU-1'")
    for _ in range(2):
        add_finding(con, "GR401", "critical", "XID 79")
    con.execute("update report.finding set cluster = 'far' where rowid = 1")
    con.execute(
        "insert into period.pod_wait values ('lab', 'serving', 'p', 'u', '1', 10, null, 0),"
        " ('far', 'serving', 'p', 'v', '1', 30, null, 1)"
    )
    with opened_tables(con, {}) as tables:
        found = {each.title: each for each in answers(tables, replace(HEADER, clusters=("far", "lab")), Money("$"), "")}
    assert found["Largest waste"].headline == "serving / web (lab)"
    assert found["Largest waste"].detail.startswith("36 GPU-h underutilized")
    assert found["Pending and starved"].headline == "p95 wait 30 s"
    assert found["Pending and starved"].detail.startswith("Longest: serving (far), 1 GPU.")
    assert found["GPU health"].headline == "2 GPUs need action"
    assert {"node-1 / GPU 3 (far)", "node-1 / GPU 3 (lab)"} == {
        part.split(":")[0] for part in found["GPU health"].detail.split(" · ")
    }


def test_gpus_to_return_are_idle_ones_and_smaller_sizes(con: duckdb.DuckDBPyConnection) -> None:
    # hold-0 is idle all its time: a smaller size frees nothing more. Eight hours are too short to judge.
    con.execute("""insert into report.rightsizing values ('lab', 'serving', 'by name', 'web', 12.0, 'fits'),
        ('lab', 'research', 'by name', 'hold', 8.0, 'fits'), ('lab', 'serving', 'by name', 'web', 8.0, 'too short')""")
    found = _answers(con)["GPUs to return"]
    assert (found.headline, found.tone) == ("1.5 of 4", "warn")  # 24 h idle and 12 h freed over 24 h
    by_team = "by team: research 1, serving 0.5"  # 36 GPU-hours at $2
    assert found.detail == f"1 idle on average · 0.5 by a MIG profile or smaller model · {by_team} · cost of those allocated: $72"


def test_what_is_not_measured_is_no_zero() -> None:
    """48 of the 72 allocated hours, then all of them, have no use that is known: none is said to be idle, nor not to be."""
    with duckdb.connect() as con:
        fill(con, [("serving", "web-0", "effective", 24.0), ("research", "hold-0", "allocated_unmeasured", 48.0)])
        found = _answers(con)
        assert (found["Largest waste"].headline, found["Largest waste"].detail) == (
            "None known",
            "No allocated GPU is known to be idle or underutilized; 48 GPU-h not measured.",
        )
        assert found["GPUs to return"].headline == "≥ 0 of 4"
        assert found["GPUs to return"].confidence == "low"  # the use of 48 of 96 hours is known
        assert found["GPUs to return"].detail == "0 idle on average · use of 2 GPUs not measured"
        con.execute("delete from report.gpu_hour_ledger where bucket = 'effective'")
        found = _answers(con)
        assert (found["Largest waste"].headline, found["Largest waste"].tone) == ("No data", "")
        assert (found["GPUs to return"].headline, found["GPUs to return"].detail) == ("No data", "Use of 2 GPUs not measured")


def test_gpus_that_were_free_in_every_hour_can_be_returned_too(con: duckdb.DuckDBPyConnection) -> None:
    """Of a model and cluster, and whole ones: two halves of two models are none, nor is one that is now here, now there."""
    con.execute("""create table report.gpu_need as select *, 0e0 as active_gpus_p95, 0e0 as active_gpus_max from (values
        ('lab', 'M', 2.0), ('lab', 'N', 0.5), ('lab', 'O', 0.5), ('lab', 'P', null), ('lab', '(all)', 9.0), ('far', 'M', 1 - 1e-9)
    ) as need(cluster, gpu_model, free_gpus_min)""")
    found = _answers(con)["GPUs to return"]
    assert found.headline == "4 of 4"  # 24 h idle over 24 h, 2 free in lab, and 1 in far
    assert found.detail.startswith("1 idle on average · 3 free in every hour (hourly average) · ")


def test_active_gpus_are_averages_of_an_hour(con: duckdb.DuckDBPyConnection) -> None:
    """Half an hour active counts as half a GPU: eight GPUs at once for a minute are no peak of eight."""
    con.execute("""create table report.gpu_need as select * from (values ('(all)', 2.0, 2.75, 1), ('M', 9.0, 9.0, null))
        as need(gpu_model, active_gpus_p95, active_gpus_max, free_gpus_min)""")
    detail = _answers(con)["GPUs to return"].detail
    assert detail.startswith("1 idle on average · active GPUs, hourly average: p95 2, peak 2.8 · by team: ")
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'x', 'y', '', 'M', '2026-11-20', 'allocated_unmeasured', 24)")
    assert " · active GPUs, hourly average: p95 ≥ 2, peak ≥ 2.8 · " in _answers(con)["GPUs to return"].detail
    con.execute("update report.gpu_need set active_gpus_max = 5")  # of 5: there are no more
    assert " · active GPUs, hourly average: p95 ≥ 2, peak 5 · " in _answers(con)["GPUs to return"].detail


def test_where_no_pod_waits_none_waits_longest(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into period.pod_wait values ('lab', 'vision', 'v', '', '2-4', 0.0, null, 0.0)")
    found = _answers(con)["Pending and starved"]
    left = "4 GPU-h unallocated but fragmented; 24 GPU-h idle in allocations."
    assert (found.headline, found.detail) == ("p95 wait 0 s", f"For every team and size. {left}")


def test_a_long_wait_is_named_with_what_others_leave_unused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into period.pod_wait values ('lab', 'vision', 'v', '', '2-4', null, 18000.0, 10.0)")
    con.execute("insert into period.pod_wait values ('lab', 'serving', 's', '', 'share', 18000.0, null, 10 / 7)")
    found = _answers(con)["Pending and starved"]
    assert (found.headline, found.tone) == (
        "vision, 10 GPU-h pending",
        "bad",
    )  # 2 GPUs x 5 h; serving's two instances are 2/7 GPUs x 5 h
    others = "4 GPU-h unallocated but fragmented; 24 GPU-h idle in allocations of others."
    assert found.detail == f"p95 wait ≥ 5 h (2–4 GPUs). {others}"


def test_the_longest_wait_is_named_and_no_short_one_of_more_gpus_hides_it(con: duckdb.DuckDBPyConnection) -> None:
    row = "insert into period.pod_wait values ('lab', ?, ?, '', '1', ?, null, ?)"
    con.execute(row, ["vision", "v", 3600.0, 100.0])  # 100 GPUs for an hour
    con.execute(row, ["serving", "s", 7200.0, 2.0])
    found = _answers(con)["Pending and starved"]
    assert (found.headline, found.detail.partition(".")[0]) == ("p95 wait 2 h", "Longest: serving, 1 GPU")
    con.execute(row, ["research", "r", 18000.0, 20.0])
    found = _answers(con)["Pending and starved"]
    assert (found.headline, found.tone) == ("research, 20 GPU-h pending", "bad")


def test_hours_that_the_waiting_team_itself_leaves_idle_or_another_cluster_has_are_none_of_others(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """The pod that waits is of a namespace whose team has a label; none of the team's pods of that size ever ran."""
    con.execute("insert into period.workload values ('lab', 'research', 'hold-0', '', 'Pod', 'hold-0', 'science')")
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'serving', 'x', '', 'M', '2026-11-20', 'allocated_idle', 5.0)")
    con.execute("insert into report.gpu_hour_ledger values ('far', 'web', 'y', '', 'M', '2026-11-20', 'allocated_idle', 30.0)")
    con.execute("insert into report.gpu_hour_ledger values ('far', '', '', '', 'M', '2026-11-20', 'fragmented', 7.0)")
    con.execute("insert into period.pod_wait values ('lab', 'research', 'big-0', '', '8', null, 18000.0, 40.0)")
    found = _answers(con)["Pending and starved"]
    assert found.headline == "science, 40 GPU-h pending"
    assert found.detail.endswith(" 4 GPU-h unallocated but fragmented; 5 GPU-h idle in allocations of others.")
    with opened_tables(con, {}) as tables:
        assert answers(tables, HEADER, Money("$"), "science")[3].headline == "science, 40 GPU-h pending"
        assert answers(tables, HEADER, Money("$"), "serving")[3].headline == "No pending pods"


def test_the_pending_hours_of_a_team_are_of_all_its_namespaces(con: duckdb.DuckDBPyConnection) -> None:
    """Of 1 GPU one pod waited 5 h and one 7 h: p95 6 h 54 min; 5 + 7 GPU-h, and 20 of larger pods that waited 1 h."""
    for namespace, pod in (("research", "hold-0"), ("serving", "web-7d4b9c8f6d-x2x4z")):
        con.execute("insert into period.workload values ('lab', ?, ?, '', 'Pod', 'w', 'science')", [namespace, pod])
    row = "insert into period.pod_wait values ('lab', ?, ?, '', ?, ?, null, ?)"
    con.execute(row, ["research", "a", "1", 5 * 3600.0, 5.0])
    con.execute(row, ["serving", "b", "1", 7 * 3600.0, 7.0])
    con.execute(row, ["serving", "c", "more", 3600.0, 20.0])
    found = _answers(con)["Pending and starved"]
    assert found.headline == "science, 32 GPU-h pending"
    assert found.detail.startswith("p95 wait 6 h 54 min (1 GPU).")
    assert _answers(con, "science")["Pending and starved"].headline == found.headline


def test_pending_hours_without_those_of_a_request_of_unknown_size_are_a_lower_bound(con: duckdb.DuckDBPyConnection) -> None:
    row = "insert into period.pod_wait values ('lab', 'research', ?, '', ?, null, 18000.0, ?)"
    con.execute(row, ["a", "unknown", None])
    found = _answers(con)["Pending and starved"]
    assert (found.headline, found.tone) == ("p95 wait ≥ 5 h", "bad")
    assert found.detail.startswith("Longest: research, size unknown.")
    con.execute(row, ["b", "1", 5.0])
    assert _answers(con)["Pending and starved"].headline == "research, ≥ 5 GPU-h pending"
    with opened_tables(con, {}) as tables:
        assert [each.pending for each in overview(tables, HEADER, Money("$"), {}).teams] == ["", "≥ 5"]


def test_pending_hours_of_a_team_are_a_lower_bound_where_no_source_lists_its_pods_of_another_cluster(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute("insert into period.pod_wait select 'lab', unnest(['serving', 'research']), 'a', '', '1', null, 18000.0, 5.0")
    con.execute("insert into report.gpu_hour_ledger values ('far', 'research', 'r', '', 'M', '2026-11-20', 'effective', 24)")
    for listed, pending in ((False, ["5", "≥ 5"]), (True, ["5", "5"])):
        if listed:
            con.execute("insert into report.scheduler_pressure (cluster) values ('far')")
        with opened_tables(con, {}) as tables:
            teams = {each.name: each.pending for each in overview(tables, HEADER, Money("$"), {}).teams}
        assert [teams["serving"], teams["research"]] == pending


def test_without_waits_that_is_said_and_without_their_table_there_is_no_data(con: duckdb.DuckDBPyConnection) -> None:
    found = _answers(con)["Pending and starved"]
    assert (found.headline, found.detail) == (
        "No pending pods",
        "4 GPU-h unallocated but fragmented; 24 GPU-h idle in allocations.",
    )
    con.execute("drop table period.pod_wait")
    assert _answers(con)["Pending and starved"].headline == "No data"


def test_who_borrowed_a_teams_guarantee_is_told_on_its_page_too(con: duckdb.DuckDBPyConnection) -> None:
    """The same GPUs by two resources are not added up, and what is borrowed in another cluster serves no wait in this one."""
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'vision', 'v-0', '', 'M', '2026-11-20', 'effective', 1.0)")
    con.execute("insert into period.pod_wait values ('lab', 'vision', 'v-1', '', '1', null, 18000.0, 10.0)")
    con.execute("""
        create table report.quota_pair as
        select 'lab' as cluster, 'nos' as scheduler, 'vision/q' as quota, 'serving/q' as borrower, *
        from (values ('nvidia.com/gpu', 30e0), ('nos.nebuly.com/gpu-memory', 28e0)) as pair(resource, contested_gpu_hours);
        insert into report.quota_pair values ('elsewhere', 'nos', 'red/q', 'blue/q', 'nvidia.com/gpu', 300);
        create table report.quota_pod as select 'lab' as cluster, 'nos' as scheduler, 'vision/q' as quota, 'vision' as namespace
    """)
    borrowed = "Borrowed by serving/q: 30 GPU-h guaranteed to vision/q"
    assert f" {borrowed}; 4 GPU-h " in _answers(con)["Pending and starved"].detail
    assert _answers(con, "vision")["Pending and starved"].detail.endswith(f" {borrowed}.")
    assert "orrowed" not in _answers(con, "research")["Pending and starved"].detail


def test_pods_that_no_source_lists_are_not_said_to_be_none(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("delete from report.scheduler_pressure")
    found = _answers(con)["Pending and starved"]
    assert found.headline == "No data"
    assert found.detail.startswith("No source lists the pods that request GPUs. 4 GPU-h ")


def test_pods_of_a_cluster_that_no_source_lists_are_not_said_to_be_none(con: duckdb.DuckDBPyConnection) -> None:
    """Of lab there are snapshots, of far none, where web has its only pod; also where a pod of lab waited for 10 s."""
    con.execute("insert into report.gpu_hour_ledger values ('far', 'web', 'w', '', 'M', '2026-11-20', 'effective', 24)")
    both, lack = replace(HEADER, clusters=("far", "lab")), "No source lists the pods of far that request GPUs."
    with opened_tables(con, {}) as tables:
        whole, web, research = (answers(tables, both, Money("$"), team)[3] for team in ("", "web", "research"))
        assert (whole.headline, whole.detail[: len(lack) + 8]) == ("No pending pods in lab", f"{lack} 4 GPU-h")
        assert (web.headline, web.detail) == ("No data", "No source lists the pods that request GPUs.")
        assert (research.headline, research.detail) == ("No pending pods", "")
        con.execute("insert into period.pod_wait values ('lab', 'serving', 'p', 'u', '1', 10, null, 0)")
        waited = answers(tables, both, Money("$"), "")[3]
    assert waited.detail.startswith(f"Longest: serving (lab), 1 GPU. {lack} 4 GPU-h ")


def test_errors_and_throttling_that_no_exporter_reports_are_not_said_to_be_none(con: duckdb.DuckDBPyConnection) -> None:
    add_device(con, "GPU-2", "4")
    assert _answers(con)["GPU health"].detail == "No XID error. No throttling or slowdown above the thresholds."
    con.execute("update report.device set xid_error_count = null where device_uuid = 'GPU-2'")
    con.execute("update report.device set any_throttle_ratio = null, power_violation_ratio = 0.0")
    found = _answers(con)["GPU health"]
    assert found.detail == "No XID error on 1 of 2 GPUs. No throttling or slowdown above the thresholds."
    con.execute("update report.device set power_violation_ratio = null")
    found = _answers(con)["GPU health"]
    assert (found.headline, found.detail) == ("No sick GPU found", "No XID error on 1 of 2 GPUs. Throttling is unknown.")
    con.execute("update report.device set xid_error_count = null")
    found = _answers(con)["GPU health"]
    assert (found.headline, found.detail) == ("No data", "XID errors are unknown. Throttling is unknown.")


def test_a_sick_gpu_is_named_by_node_and_number(con: duckdb.DuckDBPyConnection) -> None:
    assert _answers(con)["GPU health"].headline == "No sick GPU found"
    add_finding(con, "GR302", "warning", "throttled 30 % of the time")
    assert _answers(con)["GPU health"].tone == "warn"
    add_finding(con, "GR401", "critical", "XID 79 GPU has fallen off the bus, 2 times; allocated to research/hold-0")
    found = _answers(con)["GPU health"]
    assert (found.headline, found.tone, found.query) == ("1 GPU needs action", "bad", "cluster=lab&device_uuid=GPU-1")
    assert found.detail.startswith("node-1 / GPU 3: XID 79 GPU has fallen off the bus, 2 times · ")


def test_gpus_without_a_number_are_counted_each(con: duckdb.DuckDBPyConnection) -> None:
    """Two GPUs of node-1, one with two errors, of which the exporter does not say the number."""
    con.execute("update report.device set gpu_index = ''")
    for code in ("GR401", "GR404", "GR401"):
        add_finding(con, code, "critical", "XID 79")
    con.execute("update report.finding set device_uuid = 'GPU-2' where rowid = 2")
    found = _answers(con)["GPU health"]
    assert (found.headline, found.detail) == ("2 GPUs need action", "node-1: XID 79 · node-1: XID 79 · 1 more finding")


def test_a_program_that_fails_on_a_healthy_gpu_is_no_sick_gpu(con: duckdb.DuckDBPyConnection) -> None:
    add_finding(con, "GR402", "warning", "XID 31")
    assert _answers(con)["GPU health"].headline == "No sick GPU found"


def test_cost_is_of_all_hours_and_its_parts_are_told(con: duckdb.DuckDBPyConnection) -> None:
    found = _answers(con)["Cost"]
    assert found.headline == "$192"  # 72 allocated and 24 unallocated hours at $2
    assert found.detail.startswith("$144 allocated ($48 idle) · $48 unallocated.")


def test_reserved_hours_are_no_allocated_ones_in_the_cost_either(con: duckdb.DuckDBPyConnection) -> None:
    """72 hours are allocated, 24 of them idle, as in the ledger and in report.period; 5 more are reserved by a claim."""
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'research', '', '', 'M', '2026-11-20', 'reserved_idle', 5)")
    found = _answers(con)["Cost"]
    assert found.detail.startswith("$144 allocated ($48 idle) · $10 reserved, idle · $48 unallocated.")
    assert _answers(con, "research")["Cost"].detail.startswith("$48 allocated ($48 idle) · $10 reserved, idle.")


def test_what_a_claim_reserves_without_a_pod_says_so(con: duckdb.DuckDBPyConnection) -> None:
    """90 hours at $2 are reserved: the most idle hours, and of no pod."""
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'research', '', '', 'M', '2026-11-20', 'reserved_idle', 90)")
    found = _answers(con)["Largest waste"]
    assert found.headline == "research / (no pod)"
    assert found.detail.startswith("90 GPU-h idle, $180. ")
    with opened_tables(con, {}) as tables:
        [row] = tables.rows(
            "select workload, kind, pods from (select workload, kind, count(*) filter (where pod != '') as pods "
            "from page.use where bucket = 'reserved_idle' group by all)"
        )
    assert row == {"workload": "(no pod)", "kind": "", "pods": 0}


def test_hours_without_a_price_make_the_cost_a_lower_bound(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'a', 'p', '', 'N', '2026-11-20', 'effective', 32)")
    found = _answers(con)["Cost"]
    assert found.headline == "≥ $192"  # 96 of 128 hours have one
    assert "75.0 % of GPU-hours have a price" in found.detail


def test_without_a_currency_the_word_cost_is_said_once(con: duckdb.DuckDBPyConnection) -> None:
    assert _answers(con, currency="")["GPUs to return"].detail.endswith(" · cost of those allocated: 48")


def test_without_a_gpu_hour_nothing_is_said_of_waste_and_of_gpus_to_return(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("delete from report.gpu_hour_ledger")
    with opened_tables(con, {}) as tables:
        header = replace(HEADER, device_count=0, expected_seconds=0.0, observed_seconds=0.0)
        found = {each.title: each for each in answers(tables, header, Money("$"))}
    assert found["Largest waste"].line == "Largest waste: No data. No allocated GPU is known to be idle or underutilized."
    assert found["GPUs to return"].line == "GPUs to return: No data."


def test_costs_of_waste_and_of_gpus_to_return_are_lower_bounds_only_where_their_own_hours_lack_a_price(
    con: duckdb.DuckDBPyConnection,
) -> None:
    web, hold = ("serving", "web-7d4b9c8f6d-x2x4z"), ("research", "hold-0")
    row = "insert into report.gpu_hour_ledger values ('lab', ?, ?, '', 'N', '2026-11-20', ?, 4)"
    con.execute(row, [*web, "underutilized"])
    found = _answers(con)
    assert "40 GPU-h underutilized (SM activity below 50 %) in 1 pod, ≥ $72." in found["Largest waste"].detail
    assert found["GPUs to return"].detail.endswith("cost of those allocated: $48")  # 24 idle hours, all with a price
    with opened_tables(con, {}) as tables:
        assert {each.name: each.cost for each in overview(tables, HEADER, Money("$"), {}).teams} == {
            "serving": "≥ $96",
            "research": "$48",
        }
    con.execute(row, [*hold, "allocated_idle"])
    found = _answers(con)
    assert found["GPUs to return"].detail.endswith("cost of those allocated: ≥ $48")
    assert found["Cost"].detail.startswith("≥ $144 allocated (≥ $48 idle) · $48 unallocated · ")
    con.execute(row, ["", "", "free"])
    with opened_tables(con, {}) as tables:
        assert [cost for _, _, cost in overview(tables, HEADER, Money("$"), {}).rest] == ["≥ $48"]


def test_idle_hours_cost_what_their_own_models_cost(con: duckdb.DuckDBPyConnection) -> None:
    """24 idle hours at $2, and 10 busy ones of the same workload at $8: $48 as in the cost, not 24 / 34 of $128."""
    con.execute("insert into period.price values ('N', '2026-11-20', 8.0)")
    con.execute(
        "insert into report.gpu_hour_ledger values ('lab', 'research', 'hold-0', '', 'N', '2026-11-20', 'effective', 10.0)"
    )
    found = _answers(con)
    assert found["GPUs to return"].detail.endswith("cost of those allocated: $48")
    assert "($48 idle)" in found["Cost"].detail


def test_without_prices_the_cost_is_unknown_and_not_zero(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("drop table period.price")
    found = _answers(con)["Cost"]
    assert found.headline == "No prices configured"
    assert "$" not in found.line
    with opened_tables(con, {}) as tables:
        header = replace(HEADER, settings={"price of gpu_hour": {"B300": 2}})
        found = answers(tables, header, Money("$"), "")[-1]
    assert found.headline == "No price for these GPUs"
    assert found.detail.startswith("Cost needs a price for a model and day of the period in the configuration.")


def test_energy_is_told_with_its_range_where_that_is_known_of_all_of_it(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("drop table period.price")
    con.execute(
        "create or replace table report.energy as select 'lab' as cluster, 'research' as namespace, 7.2e6 as energy_joules"
    )
    rows = (
        "('cluster', 'lab', 'lab', 5.4e6, 0.05, 60.0), ('cluster', 'edge', 'edge', 1.8e6, 0.01, 36.0),"
        " ('day', 'lab', '2026-11-20', 7.2e6, 0.9, 96.0)"
    )
    con.execute(f"""create or replace table report.energy_balance as select * from (values {rows})
        as balance(dimension, cluster, value, energy_joules, energy_accuracy_ratio, measured_gpu_hours)""")
    assert _answers(con)["Cost"].headline == "Energy 2 kWh ± 4.0 %"  # 5 % of 1.5 and 1 % of 0.5 kWh
    con.execute("update report.energy_balance set energy_accuracy_ratio = null where value = 'edge'")
    assert _answers(con)["Cost"].headline == "Energy 2 kWh"
    con.execute("update report.energy_balance set measured_gpu_hours = 35 where value = 'edge'")
    assert _answers(con)["Cost"].headline == "Energy ≥ 2 kWh"  # 95 of 96 GPU-hours
    con.execute("update report.energy_balance set measured_gpu_hours = 0")
    assert _answers(con)["Cost"].headline == "Energy ≥ 2 kWh"  # a counter's growth over gaps, and no hour in which it is known


def test_energy_of_a_team_is_a_lower_bound_where_its_hours_lack_it(con: duckdb.DuckDBPyConnection) -> None:
    """Of serving's 48 allocated hours 40 are measured, of research's 24 all; no label names teams: namespaces are."""
    con.execute("""
        create table report.energy as
            select 'lab' as cluster, unnest(['serving', 'research']) as namespace, 7.2e6 as energy_joules;
        create table report.energy_balance as select 'lab' as cluster, * from (values
            ('namespace', 'serving', 7.2e6, 0.05, 40.0), ('namespace', 'research', 7.2e6, 0.01, 24.0),
            ('team', 'serving', 7.2e6, 0.05, 40.0), ('team', 'research', 7.2e6, 0.01, 24.0)
        ) as balance(dimension, value, energy_joules, energy_accuracy_ratio, measured_gpu_hours)""")
    assert "≥ 2 kWh ± 5.0 %." in _answers(con, "serving")["Cost"].detail
    assert " 2 kWh ± 1.0 %." in _answers(con, "research")["Cost"].detail
    with opened_tables(con, {}) as tables:
        teams = {each.name: each.energy for each in overview(tables, HEADER, Money("$"), {}).teams}
    assert teams == {"serving": "≥ 2 kWh", "research": "2 kWh"}


def test_emissions_of_a_team_say_how_idle_energy_is_in_them_and_are_lower_bounds_without_a_factor(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """The team's kWh have the idle energy of its own GPUs; its emissions by idle_policy none, that, or a part of its pool's."""
    con.execute("""
        create table report.energy as select 'lab' as cluster, 'research' as namespace, 7.2e6 as energy_joules;
        create table report.energy_balance as select 'lab' as cluster, unnest(['namespace', 'cluster']) as dimension,
            unnest(['research', 'lab']) as value, 7.2e6 as energy_joules, null::double as energy_accuracy_ratio,
            unnest([24e0, 96e0]) as measured_gpu_hours;
        create table report.cost as select 'lab' as cluster, 'research' as namespace, 1.5e6 as co2e_grams, 1e0 as energy_kwh;
    """)
    said = {"separate": " without idle energy", "holder": "", "pool": " with idle energy by pool"}
    for policy, basis in said.items():
        header = replace(HEADER, settings={"idle_policy": policy})
        with opened_tables(con, {}) as tables:
            own, whole = (answers(tables, header, Money("$"), team)[-1].detail for team in ("research", ""))
        assert f" · 2 kWh · 1.5 t CO₂e{basis}. " in own
        assert " · 2 kWh · 1.5 t CO₂e. " in whole
    con.execute("insert into report.cost values ('lab', 'research', null, 1), ('lab', 'research', null, 0)")
    assert " · 2 kWh · ≥ 1.5 t CO₂e." in _answers(con)["Cost"].detail
    for grams, amount in ((999_000, "999 kg"), (231.2, "231 g")):
        con.execute("update report.cost set co2e_grams = $1 where co2e_grams is not null", [grams])
        assert f" · 2 kWh · ≥ {amount} CO₂e." in _answers(con)["Cost"].detail


def test_a_team_has_its_own_answers(con: duckdb.DuckDBPyConnection) -> None:
    found = _answers(con, "research")
    assert found["Capacity use"].headline == "0 % effective"
    assert found["Capacity use"].detail == "100.0 % idle · 1 GPU on average"
    assert found["GPUs to return"].headline == "1"


def test_hours_without_sm_activity_are_active_and_not_called_ineffective(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("update report.gpu_hour_ledger set bucket = 'active_unmeasured' where namespace = 'serving'")
    found = _answers(con)["Capacity use"]
    assert found.headline == "50.0 % active"  # 48 of 96, by the name that older lakes have for it
    assert "SM activity is not measured" in found.detail


def test_hours_without_sm_activity_are_not_said_to_be_well_used(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("update report.gpu_hour_ledger set bucket = 'active_unmeasured' where bucket = 'underutilized'")
    waste = _answers(con)["Largest waste"].detail
    assert waste.endswith(" In all: 24 GPU-h idle, 36 GPU-h of unknown SM activity.")
    con.execute("delete from report.gpu_hour_ledger where bucket = 'allocated_idle'")
    waste = _answers(con)["Largest waste"]
    assert (waste.headline, waste.detail) == (
        "None known",
        "No allocated GPU is known to be idle or underutilized; 36 GPU-h of unknown SM activity.",
    )


def test_hours_of_which_nobody_knows_the_holder_are_neither_unallocated_nor_without_waste(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("update report.gpu_hour_ledger set bucket = 'unknown', namespace = '' where bucket = 'allocated_idle'")
    found = _answers(con)
    assert found["Capacity use"].headline == "≥ 12.5 % effective"  # 12 of 96
    assert found["Capacity use"].detail.startswith("≥ 50.0 % allocated · ")
    assert (found["GPUs to return"].headline, found["GPUs to return"].detail) == (
        "≥ 0 of 4",
        "0 idle on average · allocation of 1 GPU unknown",
    )
    # Of 96 hours, 48 are allocated and 24 free at $2; 24 are unknown, and may be of either.
    assert found["Cost"].headline == "$192"
    assert found["Cost"].detail.startswith("≥ $96 allocated · ≥ $48 unallocated · $48 allocation unknown.")
    assert {each.confidence for title, each in found.items() if title != "GPU health"} <= {"", "low"}  # 24 of 96 are unknown
    con.execute("update report.gpu_hour_ledger set bucket = 'unknown', namespace = ''")
    found = _answers(con)
    assert (found["Capacity use"].headline, found["Largest waste"].headline) == ("Unknown", "No data")
    assert found["Capacity use"].detail == "Allocation unknown · 96 GPU-h of capacity"
    assert (
        found["Largest waste"].detail == "No allocated GPU is known to be idle or underutilized; 96 GPU-h of unknown allocation."
    )
    assert (found["GPUs to return"].headline, found["GPUs to return"].detail) == ("No data", "Allocation of 4 GPUs unknown")


def test_costs_of_idle_hours_beside_unknown_ones_are_lower_bounds(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("update report.gpu_hour_ledger set bucket = 'unknown' where bucket = 'free'")  # 20 of 96 hours
    found = _answers(con)
    assert found["GPUs to return"].headline == "≥ 1 of 4"
    assert found["GPUs to return"].detail.endswith("cost of those allocated: ≥ $48")
    assert found["Cost"].detail.startswith("≥ $144 allocated (≥ $48 idle) · ≥ $8 unallocated · $40 allocation unknown.")
    # So are the idle and underutilized hours themselves, as in the answer about capacity.
    assert found["Largest waste"].detail == (
        "≥ 36 GPU-h underutilized (SM activity below 50 %) in 1 pod, ≥ $72. Next: research / hold, ≥ 24 GPU-h idle. "
        "In all: ≥ 24 GPU-h idle, ≥ 36 GPU-h underutilized, 20 GPU-h of unknown allocation."
    )
    # 4 and 20 of 24 h.
    with opened_tables(con, {}) as tables:
        rest = overview(tables, HEADER, Money("$"), {}).rest
    assert rest == [("Unallocated", "≥ 0.2", "≥ $8"), ("Allocation unknown", "0.8", "$40")]


def test_money_goes_with_a_symbol_before_and_a_code_behind() -> None:
    assert [Money(each)(1234.5) for each in ("$", "EUR", "")] == ["$1,235", "1,235 EUR", "1,235"]
    assert Money("$")(None) == "—"
    assert [Money(each).tail(1234.5) for each in ("$", "")] == [", $1,235", ", cost 1,235"]


def test_an_empty_report_has_answers_that_say_so() -> None:
    with duckdb.connect() as con:
        con.execute("create schema report; create schema facts; create schema period")
        with opened_tables(con, {}) as tables:
            assert isinstance(tables, Tables)
            found = answers(tables, HEADER, Money(), "")
    assert [each.headline for each in found][:2] == ["No data", "No data"]
