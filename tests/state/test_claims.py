"""Claims of shapes that no recording holds."""

from typing import Any

from gpureport.collect.state.dra import claim_consumer_rows, claim_device_rows, claim_row

NAMED = {"metadata": {"name": "c", "namespace": "ns", "uid": "u1"}}


def claim(requests: Any = None, **status: Any) -> dict[str, Any]:
    return {**NAMED, "spec": {"devices": {"requests": requests}}, "status": status}


def test_null_requests_and_no_status_are_an_empty_claim() -> None:
    row = claim_row(claim(None))
    assert (row["requests"], row["is_allocated"], row["allocated_at"], row["node_name"]) == ([], False, None, "")
    assert list(claim_device_rows({**NAMED})) == list(claim_consumer_rows({**NAMED, "status": None})) == []


def test_a_count_that_is_left_out_is_one_and_all_has_none() -> None:
    asked = [{"name": "a", "exactly": {"deviceClassName": "g"}}, {"name": "b", "exactly": {"allocationMode": "All"}}]
    assert [(each["request"], each["device_count"]) for each in claim_row(claim(asked))["requests"]] == [("a", 1), ("b", None)]


def test_a_pool_with_slashes_stays_whole() -> None:
    result = {"request": "r", "driver": "d.io", "pool": "zone/rack/1", "device": "gpu-0"}
    [row] = claim_device_rows(claim(allocation={"devices": {"results": [result]}}))
    assert (row["driver"], row["pool"], row["device"]) == ("d.io", "zone/rack/1", "gpu-0")


def test_a_group_of_pods_is_a_consumer_of_its_own_kind() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "g1"}
    [row] = claim_consumer_rows(claim(reservedFor=[group]))
    assert (row["consumer_resource"], row["consumer_group"], row["consumer"], row["consumer_uid"]) == (
        "podgroups",
        "scheduling.k8s.io",
        "train",
        "g1",
    )


def test_an_allocation_that_several_nodes_can_reach_has_no_node() -> None:
    def term(*names: str) -> dict[str, Any]:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}

    def node(*terms: dict[str, Any]) -> str:
        return str(claim_row(claim(allocation={"nodeSelector": {"nodeSelectorTerms": list(terms)}}))["node_name"])

    assert node(term("n1")) == "n1"
    assert node(term("n1", "n2")) == node(term("n1"), term("n2")) == node() == ""


def test_the_extended_resource_claim_is_marked() -> None:
    made = {"metadata": {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}}
    assert claim_row(made)["is_extended_resource"] is True
    assert claim_row(claim())["is_extended_resource"] is False
