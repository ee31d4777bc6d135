"""A small cluster with everything planted, and an obvious way to read its series."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_once import built_once

from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.lake import open_lake
from gpureport.simulate import SIGNALS_ALL, SimulationPlan, fill_lake, simulate_batches, write_truth
from gpureport.values.series import SeriesBatch, concatenate
from gpureport.values.window import parse_instant, to_ms

# 24 GPUs: node 0 has a shared and a split GPU and every planted event, node 1 is served by DRA, node 2 is plain.
PLAN = SimulationPlan(gpus=24, days=2, start_date=date(2026, 11, 18), seed=7, step_seconds=60, signals=SIGNALS_ALL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How large a cluster ``test_review`` checks; known where this folder is named on the command line."""
    parser.addoption("--review-gpus", type=int, default=24)
    parser.addoption("--review-days", type=int, default=2)


@dataclass(frozen=True)
class Series:
    """One series: labels, times in milliseconds and values."""

    labels: dict[str, str]
    times: np.ndarray
    values: np.ndarray

    @property
    def metric(self) -> str:
        return self.labels["__name__"]

    @property
    def device(self) -> tuple[str, str]:
        return self.labels["UUID"], self.labels.get("GPU_I_ID", "")

    def points(self) -> dict[int, float]:
        return dict(zip(self.times.tolist(), self.values.tolist(), strict=True))


def series_of(batch: SeriesBatch) -> Iterator[Series]:
    for number, labels in enumerate(batch.labels):
        part = slice(batch.offsets[number], batch.offsets[number + 1])
        yield Series(dict(labels), batch.times_ms[part], batch.values[part])


class Cluster:
    """All series of the plan."""

    def __init__(self, plan: SimulationPlan) -> None:
        self.series = list(series_of(concatenate(list(simulate_batches(plan)))))

    def of(self, metric: str, **labels: str) -> list[Series]:
        return [
            each
            for each in self.series
            if each.metric == metric and all(each.labels.get(name, "") == value for name, value in labels.items())
        ]

    def device(self, metric: str, uuid: str, gpu_instance_id: str = "") -> dict[int, float]:
        """The device's own values by time, whichever copy shows them."""
        chosen = [each for each in self.of(metric, UUID=uuid) if each.device == (uuid, gpu_instance_id)]
        if metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"):
            chosen = [each for each in chosen if "vgpu" not in each.labels]
        found: dict[int, float] = {}
        for each in chosen:
            found |= each.points()
        return dict(sorted(found.items()))


@pytest.fixture(scope="package")
def plan() -> SimulationPlan:
    return PLAN


@pytest.fixture(scope="package")
def cluster() -> Cluster:
    return Cluster(PLAN)


@pytest.fixture(scope="session")
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of the plan, cluster sim, with the facts of both days; to read only."""

    def build(folder: Path) -> None:
        fill_lake(PLAN, folder / "lake", "sim", workers=1)
        compute_days(open_lake(folder / "lake"), [("sim", day) for day in PLAN.dates], ComputeSettings(threads=1))

    return built_once("simulated", build, request, tmp_path_factory) / "lake"


@pytest.fixture(scope="package")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = write_truth(PLAN, tmp_path_factory.mktemp("truth"))
    return json.loads(path.read_text())


def ms(text: str) -> int:
    return to_ms(parse_instant(text))
