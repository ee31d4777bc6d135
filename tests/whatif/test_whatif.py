"""``gpureport whatif`` from lists of four clusters to its figures; the window is 10:00–10:30, and 32 GB are a GPU."""

import csv
import io
import json
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import pytest
from seed_cluster import CLUSTERS, DAY, GPU, OLD, elastic, guaranteed, listed, make_lake, named, node, pod

from gpureport.cli import main
from gpureport.commands.work import comparing
from gpureport.commands.work.comparing import quota_lake, quota_rules
from gpureport.compute.query import connection
from gpureport.config import Config
from gpureport.lake import open_lake
from gpureport.schedulers.change import NO_CHANGE
from gpureport.schedulers.model import DEFAULT_RULES
from gpureport.values.window import Window, parse_instant
from gpureport.whatif import Answer, Question, compare
from gpureport.whatif.text import KEY, notes, verdict

NOW = datetime(2026, 11, 21, tzinfo=UTC)
NOW_OF_RECORDING = datetime(2026, 11, 22, tzinfo=UTC)
RECORDING = Path(__file__).parents[2] / "data/fixtures/k8s-1.36-recording"
WINDOW = ["--since", "2026-11-20T10:00:00Z", "--until", "2026-11-20T10:30:00Z"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return make_lake(tmp_path_factory.mktemp("seed"), NOW)


@pytest.fixture(scope="module")
def recorded(lake):
    """What is recorded of a cluster, or all, from 10:00 to 10:30, on a connection: built at the first use."""
    with ExitStack() as opened:

        @cache
        def build(cluster):
            con, window = opened.enter_context(connection()), Window(*map(parse_instant, WINDOW[1::2]))
            quota_lake(con, open_lake(lake), window, [cluster] if cluster else None)
            compare._build_recorded(con, quota_rules(Config()), window, Question(NO_CHANGE, cluster=cluster))
            return con

        yield build


@contextmanager
def undone(con, *_):
    con.begin()
    try:
        yield con
    finally:
        con.rollback()


@pytest.fixture
def run_whatif(lake, recorded, capsys, monkeypatch):
    """The command's exit code, output and errors; ``window`` replaces 10:00–10:30."""

    def run(*arguments, window=WINDOW):
        cluster = arguments[arguments.index("--cluster") + 1] if "--cluster" in arguments else ""
        with monkeypatch.context() as patched:
            if window == WINDOW and "--system" not in arguments and cluster in ("", *CLUSTERS):
                patched.setattr(comparing, "connection", partial(undone, recorded(cluster)))
                patched.setattr(comparing, "quota_lake", lambda *_: None)
                patched.setattr(compare, "_build_recorded", lambda *_: None)
            code = main(["whatif", *window, "--lake", str(lake), *arguments], environ={}, now=NOW)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def outcomes(run_whatif):
    """Values by quota and figure: recorded, replayed, changed."""

    def read(*arguments, **more):
        code, out, _ = run_whatif(*arguments, "-o", "csv", **more)
        assert code == 0
        return {
            (row["quota"], row["figure"]): tuple(
                float(row[name]) if row[name] else None for name in ("recorded", "replayed", "changed")
            )
            for row in csv.DictReader(io.StringIO(out))
        }

    return read


def gpu_hours(*intervals):
    """Of (GB, minutes)."""
    return pytest.approx(sum(gb * minutes for gb, minutes in intervals) / 60 / 32)


def test_the_documents_story_as_recorded_replayed_and_without_a_lender(outcomes):
    found = outcomes("--cluster", "lab", "--remove", "c")
    # Recorded, a's fifth pod waits for two minutes; a replay takes back at once what a is guaranteed: 50 from 10:10 on.
    # Without c there is nothing to borrow: a has its 40 and b its 10.
    assert found["a/q", "delivered_gpu_hours"] == (
        gpu_hours((40, 12), (50, 18)),
        gpu_hours((40, 10), (50, 20)),
        gpu_hours((40, 30)),
    )
    assert found["b/q", "delivered_gpu_hours"] == (
        gpu_hours((40, 12), (30, 18)),
        gpu_hours((40, 10), (30, 20)),
        gpu_hours((10, 30)),
    )
    assert found["b/q", "borrowed_gpu_hours"] == (gpu_hours((30, 12), (20, 18)), gpu_hours((30, 10), (20, 20)), 0)
    assert found["c/q", "lent_gpu_hours"] == (gpu_hours((30, 30)), gpu_hours((30, 30)), None)
    assert found["c/q", "guaranteed_gpu_hours"][2] is None


def test_a_min_that_covers_what_was_borrowed_takes_pods_out_of_reach(outcomes):
    found = outcomes("--cluster", "lab", "--set", "quota.b.min=40")
    # b's four pods are in quota then; a's fifth finds 80 GB in use and no part of what is over: all is guaranteed and requested.
    assert found["b/q", "delivered_gpu_hours"][2] == gpu_hours((40, 30))
    assert found["a/q", "delivered_gpu_hours"][2] == gpu_hours((40, 30))
    assert found["b/q", "over_quota_gpu_hours"] == (gpu_hours((30, 12), (20, 18)), gpu_hours((30, 12), (20, 18)), 0)
    # Three of b's pods are over quota at 10:10, when a's fifth pod waits for its fair share.
    assert found["b/q", "exposed_pod_count"] == (3, 3, 0)


def test_the_announced_pod_order_changes_who_is_over_quota(outcomes):
    key = ("team/q", "over_quota_gpu_hours")
    # Older first: 20 GB in quota, then 10 over. Younger first: 10 in quota, then 20 over.
    assert outcomes("--cluster", "order", "--pod-order=-creation")[key] == (
        gpu_hours((10, 30)),
        gpu_hours((10, 30)),
        gpu_hours((20, 30)),
    )


def test_scheduler_plugins_exposes_whoever_borrows_and_labels_nobody(outcomes):
    found = outcomes("--cluster", "plugins", "--set", "quota.right.min=3")
    # left's pod is within its min, so each of right's three may go; with 3 guaranteed none may.
    assert found["right/q", "exposed_pod_count"] == (3, 3, 0)
    assert found["right/q", "over_quota_gpu_hours"] == (None, None, None)
    # In a replay left has its GPU, and right has 1 of its own and 1 that left does not use.
    assert found["right/q", "delivered_gpu_hours"] == (1.5, 1, 1.5)
    assert found["left/q", "delivered_gpu_hours"] == (0, 0.5, 0)


def test_a_node_more_serves_who_waits_and_what_is_held_outside_is_not_there(outcomes):
    # Four of the five GPUs are there for queues: 2 each. With five more x has all six that it requests.
    found = outcomes("--cluster", "kai", "--add-nodes", "1")
    assert found["x", "delivered_gpu_hours"] == (1, 1, 3)
    assert found["y", "delivered_gpu_hours"] == (1, 1, 1)
    assert outcomes("--cluster", "kai", "--add-gpus", "3")["x", "delivered_gpu_hours"] == (1, 1, 2.5)


def test_a_removed_queue_does_not_run(outcomes):
    found = outcomes("--cluster", "kai", "--remove", "y")
    assert (found["x", "delivered_gpu_hours"][2], found["y", "delivered_gpu_hours"][2]) == (2, 0)


def test_a_change_to_what_it_was_changes_nothing(outcomes):
    found = outcomes("--set", "quota.b.min=10", "--set", "quota.x.quota=2", "--pod-order", "creation,priority,request")
    same = {key: values[1:] for key, values in found.items() if key[1] != "replay_error_gpu_hours"}
    assert all(replayed == changed for replayed, changed in same.values())


def test_half_a_window_and_the_other_half_are_the_whole(outcomes):
    cut = "2026-11-20T10:12:00Z"
    whole, first, second = (
        outcomes("--cluster", "lab", "--set", "quota.a.max=45", window=["--since", since, "--until", until])
        for since, until in ((WINDOW[1], WINDOW[3]), (WINDOW[1], cut), (cut, WINDOW[3]))
    )
    for key, values in whole.items():
        if key[1].endswith(("_gpu_hours", "_seconds")) and key[1] != "replay_error_gpu_hours":
            assert [a + b for a, b in zip(first[key], second[key], strict=True)] == pytest.approx(list(values), abs=1e-9), key


def test_a_terminal_shows_what_is_named_or_differs_and_says_what_cannot_be_known(run_whatif):
    code, out, err = run_whatif("--cluster", "kai", "--set", "quota.x.quota=4")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("No quota would have waited less or more.\n")
    assert lines[1] == ["quota", "figure", "recorded", "replayed", "changed", "difference"]
    assert ["x", "guaranteed,", "GPU-h", "1", "1", "2", "+1"] in lines
    assert not any(line[0] == "y" for line in lines)  # both hold 2 of 4 as before, and guarantees are now more than there is
    assert "x: guaranteed is 4" in err
    assert "Demand stays as recorded" in err
    assert "kai: the fair share is reclaimed from queues above theirs" in err


@pytest.mark.parametrize(
    ("replayed", "sentence"),
    [
        ([], "No quota could be replayed."),
        ([(2.0, 1.0), (3.0, None)], "No quota would have waited less or more, as far as is known."),
        ([(2.0, 1.0), (3.0, 3.0)], "No quota would have waited less or more."),
    ],
)
def test_a_wait_that_is_unknown_is_not_said_to_be_the_same(replayed, sentence):
    rows = [
        {
            **dict.fromkeys(KEY, ""),
            "quota": str(number),
            "demanded_gpu_hours": demanded,
            "delivered_gpu_hours": had,
            "borrowed_gpu_hours": 0.0,
        }
        for number, (demanded, had) in enumerate(replayed)
    ]
    assert verdict(Answer(rows, rows, rows, {}, (), {}, {}, ())) == sentence


def test_the_verdict_tells_quotas_of_two_clusters_apart():
    """team waits 4 GPU-h in both; with the change 1 in east, and 6 in west, where it loses 2 of 3 borrowed ones."""
    key = {"system": "nos", "resource": "r", "flavor": "", "quota": "team", "demanded_gpu_hours": 10.0}
    before = [{**key, "cluster": name, "delivered_gpu_hours": 6.0, "borrowed_gpu_hours": 3.0} for name in ("east", "west")]
    after = [{**each, "delivered_gpu_hours": had} for each, had in zip(before, (9.0, 4.0), strict=True)]
    after[1]["borrowed_gpu_hours"] = 1.0
    assert verdict(Answer(before, before, after, {}, (), {}, {}, ())) == (
        "team (east) would have waited 3 GPU-hours less; team (west) would have waited 2 GPU-hours more; "
        "team (west) would have lost 2 of 3 borrowed GPU-hours."
    )


def test_past_use_of_a_cluster_that_is_not_asked_about_is_no_known_use():
    """East was asked about; recorded hours before the window are known of west alone."""
    row = {**dict.fromkeys(KEY, "q"), "cluster": "east", "system": "kai"}
    asked = Question(NO_CHANGE, cluster="east", rules=(("k_value", 1.0),)), Window(*map(parse_instant, WINDOW[1::2]))
    found = notes(Answer([row], [row], [row], {}, (), {}, {}, (), past_hours={"west": 24}), *asked)
    assert [note for _, note in found if "recorded use" in note] == [
        "kai: recorded use before the window, as far as facts are computed: none."
    ]


def test_an_hour_with_a_queue_of_unknown_use_is_no_known_past_use(monkeypatch):
    """Of the two hours before noon y's use is unknown in the second; in the first x used 4 of 8 GPU-h, and y none."""
    with connection(memory_limit="1GB", threads=1) as con:
        con.execute("""
            create schema facts;
            create table facts.node_allocation as select 'c' as cluster, 8e0 as gpu_count,
                timestamp '2026-11-20 10:00' as start_at, timestamp '2026-11-20 12:00' as end_at;
            create table facts.quota_hour as
                select 'c' as cluster, 'kai' as system, 'gpu' as resource, quota, used as delivered_native_hours,
                    timestamp '2026-11-20' + to_hours(hour) as hour_start_at
                from (values ('x', 10, 4e0), ('y', 10, 0e0), ('x', 11, 4e0), ('y', 11, null)) as _(quota, hour, used)
        """)
        monkeypatch.setattr(compare, "views", lambda *_, **__: ["facts.quota_hour", "facts.node_allocation"])
        monkeypatch.setattr(compare, "drop_if_exists", lambda *_: None)
        noon = Window(*map(parse_instant, ("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z")))
        found = compare.past_use(con, None, noon, replace(DEFAULT_RULES, k_value=1.0))
    assert found == {"c": [(datetime(2026, 11, 20, 11, tzinfo=UTC).timestamp() * 1000, {"x": 4, "y": 0}, 8)]}


def test_json_holds_the_question_the_assumptions_and_all_outcomes_and_is_the_same_when_asked_again(run_whatif):
    arguments = ("--cluster", "lab", "--set", "quota.b.max=5", "-o", "json")
    code, out, err = run_whatif(*arguments)
    assert run_whatif(*arguments) == (code, out, err)
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert (answer["asked"], answer["doubts"]) == (["b: cap is 5"], ["b/q: max 5 is below min 10"])
    assert list(answer["assumptions"]) == ["nos"]
    assert answer["uncounted_pods"] == {"nvidia.com/gpu-10gb": 1}
    assert len(answer["unknowable"]) == 4
    assert {row["quota"] for row in answer["outcomes"]} == {"a/q", "b/q", "c/q"}


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ([], 2, "--nodes, --wait-below, --idle-timeout, --return-idle or --mig"),
        (
            ["--set", "quota.z.min=1"],
            2,
            "there is no quota 'z' in the window; there are a/q, b/q, c/q, left/q, right/q, team/q, x, y",
        ),
        (["--set", "quota.q.min=1"], 2, "several quotas 'q': a/q, b/q, c/q, left/q, right/q, team/q; name one of them in full"),
        (["--remove", "quota.z"], 2, "there is no quota 'z'"),
        (["--set", "quota.a.min=much"], 2, "'much' is not a number"),
        (["--set", "quota.a.min=-3"], 2, "-3 is not possible"),
        (["--set", "a=3"], 2, "is not quota.NAME.TERM=VALUE"),
        (["--set", "quota.a.min[nvidia.com/gpu]=3"], 2, "'a/q' has no 'nvidia.com/gpu'; it has nos.nebuly.com/gpu-memory"),
        (["--add-gpus", "-1"], 2, "--add-gpus -1 is not possible"),
        (["--add-gpus", "nan"], 2, "--add-gpus nan is not possible"),
        (["--add-nodes", "1"], 2, "quotas in kai, lab, order, plugins; choose the cluster that gets GPUs with --cluster"),
        (["--pod-order", "age"], 2, "'age' does not order pods"),
        (["--add-nodes", "1", "--cluster", "elsewhere"], 1, "the lake has no quota with pods"),
        (["--add-nodes", "1", "--system", "kueue"], 1, "the lake has no quota with pods"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(run_whatif, arguments, code, why):
    got, out, err = run_whatif(*arguments)
    assert (got, out) == (code, "")
    assert why in err
    assert err.count("\n") == 1


def test_the_recorded_cluster_of_all_systems(tmp_path, capsys):
    # KAI's queues report 3 and 8 of 10 each, with quotas of 2 and weights 1:4. KAI counts 6 GPUs, 7 instances of one slice and
    # 2 of three: of 19 the second gets its 10 and the first the other 9; with 4 more both have 10. The demand of Kueue's and
    # Volcano's queues is unknown.
    window = ["--since", "2026-11-21", "--cluster", "rec", "--lake", str(tmp_path)]
    assert (
        main(["import", "--kubernetes", str(RECORDING), "--cluster", "rec", "--lake", str(tmp_path)], {}, NOW_OF_RECORDING) == 0
    )
    capsys.readouterr()
    assert main(["whatif", *window, "--add-gpus", "4", "-o", "json"], {}, NOW_OF_RECORDING) == 0
    answer = json.loads(capsys.readouterr().out)
    delivered = {
        (row["system"], row["quota"]): (row["recorded"], row["replayed"], row["changed"])
        for row in answer["outcomes"]
        if row["figure"] == "delivered_gpu_hours"
    }
    quarter = 0.25  # one snapshot is valid for 15 minutes
    assert delivered["kai", "kai-team-a"] == (3 * quarter, 9 * quarter, 10 * quarter)
    assert delivered["kai", "kai-team-b"] == (8 * quarter, 10 * quarter, 10 * quarter)
    assert delivered["kueue", "cq-research"] == (7 * quarter, None, None)
    left_out = {(each["system"], each["reason"], each["seconds"]) for each in answer["left_out"]}
    assert {("kueue", "demand_unknown", 900), ("volcano", "demand_unknown", 900)} <= left_out
    assert list(answer["assumptions"]) == ["kai", "koordinator", "kubernetes", "nos"]


def imported(folder, minutes, nodes, quotas, pods):
    """A lake of snapshots at minutes after 10:00; ``pods(minute)`` are there."""
    for minute in minutes:
        state, at = folder / str(minute), datetime(2026, 11, 20, 10, tzinfo=UTC) + timedelta(minutes=minute)
        state.mkdir()
        (state / "pods.json").write_text(listed("Pod", "v1", pods(minute)))
        (state / "nodes.json").write_text(listed("Node", "v1", nodes))
        (state / "quotas.json").write_text(listed(*quotas))
        arguments = ["--observed-at", at.isoformat(), "--cluster", "lab", "--lake", str(folder / "lake")]
        assert main(["import", "--kubernetes", str(state), *arguments], environ={}, now=NOW) == 0
    return ["--lake", str(folder / "lake")]


def figures(capsys, *arguments):
    """By figure, then by quota, what is recorded, replayed and changed."""
    capsys.readouterr()
    assert main(["whatif", *arguments, "-o", "json"], environ={}, now=NOW) == 0
    found = {}
    for row in json.loads(capsys.readouterr().out)["outcomes"]:
        found.setdefault(row["figure"], {})[row["quota"]] = (row["recorded"], row["replayed"], row["changed"])
    return found


REPLICAS = {"nvidia.com__gpu": 8}, {"nvidia.com__gpu.replicas": "4"}
INSTANCES = {"nvidia.com__gpu": 3, "nvidia.com__mig-3g.40gb": 2}, {}


@pytest.mark.parametrize(("parts", "third"), [(REPLICAS, 4), (INSTANCES, 2)], ids=["replicas", "instances"])
def test_a_node_more_has_whole_gpus(tmp_path, capsys, parts, third):
    """Two of three nodes have 8 replicas of 2 GPUs: a node more has the 4 GPUs of the third. Or the two have 3 GPUs and a fourth
    as two instances, which leave a slice: a node more has 4."""
    allocatable, labels = parts
    nodes = [node(**allocatable), node(**allocatable), node(**{"nvidia.com__gpu": third})]
    for each, name in zip(nodes, ("parts-0", "parts-1", "n1"), strict=True):
        each["metadata"] = named(name, **(labels if name != "n1" else {}))
    queue = {"metadata": named("q"), "spec": {"resources": {"gpu": {"quota": 2, "overQuotaWeight": 1, "limit": -1}}}}
    pods = [pod("q", "p", GPU, **{"kai.scheduler__queue": "q"})]
    lake = imported(tmp_path, (0, 15), nodes, ("Queue", "scheduling.run.ai/v2", [queue]), lambda minute: pods)
    capsys.readouterr()
    assert main(["whatif", *WINDOW, "--add-nodes", "1", *lake, "-o", "json"], environ={}, now=NOW) == 0
    assert json.loads(capsys.readouterr().out)["added_gpus"] == 4


def test_a_node_more_is_of_the_cluster_with_quotas(tmp_path, capsys):
    """Its one node has 4 GPUs; a cluster without quotas has two nodes with 8."""
    queue = {"metadata": named("q"), "spec": {"resources": {"gpu": {"quota": 2, "overQuotaWeight": 1, "limit": -1}}}}
    pods = [pod("q", "p", GPU, **{"kai.scheduler__queue": "q"})]
    quotas = ("Queue", "scheduling.run.ai/v2", [queue])
    lake = imported(tmp_path, (0, 15), [node(**{"nvidia.com__gpu": 4})], quotas, lambda minute: pods)
    large = [{**node(**{"nvidia.com__gpu": 8}), "metadata": named(name)} for name in ("n1", "n2")]
    (tmp_path / "0/nodes.json").write_text(listed("Node", "v1", large))
    (tmp_path / "0/quotas.json").unlink()
    state = ["--kubernetes", str(tmp_path / "0"), "--observed-at", "2026-11-20T10:00:00Z"]
    assert main(["import", *state, "--cluster", "large", *lake], environ={}, now=NOW) == 0
    capsys.readouterr()
    assert main(["whatif", *WINDOW, "--add-nodes", "1", *lake, "-o", "json"], environ={}, now=NOW) == 0
    assert json.loads(capsys.readouterr().out)["added_gpus"] == 4


def test_a_node_more_has_no_gpu_twice_where_the_layout_changes():
    """From the second day on one of 8 GPUs is seven instances: 7 whole GPUs and that one are 8, and not 9."""
    with connection() as con:
        con.execute("""
            create schema if not exists day;
            create schema if not exists lake;
            create table day.quota_node as
            select 'lab' as cluster, 'n1' as node_name, *, start_at + 1 as end_at from (select unnest([
                {'resource': 'nvidia.com/gpu', 'allocatable_native': 8e0, 'start_at': date '2026-11-20'},
                {'resource': 'nvidia.com/gpu', 'allocatable_native': 7e0, 'start_at': date '2026-11-21'},
                {'resource': 'nvidia.com/mig-1g.10gb', 'allocatable_native': 7e0, 'start_at': date '2026-11-21'}
            ], recursive := true));
            create table day.quota_native as select '' as system, map([resource], [allocatable_native])::text as requests,
                if(contains(resource, '/mig-'), 1e0, allocatable_native) as amount_gpus
            from day.quota_node;
            create table day.kube_series (cluster varchar, node_name varchar, replicas varchar);
            create table lake.node (cluster varchar, node_name varchar, labels map(varchar, varchar));
        """)
        assert compare._added_gpus(con, Question(NO_CHANGE, added_nodes=1), ["lab"]) == 8


def test_kais_lower_priority_has_what_rounding_left_of_the_higher(tmp_path, capsys):
    """14 GPUs, quotas of 4, everybody requests 6. The higher priority shares the 2 that are left by weights 1:2, in whole GPUs 0
    and 1; the last goes to the lower one. For six hours that is 24, 30 and 30 GPU-h, here for half an hour a twelfth of it.
    """
    terms = [("q0", 1, 200), ("q1", 2, 200), ("q2", 1, 100)]
    queues = [
        {
            "metadata": named(name),
            "spec": {"priority": first, "resources": {"gpu": {"quota": 4, "overQuotaWeight": w, "limit": -1}}},
        }
        for name, w, first in terms
    ]
    held = {"q0": 4, "q1": 5, "q2": 5}
    pods = [
        pod(name, f"p{n}", GPU, bound=OLD if n < held[name] else None, **{"kai.scheduler__queue": name})
        for name in held
        for n in range(6)
    ]
    quotas = ("Queue", "scheduling.run.ai/v2", queues)
    lake = imported(tmp_path, (0, 15), [node(**{"nvidia.com__gpu": 14})], quotas, lambda minute: pods)
    found = figures(capsys, *WINDOW, "--set", "quota.q2.limit=none", *lake)
    assert found["fair_share_gpu_hours"] == {"q0": (2,) * 3, "q1": (2.5,) * 3, "q2": (2.5,) * 3}
    assert found["over_entitlement_gpu_hours"] == dict.fromkeys(held, (0,) * 3)
    assert found["replay_error_gpu_hours"] == dict.fromkeys(held, (None, 0, None))


def test_noss_hours_are_replayed_as_they_were_and_no_pod_enters_by_a_part_of_it(tmp_path, capsys):
    """GB by hour of a (min 64) and b (64), c's 32 idle, pods of 32 (a GPU): 0 and 128; 32 and 128; 64 and 96, one of b's had to
    go; then a's third waits, 96 > 64 and 160 are all. With a min of 96 there are 192: b's stays until a's third takes its place.
    """
    hours = [f"{DAY}T{10 + n}:00:00Z" for n in range(4)]

    def pods(minute):
        there = [pod("b", f"b{n}", GPU) for n in range(3)]
        there += [pod("b", "b3", GPU, ended=hours[2] if minute >= 120 else None)]
        there += [pod("a", f"a{n}", GPU, hours[n], hours[n] if n < 3 else None) for n in (1, 2, 3) if minute >= 60 * n]
        return [*there, *([pod("b", "b4", GPU, hours[2], None)] if minute >= 120 else [])]

    quotas = ("ElasticQuota", "nos.nebuly.com/v1alpha1", [elastic("a", 64), elastic("b", 64), elastic("c", 32)])
    lake = imported(tmp_path, range(0, 240, 15), [node(**{"nvidia.com__gpu": 8})], quotas, pods)
    found = figures(capsys, "--since", hours[0], "--until", f"{DAY}T14:00:00Z", "--set", "quota.a.min=96", *lake)
    assert found["delivered_gpu_hours"] == {"a/q": (5, 5, 6), "b/q": (14, 14, 15), "c/q": (0, 0, 0)}
    assert found["replay_error_gpu_hours"] == {f"{name}/q": (None, 0, None) for name in "abc"}
    assert found["borrowed_gpu_hours"]["b/q"] == (6, 6, 7)


def test_kai_counts_what_was_used_before_the_window(tmp_path, capsys):
    """x held all four GPUs in the hour before. At midnight both request four: without past use 2 and 2.

    U is 1 and 0, W a half each: shares of 0.5 + (0.5 - 1) = 0 and 0.5 + 0.5 = 1, so 0 and 4 GPUs.
    """
    held = [pod("x", f"x{n}", GPU, OLD, "2026-11-20T23:00:00Z", **{"kai.scheduler__queue": "x"}) for n in range(4)]
    waiting = [pod("y", f"y{n}", GPU, "2026-11-21T00:00:00Z", None, **{"kai.scheduler__queue": "y"}) for n in range(4)]
    resources = {"gpu": {"quota": 0, "overQuotaWeight": 1, "limit": -1}}
    queues = [{"metadata": named(name), "spec": {"resources": resources}} for name in "xy"]
    lake = ["--lake", str(tmp_path / "lake")]
    for number in range(8):
        at = datetime(2026, 11, 20, 23, tzinfo=UTC) + timedelta(minutes=15 * number)
        state = tmp_path / str(number)
        state.mkdir()
        (state / "pods.json").write_text(listed("Pod", "v1", held if at.hour == 23 else held + waiting))
        (state / "nodes.json").write_text(listed("Node", "v1", [node(**{"nvidia.com__gpu": 4})]))
        (state / "quotas.json").write_text(listed("Queue", "scheduling.run.ai/v2", queues))
        snapshot = ["--observed-at", at.isoformat(), "--cluster", "lab"]
        assert main(["import", "--kubernetes", str(state), *snapshot, *lake], environ={}, now=NOW_OF_RECORDING) == 0
    assert main(["compute", "--date", "2026-11-20", *lake], environ={}, now=NOW_OF_RECORDING) == 0
    window = ["--since", "2026-11-21T00:00:00Z", "--until", "2026-11-21T01:00:00Z", "-o", "json", *lake]
    found = {}
    for hours in ("168", "0"):
        capsys.readouterr()
        rules = ["--set", "kai.kValue=1", "--set", f"kai.windowHours={hours}"]
        assert main(["whatif", *window, *rules], environ={}, now=NOW_OF_RECORDING) == 0
        rows = json.loads(capsys.readouterr().out)["outcomes"]
        delivered = {row["quota"]: (row["replayed"], row["changed"]) for row in rows if row["figure"] == "delivered_gpu_hours"}
        found[hours] = delivered
    assert found == {"168": {"x": (2, 0), "y": (2, 4)}, "0": {"x": (2, 2), "y": (2, 2)}}
    before_all_facts = ["--since", "2026-11-20", "--until", "2026-11-21T01:00:00Z", "--set", "kai.kValue=1", *lake]
    assert main(["whatif", *before_all_facts], environ={}, now=NOW_OF_RECORDING) == 0


@pytest.mark.parametrize(("may_reclaim", "delivered"), [(True, {"a": 2, "b": 2}), (False, {"a": 4, "b": 0})])
def test_nothing_is_taken_from_a_queue_of_volcano_that_is_not_reclaimable(tmp_path, capsys, may_reclaim, delivered):
    """a has all 8 GPUs and deserves 4; b deserves 4 and waits for them. Half an hour."""
    spec = {"weight": 1, "deserved": {GPU: "4"}, "reclaimable": may_reclaim}
    held = [pod("a", f"a{n}", GPU, amount=4, **{"volcano.sh__queue-name": "a"}) for n in range(2)]
    waiting = pod("b", "b", GPU, bound=None, amount=4, **{"volcano.sh__queue-name": "b"})
    quotas = ("Queue", "scheduling.volcano.sh/v1beta1", [{"metadata": named(name), "spec": spec} for name in "ab"])
    lake = imported(tmp_path, (0, 15), [node(**{"nvidia.com__gpu": 8})], quotas, lambda minute: [*held, waiting])
    found = figures(capsys, *WINDOW, "--set", "quota.b.weight=2", *lake)["delivered_gpu_hours"]
    assert {name: replayed for name, (_, replayed, _) in found.items()} == delivered


def test_two_days_of_kube_state_metrics_are_the_sum_of_the_days(tmp_path, capsys):
    """Of four GPUs a holds two until 03:30, when no snapshot is near, and from noon until 03:00; b waits for three from 18:00 on.

    Guaranteed are 1 and 3: a is delivered 2 x (3.5 + 12) and 2 x 3 GPU-h, b 0 and 3 x 3 until 06:00, and lacks 3 x 6 and 3 x 3.
    """
    start, lake = datetime(2026, 11, 19, tzinfo=UTC), ["--lake", str(tmp_path / "lake")]
    days = [(start + timedelta(days=number)).isoformat() for number in range(3)]
    pods = [
        ("a", "first", 2, "2026-11-18T12:00:00Z", -12.0, 3.5),
        ("a", "second", 2, "2026-11-19T12:00:00Z", 12.0, 27.0),
        ("b", "third", 3, "2026-11-19T18:00:00Z", 27.0, 30.0),
    ]
    lines = []
    for five_minutes in range(12 * 48):
        hours, at = five_minutes / 12, int(start.timestamp()) + 300 * five_minutes
        lines.append(f'kube_node_status_allocatable{{node="n1",resource="nvidia_com_gpu"}} 4 {at}')
        for namespace, name, amount, created, bound_at, ended_at in pods:
            since = datetime.fromisoformat(created)
            if not since.timestamp() <= at < start.timestamp() + 3600 * ended_at:
                continue
            labels = f'namespace="{namespace}",pod="{name}",uid="{namespace}-{name}"'
            lines.append(f"kube_pod_info{{{labels}}} 1 {at}")
            lines.append(f"kube_pod_created{{{labels}}} {int(since.timestamp())} {at}")
            request = f'{labels},container="main",resource="nvidia_com_gpu"'
            lines.append(f"kube_pod_container_resource_requests{{{request}}} {amount} {at}")
            lines += [
                f'kube_pod_status_phase{{{labels},phase="{phase}"}} {int((phase == "Running") == (hours >= bound_at))} {at}'
                for phase in ("Pending", "Running")
            ]
            if hours >= bound_at:
                lines.append(f"kube_pod_status_scheduled_time{{{labels}}} {int(start.timestamp() + 3600 * bound_at)} {at}")
    names = sorted({line.partition("{")[0] for line in lines})
    families = (f"# TYPE {name} gauge\n" + "\n".join(line for line in lines if line.startswith(f"{name}{{")) for name in names)
    (tmp_path / "kube.om").write_text("\n".join([*families, "# EOF\n"]))
    assert main(["import", str(tmp_path / "kube.om"), "--cluster", "lab", *lake], {}, NOW_OF_RECORDING) == 0
    for day, there in zip(days, (pods[:1], pods[1:], ()), strict=True):
        state = tmp_path / day[:10]
        state.mkdir()
        shown = [
            pod(namespace, name, GPU, created, created if name != "third" else None, amount=amount)
            for namespace, name, amount, created, _, _ in there
        ]
        (state / "pods.json").write_text(listed("Pod", "v1", shown))
        (state / "quotas.json").write_text(
            listed("ElasticQuota", "scheduling.x-k8s.io/v1alpha1", [guaranteed("a", 1), guaranteed("b", 3)])
        )
        snapshot = ["--kubernetes", str(state), "--observed-at", day, "--cluster", "lab"]
        assert main(["import", *snapshot, *lake], {}, NOW_OF_RECORDING) == 0

    def outcomes_of(since, until):
        capsys.readouterr()
        window = ["--since", since, "--until", until, "--set", "quota.b.min=1", "-o", "json"]
        assert main(["whatif", *window, *lake], environ={}, now=NOW_OF_RECORDING) == 0
        rows = json.loads(capsys.readouterr().out)["outcomes"]
        return {(row["quota"], row["figure"]): [row[name] for name in ("recorded", "replayed", "changed")] for row in rows}

    whole, *parts = outcomes_of(days[0], days[2]), outcomes_of(days[0], days[1]), outcomes_of(days[1], days[2])
    assert [part["a/q", "delivered_gpu_hours"][0] for part in (*parts, whole)] == [31, 6, 37]
    assert [part["b/q", "delivered_gpu_hours"][0] for part in (*parts, whole)] == [0, 9, 9]
    assert [part["b/q", "unmet_gpu_hours"][0] for part in (*parts, whole)] == [18, 9, 27]
    for key, values in whole.items():
        if key[1].endswith(("_gpu_hours", "_seconds")):
            added = [None if a is None else a + b for a, b in zip(parts[0][key], parts[1][key], strict=True)]
            assert added == [value if value is None else pytest.approx(value, abs=1e-9) for value in values], key
