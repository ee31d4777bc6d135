"""Kueue as clusters run it: textbook flavors, suspended jobs, labels of one's own; an hour worked out by hand."""

from __future__ import annotations

import json

from quota.kueue_scene import FROM, GPU, MIDNIGHT, UNTIL, amounts, at, flavor, node, pod, queue, rows, run, save, scene, workload

CPU = {"default-flavor": {"cpu": 64, "memory": "512Gi"}}
"""Fields of a textbook ClusterQueue beside its GPUs: one flavor for all nodes."""
FIGURES = ("guaranteed", "demanded", "delivered", "borrowed", "unmet")


def cluster(pods=(), workloads=None, gpus=("h100",), groups=None):
    """team has 10 GPUs of h100 and other 6; n1 and n2 have 8 each, and a label that only the flavor names."""
    groups = groups or {name: [CPU, {"h100": {GPU: nominal}}] for name, nominal in (("team", 10), ("other", 6))}
    lists = {
        "clusterqueues": [queue(name, said) for name, said in groups.items()],
        "localqueues": [
            {"metadata": {"name": name, "namespace": name, "uid": f"lq-{name}"}, "spec": {"clusterQueue": name}}
            for name in groups
        ],
        "resourceflavors": [flavor("default-flavor"), *(flavor(name, acme__gpu=name) for name in gpus)],
        "nodes": [node(f"n{n}", 8, acme__gpu=gpus[n % len(gpus)]) for n in range(2)],
        "pods": list(pods),
        "namespaces": [],
    }
    return lists if workloads is None else {**lists, "workloads": list(workloads)}


RUNNING = [pod("t1", "team", 8, FROM - 60, FROM - 60, "n0"), pod("o1", "other", 8, FROM - 60, FROM - 60, "n1")]
# team has 8 of its 10 and requests 2 more, which other has beyond its 6.
TRUTH = {("team", "h100"): (10, 10, 8, 0, 2), ("other", "h100"): (6, 8, 8, 2, 0)}


@scene(lambda minute: cluster([*RUNNING, *([pod("t2", "team", 2, FROM)] if minute >= FROM else [])]))
def test_a_textbook_queue_with_a_waiting_pod(found):
    assert amounts(found, *FIGURES) == TRUTH
    assert rows(found, "select quota, borrower, contested_gpu_hours from report.quota_pair") == [("team", "other", 2)]


JOBS = [
    pod("t1", "team", 8, FROM - 60, FROM - 60, "n0", owner="Job"),
    pod("o1", "other", 8, FROM - 60, FROM - 60, "n1", owner="Job"),
]
H100 = {GPU: "h100", "cpu": "default-flavor"}
HELD = [workload(name, name, 8, FROM - 60, FROM - 60, flavors=H100) for name in ("team", "other")]


def suspended(minute):
    return cluster(JOBS, [*HELD, *([workload("wants", "team", 2, FROM)] if minute >= FROM else [])])


@scene(suspended)
def test_a_suspended_job_asks_by_its_workload(found):
    assert amounts(found, *FIGURES) == TRUTH
    assert rows(found, "select quota, borrower, contested_gpu_hours from report.quota_pair") == [("team", "other", 2)]
    ahead = "select workload, ahead_count, ahead_gpus, allocated_gpus, allocated_to, borrowers from report.workload_queue"
    assert rows(found, ahead) == [("wants", 0, 0, 8, "team/team 8", "other")]
    honoured = (
        "select guarantee_honoured_ratio, amount_source from report.quota_fair_share where quota = 'team' and flavor = 'h100'"
    )
    assert rows(found, honoured) == [(0.8, "workloads")]


@scene(suspended, version="v1beta1")
def test_a_suspended_job_of_an_older_version_asks_by_its_workload(found):
    test_a_suspended_job_asks_by_its_workload(found)


@scene(lambda minute: cluster(JOBS))
def test_what_jobs_wait_for_is_unknown_where_nobody_says_it(found):
    assert amounts(found, *FIGURES) == {("team", "h100"): (10, None, 8, 0, None), ("other", "h100"): (6, None, 8, 2, None)}


def waiting_series():
    lines = [
        f"kueue_cluster_queue_resource_pending{{{labels}}} {value} {MIDNIGHT + 60 * minute}"
        for labels, value in (
            (f'cluster_queue="team",resource="{GPU}",replica_role="leader"', 2),
            (f'cluster_queue="other",resource="{GPU}",replica_role="leader"', 0),
        )
        for minute in range(FROM, UNTIL)
    ]
    return "\n".join(["# TYPE kueue_cluster_queue_resource_pending gauge", *lines, ""])


@scene(lambda minute: cluster(JOBS), metrics=waiting_series())
def test_kueues_series_of_what_waits_has_no_flavor(found):
    assert amounts(found, *FIGURES) == TRUTH


def weighted(_):
    lists = cluster(groups={"team": [{"h100": {GPU: 4}}], "other": [{"h100": {GPU: 4}}]})
    for each, held, weight, share in zip(lists["clusterqueues"], (0, 6), (1, 2), (0, 300), strict=True):
        each["spec"]["fairSharing"] = {"weight": str(weight)}
        reserved = [{"name": "h100", "resources": [{"name": GPU, "total": str(held)}]}]
        each["status"] = {"flavorsReservation": reserved, "fairSharing": {"weightedShare": share}}
    return {**lists, "workloads": []}


@scene(weighted)
def test_weighted_shares_as_kueue_says_them_beside_the_rules(found):
    """other borrows 2 GPUs of the 8 that the cohort can lend: 250 thousandths, over its weight of 2. Kueue reports more."""
    shares = "select quota, reported_native_avg, recomputed_native_avg from report.quota_audit where measure = 'weighted share'"
    assert sorted(rows(found, shares)) == [("other", 300, 125), ("team", 0, 0)]


COUNTED = {"team": ("0", "1", "1500m", "1750m"), "other": ("0", "500m", "250m", "125m")}


def counting(minute):
    lists = cluster(JOBS, [workload(name, name, 2, FROM, FROM, finished=FROM + 45, flavors=H100) for name in COUNTED])
    for queue_of in lists["localqueues"]:
        counted = {GPU: COUNTED[queue_of["metadata"]["name"]][(minute - FROM) // 15], "cpu": "1"}
        queue_of["status"] = {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": counted}}}
    return lists


@scene(counting)
def test_past_use_of_a_held_local_queue_is_more_than_kueue_counts(found):
    """2 GPUs from 12:00 to 12:45, half-life 15 minutes: 0, 1, 1.5 and 1.75 at the snapshots, each a quarter of an hour. Kueue
    stops counting for a queue on hold: it reports 0, 0.5, 0.25 and 0.125 of it.
    """
    shares = """select quota, resource, reported_native_avg, round(recomputed_native_avg, 9), round(difference_native_avg, 9)
        from report.quota_audit where measure = 'past use'"""
    assert sorted(rows(found, shares)) == [("other/other", GPU, 0.21875, 1.0625, 0.84375), ("team/team", GPU, 1.0625, 1.0625, 0)]


O1 = pod("o1", "other", 8, FROM - 60, FROM - 60, "n1", owner="Job")
HOLDS = workload("holds", "other", 8, FROM - 60, FROM - 60, flavors=H100)


def flavor_without_nodes(_):
    groups = {"team": [CPU, {"l40s": {GPU: 4}}], "other": [CPU, {"h100": {GPU: 16}}]}
    lists = cluster([O1], [HOLDS, workload("wants", "team", 4, FROM - 60)], groups=groups)
    return {**lists, "resourceflavors": [*lists["resourceflavors"], flavor("l40s", acme__gpu="l40s")]}


@scene(flavor_without_nodes)
def test_what_waits_for_a_flavor_without_nodes_is_no_violation(found):
    """All 16 GPUs are of h100, of which 8 are free. Four wait for l40s: guaranteed, and no node could have served them."""
    assert amounts(found, "unmet", "violated") == {("team", "l40s"): (4, 0), ("other", "h100"): (0, 0)}


def flavor_with_free_nodes(_):
    groups = {"team": [CPU, {"l40s": {GPU: 4}}], "other": [CPU, {"h100": {GPU: 16}}]}
    return cluster([O1], [HOLDS, workload("wants", "other", 4, FROM - 60)], groups=groups)


@scene(flavor_with_free_nodes)
def test_what_waits_for_a_flavor_with_free_nodes_is_a_violation(found):
    assert amounts(found, "unmet", "violated")["other", "h100"] == (4, 4)


def draining(minute):
    lists = flavor_with_free_nodes(minute)
    if minute >= FROM + 30:
        lists["nodes"][0]["spec"]["unschedulable"] = True
    if minute >= FROM + 45:
        lists["nodes"][0]["status"]["conditions"][0]["status"] = "Unknown"
    return lists


@scene(draining)
def test_free_gpus_of_a_node_that_takes_no_pods_cover_nothing(found):
    """n0, the only node with free GPUs, is cordoned at 12:30 and not ready at 12:45: of the hour half is a violation."""
    assert amounts(found, "unmet", "violated")["other", "h100"] == (4, 2)


SMALL, LARGE = "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb"


def sliced(_):
    """n0 has 8 GPUs, which team holds, and 7 free instances of SMALL: 2 GPUs by their slices."""
    groups = {"team": [{"h100": {GPU: 10}}], "small": [{"h100": {SMALL: 2}}], "large": [{"h100": {LARGE: 2}}]}
    waiting = [workload(f"wants-{name}", name, 2, FROM) for name in groups]
    for found, resource in zip(waiting, (GPU, SMALL, LARGE), strict=True):
        found["spec"] = json.loads(json.dumps(found["spec"]).replace(GPU, resource))
    only = node("n0", 8, acme__gpu="h100")
    only["status"]["allocatable"] |= {SMALL: "7"}
    return {**cluster(JOBS[:1], [HELD[0], *waiting], groups=groups), "nodes": [only]}


@scene(sliced)
def test_mig_instances_are_free_for_requests_of_their_profile_alone(found):
    assert [amounts(found, "unmet", "violated", resource=resource) for resource in (GPU, SMALL, LARGE)] == [
        {("team", "h100"): (2, 0)},
        {("small", "h100"): (2, 2)},
        {("large", "h100"): (2, 0)},
    ]


def selecting(_):
    # a100 comes first by name and in the queue; the pod wants h100.
    groups = {name: [CPU, {"a100": {GPU: 0}, "h100": {GPU: nominal}}] for name, nominal in (("team", 6), ("other", 4))}
    pods = [
        pod("t1", "team", 4, FROM - 60, FROM - 60, "n1"),
        pod("o1", "other", 4, FROM - 60, FROM - 60, "n1"),
        pod("t2", "team", 2, FROM - 60, selector={"acme/gpu": "h100"}),
    ]
    return cluster(pods, gpus=("a100", "h100"), groups=groups)


@scene(selecting)
def test_a_waiting_pod_counts_in_the_flavor_of_its_node_selector(found):
    assert amounts(found, *FIGURES) == {
        ("team", "a100"): (0, 0, 0, 0, 0),
        ("team", "h100"): (6, 6, 4, 0, 2),
        ("other", "a100"): (0, 0, 0, 0, 0),
        ("other", "h100"): (4, 4, 4, 0, 0),
    }


def preempted(minute):
    if minute < FROM + 15:
        state = workload("w", "other", 8, FROM - 60, FROM - 60, flavors=H100)
    elif minute < FROM + 45:
        state = workload("w", "other", 8, FROM - 60, None, evicted=FROM + 15, preemptor="u-team-wants")
    else:
        state = workload("w", "other", 8, FROM - 60, FROM + 45, flavors=H100)
    return cluster([], [state])


@scene(preempted)
def test_a_preempted_workload_waits_again_until_it_is_let_in(found):
    """Preempted at 12:15, back at 12:45: of the hour it holds half."""
    assert amounts(found, "demanded", "delivered")["other", "h100"] == (8, 4)
    lost = "select cluster_queue, reason, preemption_reason, evicted_count, lost_gpu_hours from report.workload_eviction"
    assert rows(found, lost) == [("other", "Preempted", "InCohortReclamation", 1, 10)]  # 8 GPUs from 11:00 to 12:15
    waited = "select attempt_count, reserved_count, wait_seconds_p50, pending_gpu_hours from report.workload_wait"
    assert rows(found, waited) == [(2, 1, 1800, 4)]


def back_unseen(minute):
    return cluster([], [workload("w", "other", 8, FROM - 60, FROM - 50 if minute < FROM + 30 else FROM + 25, flavors=H100)])


@scene(back_unseen)
def test_a_wait_of_which_no_snapshot_shows_the_beginning_is_unknown(found):
    """With quota since 11:10, then since 12:25: evicted between 12:15 and 12:25, so it waited for up to ten minutes."""
    wait = "select attempt_count, reserved_count, wait_seconds_p50, unknown_reasons['wait_seconds_p50'] from report.workload_wait"
    assert rows(found, wait) == [(2, 1, None, "not_observed")]


def test_workloads_of_a_version_that_is_not_known_are_not_read_and_demand_is_unknown(tmp_path, capsys):
    save(tmp_path / "a", cluster(JOBS), version="v1beta2")
    save(tmp_path / "b", {"workloads": HELD}, version="v9")
    (tmp_path / "b" / "workloads.json").rename(tmp_path / "a" / "workloads.json")
    run(
        "import",
        "--kubernetes",
        str(tmp_path / "a"),
        "--observed-at",
        at(FROM),
        "--cluster",
        "lab",
        "--lake",
        str(tmp_path / "l"),
    )
    run("sql", "select asked, reason from lake.source where asked like 'workloads%'", "--lake", str(tmp_path / "l"), "-o", "csv")
    assert "the folder has it as kueue.x-k8s.io/v9, which is not read" in capsys.readouterr().out


def test_what_if_replays_whole_workloads_by_the_queues_policy(tmp_path, capsys):
    """other's 8 are one workload: where it may not borrow it waits as a whole, and team has its 10. Never is Kueue's default."""
    for minute in range(FROM, UNTIL, 15):
        save(tmp_path / str(minute), cluster(JOBS, [*HELD, workload("wants", "team", 2, FROM)]))
        folder = ["--kubernetes", str(tmp_path / str(minute)), "--observed-at", at(minute)]
        run("import", *folder, "--cluster", "lab", "--lake", str(tmp_path / "lake"))
    capsys.readouterr()
    window = ["--since", at(FROM), "--until", at(UNTIL), "--system", "kueue", "--lake", str(tmp_path / "lake"), "-o", "json"]
    run("whatif", *window, "--set", "quota.other.borrowingLimit=0")
    answer = json.loads(capsys.readouterr().out)
    verdict = "other would have waited 8 GPU-hours more; other would have lost 2 of 2 borrowed GPU-hours"
    assert answer["verdict"] == f"{verdict}; team would have waited 2 GPU-hours less."
    found = {
        (row["quota"], row["figure"]): (row["recorded"], row["replayed"], row["changed"])
        for row in answer["outcomes"]
        if row["figure"] in ("delivered_gpu_hours", "replay_error_gpu_hours")
    }
    assert found == {
        ("other", "delivered_gpu_hours"): (8, 8, 0),
        ("other", "replay_error_gpu_hours"): (None, 0, None),
        ("team", "delivered_gpu_hours"): (8, 8, 10),
        ("team", "replay_error_gpu_hours"): (None, 0, None),
    }


def test_what_if_a_queue_had_more_weight_where_kueue_shares_fairly(tmp_path, capsys):
    """Eight workloads of 1 wait for an hour for the 4 that spare lends: 2 and 2 by weighted shares, 1 and 3 with b's weight 3,
    and all to a, whose are older, where fair sharing is off.
    """
    lists = cluster([], groups={"a": [{"h100": {GPU: 0}}], "b": [{"h100": {GPU: 0}}], "spare": [{"h100": {GPU: 4}}]})
    for each in lists["clusterqueues"]:
        each["status"] = {"fairSharing": {"weightedShare": 0}}
    waiting = [workload(f"{name}{n}", name, 1, FROM - 60 + (name == "b")) for name in "ab" for n in range(4)]
    for minute in range(FROM, UNTIL, 15):
        save(tmp_path / str(minute), {**lists, "workloads": waiting})
        folder = ["--kubernetes", str(tmp_path / str(minute)), "--observed-at", at(minute)]
        run("import", *folder, "--cluster", "lab", "--lake", str(tmp_path / "lake"))
    window = ["--since", at(FROM), "--until", at(UNTIL), "--lake", str(tmp_path / "lake"), "-o", "json"]
    found = {}
    for setting in ("quota.b.weight=3", "kueue.fairSharing=0"):
        capsys.readouterr()
        run("whatif", *window, "--set", setting)
        rows = json.loads(capsys.readouterr().out)["outcomes"]
        held = {row["quota"]: row for row in rows if row["figure"] == "delivered_gpu_hours"}
        found[setting] = [(held[name]["replayed"], held[name]["changed"]) for name in "ab"]
    assert found == {"quota.b.weight=3": [(2, 1), (2, 3)], "kueue.fairSharing=0": [(2, 4), (2, 0)]}


def seen_late(minute):
    waits, runs = workload("late", "team", 2, FROM + 500), workload("late", "team", 2, FROM + 500, FROM + 600, flavors=H100)
    return cluster(JOBS, [*HELD, *([] if minute < FROM + 15 else [waits] if minute < FROM + 30 else [runs])])


@scene(seen_late)
def test_what_a_snapshot_shows_was_there_by_then_whatever_its_clock_says(found):
    """Seen waiting from 12:15 and with quota from 12:30, by its clock in the evening: 2 x 45 min demanded, 2 x 30 delivered."""
    assert amounts(found, "demanded", "delivered", "unmet")["team", "h100"] == (9.5, 9, 0.5)


def with_a_deleted_queue(minute):
    lists = cluster(JOBS, [*HELD, workload("wants", "team", 2, FROM)])
    if minute >= FROM + 30:
        lists["clusterqueues"] = [each for each in lists["clusterqueues"] if each["metadata"]["name"] != "team"]
    return lists


@scene(with_a_deleted_queue)
def test_a_queue_that_is_deleted_while_a_workload_waits_ends_with_its_demand(found):
    """team and what it waits for are known from 12:00 until the snapshot of 12:30 without the queue: half of the truth."""
    assert amounts(found, *FIGURES) == {("team", "h100"): (5, 5, 4, 0, 1), ("other", "h100"): TRUTH["other", "h100"]}


def in_a_circle(_):
    lists = cluster(JOBS, [*HELD, workload("wants", "team", 2, FROM)])
    lists["cohorts"] = [
        {"metadata": {"name": name, "uid": f"c-{name}"}, "spec": {"parentName": parent}}
        for name, parent in (("all", "above"), ("above", "all"))
    ]
    return lists


@scene(in_a_circle)
def test_cohorts_in_a_circle_leave_their_queues_with_what_they_have(found):
    """Kueue admits nothing more there; what the queues request and hold is reported all the same."""
    assert amounts(found, *FIGURES) == TRUTH


def with_pods_that_are_done(minute):
    done = 0 if minute < FROM + 15 else 4 if minute < FROM + 30 else 7
    over = FROM + 45 if minute >= FROM + 45 else None
    state = workload("w", "other", 1, FROM - 60, FROM - 60, finished=over, flavors=H100, count=8)
    state["status"]["reclaimablePods"] = [{"name": "main", "count": done}]
    return cluster([], [state])


@scene(with_pods_that_are_done)
def test_pods_that_are_done_hold_nothing_from_then_on_but_did_before(found):
    """Of 8 pods 4 are done at 12:15 and 7 at 12:30, the last at 12:45: (8 + 4 + 1) / 4 GPU-hours."""
    assert amounts(found, "demanded", "delivered")["other", "h100"] == (3.25, 3.25)
    waited = "select workload, request_gpus from period.workload_run"
    assert rows(found, waited) == [("w", 8)]


def with_fewer_pods(minute):
    """Of 5 pods of "few" 3 are admitted, one is done at 12:15 and 3 at 12:30; "shrunk" wants 2 of its 6 from 12:30 on."""
    few, shrunk = (
        workload(name, "other", 1, FROM - 60, FROM - 60, flavors=H100, count=n) for name, n in (("few", 3), ("shrunk", 6))
    )
    few["spec"]["podSets"][0]["count"] = 5
    few["status"]["reclaimablePods"] = [{"name": "main", "count": 0 if minute < FROM + 15 else 1 if minute < FROM + 30 else 3}]
    shrunk["spec"]["podSets"][0]["count"] = 6 if minute < FROM + 30 else 2
    return cluster([], [few, shrunk])


@scene(with_fewer_pods)
def test_a_workload_holds_no_more_pods_than_are_admitted_and_no_more_than_are_wanted_and_not_done(found):
    """few holds 3 of 5, 3 of 4, then 2; shrunk 6, then 2 (Kueue, totalRequestsFromAdmission): 2.5 + 4 GPU-hours."""
    assert amounts(found, "demanded", "delivered")["other", "h100"] == (6.5, 6.5)


def admitted_in_part(minute):
    """Of 5 pods that wait from 12:00 on 3 are admitted at 12:20; of 4 from 12:16 on 1 at 12:28, between two snapshots."""
    found = []
    for name, created, reserved, wanted, admitted in (("other", FROM, FROM + 20, 5, 3), ("team", FROM + 16, FROM + 28, 4, 1)):
        is_waiting = minute < reserved
        each = workload(name, name, 1, created, None if is_waiting else reserved, flavors=H100, count=admitted)
        each["spec"]["podSets"][0] |= {"count": wanted, "minCount": 1}
        found += [each] if minute >= created else []
    return cluster([], found)


@scene(admitted_in_part)
def test_a_workload_that_is_admitted_in_part_waits_with_its_full_count(found):
    """other: 5 GPUs for 20 min, then 3 for 40; team: 4 for 12 min, then 1 for 32."""
    held = {("other", "h100"): (11 / 3, 2, 5 / 3), ("team", "h100"): (4 / 3, 8 / 15, 4 / 5)}
    found_amounts = amounts(found, "demanded", "delivered", "unmet")
    assert found_amounts == {each: tuple(round(amount, 6) for amount in held[each]) for each in held}
    waited = "select cluster_queue, round(pending_gpu_hours, 6) from report.workload_wait order by all"
    assert rows(found, waited) == [("other", round(5 / 3, 6)), ("team", 0.8)]


def elastic(minute):
    """Of 4 pods, then of 6: these wait for 2 more until 12:30, and Kueue finishes the smaller slice at 12:45."""
    admitted, over = (FROM + 30 if minute >= FROM + 30 else None), (FROM + 45 if minute >= FROM + 45 else None)
    small = workload("small", "other", 1, FROM - 60, FROM - 60, finished=over, flavors=H100, count=4)
    large = workload("large", "other", 1, FROM, admitted, flavors=H100 if admitted else None, count=6)
    large["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "other/small"}
    return cluster([], [small, *([large] if minute >= FROM else [])])


@scene(elastic)
def test_a_slice_of_an_elastic_job_asks_for_what_it_has_beyond_the_one_that_it_replaces(found):
    """It requests 6 GPUs all the hour, and has 4 and then 6 for half of it each; 2 are unmet for half an hour."""
    assert amounts(found, "demanded", "delivered", "unmet")["other", "h100"] == (6, 5, 1)
    assert rows(found, "select workload, ended_at is null from period.workload_run order by all") == [
        ("large", True),
        ("small", False),
    ]
