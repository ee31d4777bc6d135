"""Shared by all tests: the search for examples of properties, command line options, a Prometheus, and three reports (of the
demo and of the recordings)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_once import built_once, started_once
from golden_case import DEMO_AT, gpureport
from hypothesis import HealthCheck, settings
from kube.lake import RECORDING as STATE
from kube.lake import import_state
from kube.telemetry import write_telemetry
from prometheus.programs import filled_with
from prometheus.test_run import energy

from gpureport.cli import main
from gpureport.collect.sources import exchange

RECORDING = Path(__file__).parent.parent / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"

# Every run has the same examples and no clock: a failure then comes from a change. `--hypothesis-profile default` searches
# other examples. Fixtures that examples share are connections, and folders that each example fills again.
settings.register_profile(
    "the same examples",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("the same examples")

RETRIES = exchange.RETRIES
exchange.RETRIES = 1  # a server that stops in a test stays down


gc.disable()  # modules and collected tests live until the end; the garbage collector need not visit them hundreds of times


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that wait most come first: at the end there would be no other for the cores."""
    items.sort(key=lambda item: item.path.parent.name != "browser" and item.path.name != "test_staleness.py")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How often the suite damages a lake, cuts its power and changes it while it is read; `make soak` does more."""
    parser.addoption("--flips", type=int, default=50)
    parser.addoption("--power-losses", type=int, default=40)
    parser.addoption("--publishes", type=int, default=30)
    parser.addoption("--new-digests", action="store_true", help="store digests of facts as they are")


@pytest.fixture
def flips(request: pytest.FixtureRequest) -> int:
    """Number of bits that flip."""
    return int(request.config.getoption("--flips"))


@pytest.fixture
def retries() -> int:
    """Number of retries of a request, outside of tests."""
    return RETRIES


@pytest.fixture
def publishes(request: pytest.FixtureRequest) -> int:
    """Number of changes during which readers read."""
    return int(request.config.getoption("--publishes"))


@pytest.fixture
def power_losses(request: pytest.FixtureRequest) -> int:
    """Number of power losses."""
    return int(request.config.getoption("--power-losses"))


@pytest.fixture(scope="session")
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's report folder, its lake beside the files; made at five in the morning of the next day."""

    def build(folder: Path) -> None:
        assert main(["demo", "--out", str(folder)], environ={}, now=DEMO_AT) == 0

    return built_once("demo-report", build, request, tmp_path_factory)


@pytest.fixture(scope="session")
def simulated_demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated demo's report of a day, with prices, quotas and faults in known places; read-only."""

    def build(folder: Path) -> None:
        assert main(["demo", "--simulated", "--days", "1", "--gpus", "32", "--out", str(folder)], environ={}, now=DEMO_AT) == 0

    return built_once("simulated-report", build, request, tmp_path_factory)


@pytest.fixture(scope="session")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the recording as ``lake``, its cluster called lab, and a report of two days as ``out``; read-only. The
    report of its eight minutes is the demo's."""

    def build(folder: Path) -> None:
        lake = str(folder / "lake")
        gpureport("import", str(RECORDING), "--cluster", "lab", "--lake", lake)
        gpureport("compute", "--date", "2026-11-20", "--lake", lake)
        gpureport("report", "--since", "2026-11-20", "--until", "2026-11-22", "--lake", lake, "--out", str(folder / "out"))

    return built_once("recorded", build, request, tmp_path_factory)


@pytest.fixture(scope="session")
def recorded_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the recorded Kubernetes cluster, called lab, and telemetry of its GPUs as ``lake``, and their report of the
    day as ``out``; read-only."""

    def build(folder: Path) -> None:
        lake, day = str(folder / "lake"), "2026-11-21"
        import_state(folder / "lake", STATE)
        write_telemetry(folder / "lake", folder / "metrics.txt")
        gpureport("import", str(folder / "metrics.txt"), "--cluster", "lab", "--lake", lake)
        gpureport("compute", "--date", day, "--lake", lake)
        gpureport("report", "--since", day, "--lake", lake, "--out", str(folder / "out"))

    return built_once("recorded-cluster", build, request, tmp_path_factory)


@pytest.fixture(scope="session")
def three_days(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """11-20 and 11-22 have data, 11-21 has none: 21 and 41 samples of a GPU."""
    with started_once("three-days", filled_with(energy(0, 21), energy(2, 41)), request, tmp_path_factory) as url:
        yield url
