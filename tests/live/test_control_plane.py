"""What a run against a real API server, scheduler and three metric servers showed to be wrong, each with the test that holds it.

No package of a registry has a kube-apiserver, so its recorded answers and cases worked out by hand are tested in its place.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HELD: dict[str, tuple[str, ...]] = {
    "1 a GPU given out by an extended resource is one GPU, with its claim": (
        "queries/demand/day.claim_request/who_waits_and_who_has",
        "queries/demand/day.request/a_device_of_a_class_for_an_extended_resource",
        "kube/test_claims_by_hand.py::test_an_extended_resource_of_which_the_scheduler_made_a_claim_is_one_gpu",
        "kube/test_snapshot.py::test_an_extended_resource_and_its_claim_are_one_gpu_and_say_so",
    ),
    "2 two pods of one name on one GPU have two rows": ("queries/claims/day.claim_label/two_pods_of_one_name",),
    "3 a ResourceQuota is charged for claims": (
        "queries/quota/facts.quota_agreement/a_claim_that_is_not_charged",
        "quota/test_charges.py::test_a_resource_quota_is_charged_for_claims_of_its_extended_resource",
    ),
    "4 a period of minutes is refused": (
        "test_missing_days.py::test_a_period_that_cuts_an_hour_with_data_on_both_sides_is_refused",
    ),
    "5 the last snapshot does not reach into the future": (
        "queries/cluster/day.state_snapshot/looks_stand_until_the_next_for_fifteen_minutes_at_most",
        "test_missing_days.py::test_a_run_of_today_has_its_hours_and_a_dead_cluster_is_unknown_in_them",
    ),
    "6 the rest of today is no capacity": (
        "test_missing_days.py::test_a_run_of_today_has_its_hours_and_a_dead_cluster_is_unknown_in_them",
    ),
    "7 work on a cordoned node stays allocated": (
        "test_ledger.py::test_every_state_is_in_exactly_one_bucket_and_in_the_right_one",
        "queries/demand/day.outage/node_not_ready_then_cordoned",
    ),
    "8 a pod ends with its labels, not at the next snapshot": (
        "queries/devices/day.label_end/only_where_the_device_was_seen_after",
        "queries/cluster/day.snapshot_life/labels_with_a_uid_end_before_the_next_look",
        "queries/claims/day.claim_allocation/labels_of_the_pod_end_before_the_next_look",
    ),
    "9 a list that fails costs itself, and the next version is tried": (
        "kube/test_failures.py::test_a_list_that_fails_costs_itself_and_the_exit_code",
        "kube/test_failures.py::test_the_next_version_is_tried_where_one_fails",
    ),
    "10 a cluster that is gone does not cost the others": (
        "kube/test_failures.py::test_a_cluster_that_is_gone_does_not_cost_the_others",
    ),
    "11 a refusal by a server that is starting is none": (
        "kube/test_failures.py::test_a_refusal_by_a_server_that_is_starting_is_no_refusal",
        "kube/test_failures.py::test_a_server_that_does_not_come_to_start_is_an_error",
        "kube/test_failures.py::test_credentials_that_may_list_nothing_are_an_error",
    ),
    "12 snapshots are watched": (
        "kube/test_failures.py::test_a_cluster_that_is_gone_does_not_cost_the_others",
        "nightly/test_run_metrics.py::test_the_alerts_speak_of_metrics_that_are_published",
    ),
    "13 what the jobs publish leaves their pods": ("deploy/test_manifests.py::test_what_the_jobs_publish_can_leave_the_pods",),
    "14 honorLabels is not advised where it is on": ("doctor/test_checks.py::test_honor_labels_is_not_advised_where_it_is_on",),
    "15 VictoriaMetrics ends intervals where Prometheus does": (
        "prometheus/test_staleness.py::test_victoria_metrics_keeps_the_marker_and_gives_it_as_null",
    ),
    "16 the energy of an outage is its certain holder's": (
        "queries/energy/day.gap_holder/who_certainly_had_the_gpu_throughout",
        "queries/energy/facts.power_hour/growth_over_a_gap_is_its_certain_holders",
        "queries/energy/facts.device_power_hour/growth_over_a_gap_is_its_certain_holders",
    ),
    "17 a snapshot is of the time of its answer": (
        "kube/test_failures.py::test_a_snapshot_is_of_the_time_at_which_a_server_answered",
    ),
    "18 load that steps between scrapes fails no check": (
        "queries/energy/checks.counter_differs_from_power/load_that_steps_between_scrapes",
    ),
    "19 capacity ends at one time on all nodes": (
        "test_missing_days.py::test_a_run_of_today_has_its_hours_and_a_dead_cluster_is_unknown_in_them",
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_every_one_is_held_by_a_test_that_is_there(name: str) -> None:
    for place in HELD[name]:
        path, _, function = place.partition("::")
        if function:
            names = {each.name for each in ast.parse((TESTS / path).read_text()).body if isinstance(each, ast.FunctionDef)}
            assert function in names, place
        else:
            assert (TESTS / path / "expect.csv").is_file(), place


def test_all_nineteen_are_there() -> None:
    assert [int(name.split()[0]) for name in HELD] == list(range(1, 20))
