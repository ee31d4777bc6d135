from dataclasses import replace
from datetime import date

import pytest

from gpureport.simulate import SIGNALS_14, SIGNALS_ALL, SimulationPlan, choose_signals, demo_plan
from gpureport.simulate.story import node_histories
from gpureport.values.errors import UsageError


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"gpus": 0}, "gpus is 0"),
        ({"days": 0}, "days is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"step_seconds": 7}, "step-seconds is 7"),
        ({"step_seconds": 7200}, "step-seconds is 7200"),
        ({"kube_state_step_seconds": 50_000}, "kube-state-step-seconds is 50000"),
        ({"pod_life_factor": 0.0}, "pod-life-factor is 0.0"),
        ({"mig_share": 1.5}, "mig-share is 1.5"),
        ({"sharing_share": -0.1}, "sharing-share is -0.1"),
        ({"signals": ("DCGM_FI_DEV_POWER",)}, "DCGM_FI_DEV_POWER is not simulated"),
        ({"signals": ()}, "none is named"),
    ],
)
def test_an_impossible_plan_is_a_usage_error_that_names_the_option(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        SimulationPlan(**{"gpus": 8, "days": 1, "start_date": date(2026, 11, 20)} | wrong)


def test_signals_are_chosen_by_number_by_all_or_by_name() -> None:
    assert choose_signals("14") == SIGNALS_14
    assert len(SIGNALS_14) == 14
    assert choose_signals("all") == SIGNALS_ALL
    assert choose_signals("DCGM_FI_DEV_FB_USED, DCGM_FI_DEV_FB_FREE") == ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")


def test_no_signal_is_named_twice() -> None:
    assert len(set(SIGNALS_ALL)) == len(SIGNALS_ALL)


@pytest.mark.parametrize(("gpus", "share"), [(16, 0.06), (24, 0.06), (56, 0.06), (300, 0.06), (24, 0.4), (300, 0.4)])
def test_what_requests_whole_gpus_holds_no_instance(gpus: int, share: float) -> None:
    """On every node of the demo, the troubled and the hot ones too, whatever its size and share of split and shared GPUs."""
    plan = replace(demo_plan(gpus, 2, date(2026, 10, 1)), mig_share=share, sharing_share=share)
    pods = [pod for history in node_histories(plan) for pod in history.pods]
    whole = [pod for pod in pods if pod.slot.resource == "nvidia.com/gpu" and not pod.slot.is_shared]
    rows = {pod.name: [pod.node.rows[row] for row in pod.slot.rows] for pod in whole}
    assert [name for name, held in rows.items() if any(row.instance or row.gpu.is_shared for row in held)] == []
    assert len(whole) > gpus / 8
