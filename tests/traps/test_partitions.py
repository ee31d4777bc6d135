"""Parts of a GPU: what each holder has of it, the same in the allocation and in the ledger."""

from __future__ import annotations

import pytest

from traps.results import Results, about, samples

HOUR = 3600


def hours(results: Results) -> dict[str, float]:
    """GPU-seconds of each holder; the same in both tables."""
    allocated, ledger = ({}, {})
    for found, table in ((allocated, "report.device_allocation"), (ledger, "report.gpu_hour_ledger")):
        for row in results.rows(table):
            if row["namespace"] == "ns":
                seconds = (row["allocated_gpu_hours" if found is allocated else "gpu_hours"] or 0) * HOUR
                found[row.get("pod") or row["pod_uid"]] = found.get(row.get("pod") or row["pod_uid"], 0) + seconds
    assert allocated == pytest.approx(ledger, rel=1e-9)
    return allocated


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.5x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="2",GPU_I_PROFILE="2g.20gb"} 0.5x29
""")
def test_instances_of_a_gpu_without_a_series_of_its_own_are_allocated(results: Results) -> None:
    assert hours(results) == {"p": about(3 / 7 * 3600), "q": about(2 / 7 * 1800)}
    assert {row["active_joules"] for row in results.rows("report.container_power")} == {None}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 400x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="4g.40gb"} 1x19 _x40
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="1g.10gb"} _x20 0.5x39
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="2",GPU_I_PROFILE="2g.20gb"} _x20 0.5x39
""")
def test_an_id_that_is_given_to_another_profile_within_an_hour_counts_each_for_its_time(results: Results) -> None:
    assert hours(results) == {"p": about(4 / 7 * 1200 + 1 / 7 * 2400), "q": about(2 / 7 * 2400)}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 400x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.5x14 _x25 0.5x19
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} _x15 0x4
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu} _x20 0x4 _x10 0x4
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q} _x25 0.5x9
""")
def test_an_instance_that_is_made_again_was_not_there_while_its_gpu_was_shown_whole(results: Results) -> None:
    assert hours(results) == {"p": about(3 / 7 * (900 + 1200)), "q": about(600)}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 400x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.5x19 _x20 0.5x19
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="9",GPU_I_PROFILE="1g.10gb"} 0.5x59
""")
def test_an_instance_that_one_pod_has_before_and_after_is_there_between(results: Results) -> None:
    rows = results.rows("report.gpu_hour_ledger")
    assert sum(row["gpu_hours"] for row in rows if row["cause"] == "unsliced") == about(3 / 7)


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 400x59
    DCGM_FI_DEV_FB_USED{$gpu,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 1000x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.5x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_CI_ID="0",GPU_I_PROFILE="1c.3g.40gb"} 0.9x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="1",GPU_CI_ID="1",GPU_I_PROFILE="2c.3g.40gb"} 0.3x59
""")
def test_an_instance_beside_its_compute_instances_is_no_more_of_the_gpu(results: Results) -> None:
    assert hours(results) == {"p": about(1 / 7 * 3600), "q": about(2 / 7 * 3600)}
    assert [results.container(pod)["gpu_usage_avg"] for pod in "pq"] == [about(0.9), about(0.3)]
    free = {row["bucket"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if not row["namespace"]}
    assert (free.get("free", 0), free["fragmented"]) == (0, about(4 / 7))
    assert results.device()["unattributed_joules"] == about(0)


CARD = 'serial_number="S1",hostname="n1",card_series="AMD Instinct MI300X OAM"'
CPX = f'{CARD},gpu_compute_partition_type="cpx"'
EIGHT = "\n".join(f'gpu_prof_gui_util_percent{{{CPX},gpu_partition_id="{number}",$p}} 50x39' for number in range(8))


@samples(EIGHT)
def test_eight_partitions_are_one_gpu(results: Results) -> None:
    assert hours(results) == {"p": about(2400)}


@samples("""
    gpu_prof_gui_util_percent{serial_number="S1",hostname="n1",gpu_compute_partition_type="dpx",gpu_partition_id="0",$p} 50x39
""")
def test_device_metrics_exporter_495_a_partition_that_is_not_shown_is_unknown_and_not_left_over(results: Results) -> None:
    buckets = {row["bucket"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger")}
    # Half of the card for 40 minutes; what is not shown of the two hours is unknown.
    assert buckets == {"active_unmeasured": about(1 / 3), "unknown": about(2 - 1 / 3)}


@samples(
    """
    gpu_package_power{$card,gpu_compute_partition_type="cpx",$p} 600x29 _x30
    gpu_package_power{$card,gpu_compute_partition_type="dpx",$p} _x30 600x29
""".replace("$card", f'{CARD},gpu_partition_id="0"')
)
def test_a_partition_that_grows_in_the_middle_of_an_hour(results: Results) -> None:
    assert hours(results) == {"p": about(1 / 8 * 1800 + 1 / 2 * 1800)}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 400x59
    DCGM_FI_DEV_POWER_USAGE{$gpu,$q,GPU_I_ID="2",GPU_I_PROFILE="1g.10gb"} 400x59
""")
def test_instances_that_only_the_boards_series_show_have_their_profiles(results: Results) -> None:
    assert hours(results) == {"p": about(3 / 7 * 3600), "q": about(1 / 7 * 3600)}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 400x29 _x30
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="7g.80gb"} 1x29 _x30
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q} _x30 0.5x29
""")
def test_mig_that_is_switched_off_leaves_a_whole_gpu(results: Results) -> None:
    assert hours(results) == {"p": about(1800), "q": about(1800)}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 400x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 1x59
""")
def test_a_pod_on_the_board_has_what_another_on_an_instance_leaves(results: Results) -> None:
    assert hours(results) == {"p": about(4 / 7 * 3600), "q": about(3 / 7 * 3600)}


NAMELESS = "\n".join(f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{$gpu,$p,GPU_I_ID="{number}"}} 1x59' for number in range(7, 15))


@samples("DCGM_FI_DEV_POWER_USAGE{$gpu} 400x59\n" + NAMELESS)
def test_instances_without_a_profile_are_together_no_more_than_the_gpu(results: Results) -> None:
    assert hours(results) == {"p": about(3600)}


@samples(
    """
    hami_host_gpu_utilization_ratio{device_uuid="GPU-a",node="n1",namespace="kube-system",pod="hami-device-plugin-x1"} 60x59
    hami_container_device_utilization_ratio{device_uuid="GPU-a",node="n1",$p} 30x59
    hami_container_device_utilization_ratio{device_uuid="GPU-a",node="n1",$q} 30x59
    hami_vgpu_memory_limit_bytes{device_uuid="GPU-a",node="n1",$p} 10e9x59
    hami_vgpu_memory_limit_bytes{device_uuid="GPU-a",node="n1",$q} 30e9x59
""",
    is_alone=True,
)
def test_hamis_sharers_have_the_parts_of_the_memory_that_they_were_given(results: Results) -> None:
    assert hours(results) == {"p": about(900), "q": about(2700)}
    found = [row for row in results.rows("report.device_allocation") if row["namespace"] == "ns"]
    assert {row["hours_method"] for row in found} == {"granted_share"}


@samples(
    """
    hami_host_gpu_utilization_ratio{device_uuid="GPU-a",node="n1"} 60x59
    hami_container_device_utilization_ratio{device_uuid="GPU-a",node="n1",$p} 30x59
    hami_container_device_utilization_ratio{device_uuid="GPU-a",node="n1",$q} 30x59
    hami_vgpu_memory_limit_bytes{device_uuid="GPU-a",node="n1",$q} 30e9x59
""",
    is_alone=True,
)
def test_sharers_of_whom_one_has_an_unknown_part_have_equal_ones(results: Results) -> None:
    assert hours(results) == {"p": about(1800), "q": about(1800)}
    found = [row for row in results.rows("report.device_allocation") if row["namespace"] == "ns"]
    assert {row["hours_method"] for row in found} == {"equal_share"}
