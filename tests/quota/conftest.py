"""One lake for all scenes of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from built_once import built_once
from report_tables import Report, report_tables

from quota.kueue_scene import DAY, FROM, NOW, UNTIL, Found, Scene, at, run


@pytest.fixture(scope="session")
def scenes(request: pytest.FixtureRequest) -> Mapping[str, Scene]:
    """Scenes of this run's tests, by name of the test."""
    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    return {test.originalname: test.function.scene for test in tests if hasattr(test.function, "scene")}


@pytest.fixture(scope="session")
def scenes_lake(scenes: Mapping[str, Scene], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(folder: Path) -> None:
        for cluster, each in scenes.items():
            each.fill(folder, folder / "lake", cluster)
        config = folder / "gpureport.toml"
        config.write_text("[quota.kueue]\nusage_half_life_hours = 0.25\n")
        run("--config", str(config), "compute", "--date", DAY, "--lake", str(folder / "lake"))

    return built_once("scenes", fill, request, tmp_path_factory) / "lake"


@pytest.fixture(scope="session")
def scenes_report(scenes_lake: Path) -> Iterator[Report]:
    """The report of all scenes, of which each table is made once."""
    with report_tables(scenes_lake, at(FROM), at(UNTIL), NOW, scenes_lake.parent / "gpureport.toml") as report:
        yield report


@pytest.fixture
def found(scenes_report: Report, request: pytest.FixtureRequest) -> Found:
    """The test's own scene."""
    return Found(scenes_report, request.node.originalname)
