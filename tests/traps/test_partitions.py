"""Parts of a GPU: what each holder has of it, the same in the allocation and in the ledger."""

from __future__ import annotations

import pytest

from traps.telling import Said, about, samples

HOUR = 3600


def hours(said: Said) -> dict[str, float]:
    """GPU-seconds of each holder; the same in both tables."""
    allocated, ledger = ({}, {})
    for found, table in ((allocated, "report.device_allocation"), (ledger, "report.gpu_hour_ledger")):
        for row in said.rows(table):
            if row["namespace"] == "ns":
                seconds = (row["allocated_gpu_hours" if found is allocated else "gpu_hours"] or 0) * HOUR
                found[row.get("pod") or row["pod_uid"]] = found.get(row.get("pod") or row["pod_uid"], 0) + seconds
    assert allocated == pytest.approx(ledger, rel=1e-9)
    return allocated


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.5x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="2",GPU_I_PROFILE="2g.20gb"} 0.5x29
""")
def test_instances_of_a_gpu_without_a_series_of_its_own_are_allocated(said: Said) -> None:
    assert hours(said) == {"p": about(3 / 7 * 3600), "q": about(2 / 7 * 1800)}
    assert {row["active_joules"] for row in said.rows("report.container_power")} == {None}
