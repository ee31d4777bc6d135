"""What quota objects of every system say of each resource, in the same words."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from gpureport.collect.sources.kubernetes.cluster import decode_list
from gpureport.collect.state.fields import Row
from gpureport.collect.state.kinds import KINDS, Kind
from gpureport.collect.state.quota_terms import quota_term_rows
from gpureport.values.runtime.resources import QUERIES

RECORDING = QUERIES.parent / "data" / "fixtures" / "k8s-1.36-recording"
BY_NAME = {kind.name: kind for kind in KINDS}


def rows(kind: str, found: dict[str, Any]) -> list[Row]:
    return [
        {name: value for name, value in row.items() if value not in (None, "", [])}
        for row in quota_term_rows(BY_NAME[kind], found)
    ]


def recorded(file: str, kind: Kind) -> dict[tuple[str, str], Row]:
    items = json.loads((RECORDING / f"{file}.json").read_text())["items"]
    return {(row["quota"], row.get("resource", "")): row for item in items for row in rows(kind.name, item)}


def values_of(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def test_nos_quotas_govern_their_namespace_and_composites_those_they_list() -> None:
    elastic = recorded("nos-elasticquotas", BY_NAME["elasticquotas.nos.nebuly.com"])
    composite = recorded("nos-compositeelasticquotas", BY_NAME["compositeelasticquotas.nos.nebuly.com"])
    memory = "nos.nebuly.com/gpu-memory"
    assert values_of(elastic["research/quota-a", memory], "guaranteed", "cap", "delivered", "namespaces") == (
        40,
        None,
        64,
        ["research"],
    )
    assert values_of(elastic["serving/quota-b", memory], "guaranteed", "cap", "delivered", "namespaces") == (
        10,
        None,
        57,
        ["serving"],
    )
    found = values_of(composite["data/quota-c", memory], "guaranteed", "cap", "delivered", "namespaces")
    assert found == (30, 70, 64, ["data", "notebooks"])


def test_koordinator_says_its_fair_share_and_request_in_annotations() -> None:
    quotas = recorded("koordinator-elasticquotas", BY_NAME["elasticquotas.scheduling.sigs.k8s.io"])
    row = quotas["team-data", "koordinator.sh/gpu-core"]
    assert values_of(row, "guaranteed", "cap", "weight", "delivered", "demanded", "fair_share") == (200, 400, 400, 250, 250, 250)
    assert values_of(row, "parent", "is_parent", "may_lend", "namespaces") == ("koordinator-root-quota", False, True, None)


@pytest.mark.parametrize(
    ("child", "min_gpus", "demanded"),
    [('{"nvidia.com/gpu": "1"}', 4, 1), ("null", 4, 0), (None, 4, 4), ('{"nvidia.com/gpu": "6"}', 4, 6), ("null", None, 4)],
)
def test_koordinators_demand_is_without_the_min_that_a_quota_does_not_lend(child: str, min_gpus: Any, demanded: float) -> None:
    """The scheduler raises request to min where a quota does not lend; child-request is what its pods or children request.

    Older versions do not write it. The root quota, without min, has only request.
    """
    written = {"request": f'{{"nvidia.com/gpu": "{max(4, demanded)}"}}'} | ({} if child is None else {"child-request": child})
    annotations = {f"quota.scheduling.koordinator.sh/{name}": each for name, each in written.items()}
    labels = {"quota.scheduling.koordinator.sh/allow-lent-resource": "false"}
    spec = {"max": {"nvidia.com/gpu": 8}} | ({} if min_gpus is None else {"min": {"nvidia.com/gpu": min_gpus}})
    found = {"metadata": {"name": "a", "labels": labels, "annotations": annotations}, "spec": spec}
    (row,) = quota_term_rows(BY_NAME["elasticquotas.scheduling.sigs.k8s.io"], found)
    assert row["demanded"] == demanded


@pytest.mark.parametrize(
    ("least", "annotated", "guaranteed"),
    [
        ("two", "{}", None),
        ("0", '{"nvidia.com/gpu": 2}', 2),
        ("4", '{"nvidia.com/gpu": 2}', 4),
        (None, '{"nvidia.com/gpu": 3}', 3),
    ],
)
def test_koordinators_guarantee_is_the_larger_amount_and_unknown_where_min_is_no_quantity(
    least: str | None, annotated: str, guaranteed: float | None
) -> None:
    metadata = {"name": "a", "annotations": {"quota.scheduling.koordinator.sh/guaranteed": annotated}}
    spec = {"min": {} if least is None else {"nvidia.com/gpu": least}, "max": {"nvidia.com/gpu": 8}}
    (row,) = quota_term_rows(BY_NAME["elasticquotas.scheduling.sigs.k8s.io"], {"metadata": metadata, "spec": spec})
    assert row["guaranteed"] == guaranteed


@pytest.mark.parametrize(("written", "weight"), [('{"cpu": 2}', 0), ('{"nvidia.com/gpu": 3}', 3), ('{"cpu": 0}', 4), ("{}", 4)])
def test_max_is_the_weight_only_where_koordinators_quota_has_no_weight_at_all(written: str, weight: float) -> None:
    """A resource that the weights of a quota leave out has the weight 0: GetSharedWeight takes the annotation as a whole."""
    metadata = {"name": "a", "annotations": {"quota.scheduling.koordinator.sh/shared-weight": written}}
    (row, *_) = (
        row
        for row in quota_term_rows(
            BY_NAME["elasticquotas.scheduling.sigs.k8s.io"], {"metadata": metadata, "spec": {"max": {"nvidia.com/gpu": 4}}}
        )
        if row["resource"] == "nvidia.com/gpu"
    )
    assert row["weight"] == weight


@pytest.mark.parametrize("written", ["", "{", "5", "[" * 100_000], ids=["nothing", "cut off", "a number", "100,000 lists"])
def test_an_annotation_of_koordinator_that_is_no_list_of_resources_says_nothing(written: str) -> None:
    named = {f"quota.scheduling.koordinator.sh/{name}": written for name in ("runtime", "namespaces")}
    kind, quota = "elasticquotas.scheduling.sigs.k8s.io", {"spec": {"max": {"nvidia.com/gpu": 4}}}
    is_of_koordinator = {"labels": {"quota.scheduling.koordinator.sh/parent": "root"}}
    (row,) = rows(kind, quota | {"metadata": {"name": "a", "annotations": named} | is_of_koordinator})
    assert values_of(row, "cap", "fair_share", "namespaces") == (4, None, None)


def test_kueue_queues_have_their_reservations_and_limits_per_flavor() -> None:
    queues = recorded("kueue-clusterqueues", BY_NAME["clusterqueues.kueue.x-k8s.io"])
    research, serving = queues["cq-research", "nvidia.com/gpu"], queues["cq-serving", "nvidia.com/gpu"]
    names = ("guaranteed", "delivered", "weight", "lending_limit", "cap", "parent", "flavor")
    assert values_of(research, *names) == (5, 7, 1, None, None, "cohort/all", "h100")
    assert values_of(serving, *names) == (5, 1, 1, 4, None, "cohort/all", "h100")


def test_kueue_v1beta1_names_the_cohort_otherwise() -> None:
    limits = {"name": "nvidia.com/gpu", "nominalQuota": 4, "borrowingLimit": "2", "lendingLimit": 1}
    spec = {"cohort": "all", "resourceGroups": [{"flavors": [{"name": "a100", "resources": [limits]}]}]}
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "old"}, "spec": spec}
    (row,) = rows("clusterqueues.kueue.x-k8s.io", queue)
    assert values_of(row, "parent", "guaranteed", "borrowing_limit", "lending_limit", "cap") == ("cohort/all", 4, 2, 1, 6)


def test_a_kueue_queue_outside_of_cohorts_cannot_go_beyond_its_nominal_quota() -> None:
    flavors = [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "4"}]}]
    (row,) = rows(
        "clusterqueues.kueue.x-k8s.io", {"metadata": {"name": "alone"}, "spec": {"resourceGroups": [{"flavors": flavors}]}}
    )
    assert values_of(row, "parent", "guaranteed", "cap") == (None, 4, 4)


def test_a_kueue_cohort_brings_its_own_quota_and_contains_queues() -> None:
    flavors = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "3"}]}]
    spec = {"parentName": "root", "fairSharing": {"weight": "2"}, "resourceGroups": [{"flavors": flavors}]}
    place, row = rows("cohorts.kueue.x-k8s.io", {"metadata": {"name": "all"}, "spec": spec})
    assert values_of(row, "quota", "parent", "is_parent", "guaranteed", "weight") == ("cohort/all", "cohort/root", True, 3, 2)
    assert values_of(place, "quota", "parent", "is_parent", "resource", "flavor") == (
        "cohort/all",
        "cohort/root",
        True,
        None,
        None,
    )


def test_a_kueue_cohort_without_quotas_of_its_own_has_a_place_in_the_tree() -> None:
    (place,) = rows("cohorts.kueue.x-k8s.io", {"metadata": {"name": "all"}, "spec": {"parentName": "root"}})
    assert values_of(place, "quota", "parent", "resource", "guaranteed") == ("cohort/all", "cohort/root", None, None)


def test_a_volcano_queue_without_a_guarantee_guarantees_nothing() -> None:
    queues = recorded("volcano-queues", BY_NAME["queues.scheduling.volcano.sh"])
    names = ("guaranteed", "deserved", "cap", "weight", "delivered")
    assert values_of(queues["vol-a", "nvidia.com/gpu"], *names) == (1, 2, 8, 1, 4)
    every, row = rows("queues.scheduling.volcano.sh", {"metadata": {"name": "b"}, "spec": {"capability": {"nvidia.com/gpu": 8}}})
    assert values_of(row, *names) == (0, None, 8, 1, None)
    assert values_of(every, "quota", "resource", *names) == ("b", None, 0, None, None, 1, None)  # its weight, for all others too


def test_kai_says_minus_one_for_no_limit_and_nothing_for_a_limit_of_nothing() -> None:
    queues = recorded("kai-queues", BY_NAME["queues.scheduling.run.ai"])
    names = ("guaranteed", "cap", "weight", "priority", "delivered", "demanded", "display_name")
    assert values_of(queues["kai-team-a", "gpu"], *names) == (2, None, 1, 100, 3, 10, "Team A")
    assert values_of(queues["kai-team-b", "gpu"], *names) == (2, None, 4, 100, 8, 10, None)
    row, *_ = rows("queues.scheduling.run.ai", {"metadata": {"name": "c"}, "spec": {"resources": {"gpu": {"quota": -1}}}})
    assert values_of(row, "guaranteed", "cap", "weight") == (inf, 0, 0)


def test_a_kai_queue_without_resources_may_have_nothing() -> None:
    """Its children neither: they share its part, which is 0, and not the cluster."""
    names = ("quota", "parent", "resource", "guaranteed", "cap", "weight", "delivered", "demanded")
    for spec in ({"parentQueue": "all"}, {"parentQueue": "all", "resources": {}}):
        found = {"metadata": {"name": "p"}, "spec": spec, "status": {"requested": {"nvidia.com/gpu": "2"}}}
        row, *_ = rows("queues.scheduling.run.ai", found)
        assert values_of(row, *names) == ("p", "all", "gpu", 0, 0, 0, None, 2)


def test_kais_status_counts_devices_of_all_makers_and_claims_and_mig_instances_by_slices() -> None:
    """As KAI's SumGpuAllocation: 1.5 + 2 + 1 + 2 x 3."""
    amounts = {"nvidia.com/gpu": "1500m", "amd.com/gpu": "2", "gpu.nvidia.com": "1", "nvidia.com/mig-3g.40gb": "2", "cpu": "8"}
    found = {"metadata": {"name": "c"}, "spec": {"resources": {"gpu": {"quota": 4}}}, "status": {"allocated": amounts}}
    row, *_ = rows("queues.scheduling.run.ai", found)
    assert values_of(row, "delivered", "demanded") == (10.5, None)


def test_a_resource_quota_is_a_cap_and_no_guarantee() -> None:
    quotas = recorded("resourcequotas", BY_NAME["resourcequotas"])
    names = ("guaranteed", "cap", "delivered", "namespaces")
    assert values_of(quotas["research/gpu", "requests.nvidia.com/gpu"], *names) == (None, 24, 5, ["research"])
    assert values_of(quotas["serving/gpu", "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"], *names) == (
        None,
        6,
        2,
        ["serving"],
    )


def test_the_last_change_of_the_spec_is_the_last_write_that_was_not_of_the_status() -> None:
    managed = [
        {"time": "2026-11-20T10:00:00Z", "manager": "kubectl"},
        {"time": "2026-11-20T12:00:00Z", "manager": "controller", "subresource": "status"},
    ]
    found = {"metadata": {"name": "q", "namespace": "n", "managedFields": managed}, "spec": {"min": {"nvidia.com/gpu": 1}}}
    (row,) = rows("elasticquotas.nos.nebuly.com", found)
    assert row["changed_at"] == 1_795_168_800_000


def test_koordinators_scheduler_changes_no_terms_where_it_writes_its_figures() -> None:
    """It patches annotations and status of the object itself, not of the subresource, whenever use or runtime changes."""
    managed = [
        {"time": "2026-11-20T10:00:00Z", "manager": "kubectl", "operation": "Update"},
        {"time": "2026-11-20T12:00:00Z", "manager": "koord-scheduler", "operation": "Update"},
    ]
    body = {"items": [{"metadata": {"name": "q", "managedFields": managed}, "spec": {"max": {"nvidia.com/gpu": 1}}}]}
    (found,) = decode_list(json.dumps(body).encode(), "elasticquotas")["items"]
    (row,) = rows("elasticquotas.scheduling.sigs.k8s.io", found)
    assert row["changed_at"] == 1_795_168_800_000


@pytest.mark.parametrize("kind", sorted(kind.name for kind in KINDS if kind.quota_system))
@pytest.mark.parametrize("odd", [None, [], "x", 3, {"resourceGroups": [None, {"flavors": [3, {"resources": [{}, None]}]}]}])
def test_an_object_of_another_shape_says_nothing_rather_than_failing(kind: str, odd: object) -> None:
    found = {
        "metadata": {"name": "q", "annotations": {"quota.scheduling.koordinator.sh/request": "{"}},
        "spec": odd,
        "status": odd,
    }
    assert [row for row in quota_term_rows(BY_NAME[kind], found) if row.get("guaranteed")] == []
