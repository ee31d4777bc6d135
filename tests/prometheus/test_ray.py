"""Export and facts by the workers of a real Ray cluster: the same bytes as by this machine, whatever becomes of a worker."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import ray

from gpureport import compute
from gpureport.cli import main
from gpureport.compute import ComputeSettings, compute_day
from gpureport.engines import RayCluster
from gpureport.engines.parcel import do_away
from gpureport.errors import EngineError, SourceError
from gpureport.lake import Change, open_lake

from . import fleet
from .watched import WatchedEngine, process_that_stays

TESTS = Path(__file__).parents[1]
PARTS_AT_ONCE = 4
BATCHES = [f"part-{number:04d}" for number in range(0, fleet.NODE_COUNT, PARTS_AT_ONCE)]
"""By their first parts."""
SMALL_GROUPS = {"GPUREPORT_EXPORT__SAMPLES_PER_GROUP": "1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """Two workers on this machine, whose files end with the tests."""
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as short:  # sockets have short paths
        told = {"RAY_TMPDIR": short, "RAY_AUTH_TOKEN": "a" * 64, "TMPDIR": str(folder), "PYTHONPATH": str(TESTS)}
        for name, value in told.items():
            patch.setenv(name, value)
        found = RayCluster(workers=2)
        found.each(Failing(), [], Change(folder, folder))
        yield found
        ray.shutdown()


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Iterator[None]:
    """A few parts, 60 samples each, are a task: one for each worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compute, "_SAMPLES_AT_ONCE", PARTS_AT_ONCE * 60)
        yield


class Failing:
    """Work that finds its server gone."""

    def reads(self, _task: int, _lake_path: Path) -> list[Path]:
        return []

    def do(self, task: int, _change: Change) -> int:
        raise SourceError(f"no answer to question {task}")


def files_of(lake: Path) -> dict[str, bytes]:
    return {str(path.relative_to(lake)): path.read_bytes() for path in sorted(lake.rglob("*.parquet"))}


def collect(url: str, lake: Path, *engine: str) -> None:
    """A day's export and its facts, by the command line."""
    day = ["--date", fleet.DAY.isoformat(), "--lake", str(lake), *engine]
    flags = ["--prometheus-url", url, "--cluster", "lab", "--no-kubernetes"]
    assert main(["export", *day, *flags], environ=SMALL_GROUPS) == 0
    assert main(["compute", *day], environ={}) == 0


@pytest.fixture(scope="module")
def by_this_machine(fleet_prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("local") / "lake"
    collect(fleet_prometheus, lake)
    return lake


def samples_alone(lake: Path, other: Path) -> Path:
    """A copy of a lake without its facts."""
    shutil.copytree(lake, other, ignore=shutil.ignore_patterns("facts"))
    return other


@pytest.mark.usefixtures("cluster")
def test_a_cluster_leaves_the_bytes_that_this_machine_does(by_this_machine: Path, fleet_prometheus: str, tmp_path: Path) -> None:
    collect(fleet_prometheus, tmp_path / "lake", "--engine", "ray")
    expected, found = files_of(by_this_machine), files_of(tmp_path / "lake")
    assert len([name for name in expected if name.startswith("facts/device_hour/")]) == len(BATCHES)
    assert found == expected


def test_a_worker_that_is_killed_costs_only_its_task(by_this_machine: Path, cluster: RayCluster, tmp_path: Path) -> None:
    lake, traces = samples_alone(by_this_machine, tmp_path / "lake"), tmp_path / "traces"
    traces.mkdir()
    engine = WatchedEngine(cluster, traces, "finish of part-0004")
    killer = threading.Thread(target=lambda: os.kill(process_that_stays(traces), signal.SIGKILL))
    killer.start()
    compute_day(open_lake(lake), "lab", fleet.DAY, ComputeSettings(), engine=engine)
    killer.join()
    begun = Counter(path.stem for path in traces.glob("*.*"))
    assert begun == {f"{step} of {part}": 1 for step in ("begin", "finish") for part in BATCHES} | {"finish of part-0004": 2}
    assert files_of(lake) == files_of(by_this_machine)


def computed_at(address: str, lake: Path) -> subprocess.CompletedProcess[str]:
    """Facts of the day, by another process that joins the cluster."""
    flags = ["--date", fleet.DAY.isoformat(), "--lake", str(lake), "--engine", "ray", "--ray-address", address]
    return subprocess.run([sys.executable, "-m", "gpureport", "compute", *flags], capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("cluster")
def test_a_running_cluster_is_joined_by_its_address(by_this_machine: Path, tmp_path: Path) -> None:
    lake = samples_alone(by_this_machine, tmp_path / "lake")
    done = computed_at(ray.get_runtime_context().gcs_address, lake)
    assert (done.returncode, done.stdout) == (0, f"{lake / 'facts'}\n")
    names = {(Path(name).parts[0], Path(name).parts[1]) for name in files_of(lake)}
    assert names == {(Path(name).parts[0], Path(name).parts[1]) for name in files_of(by_this_machine)}


def test_where_no_cluster_listens_a_sentence_says_so(by_this_machine: Path, tmp_path: Path) -> None:
    lake = samples_alone(by_this_machine, tmp_path / "lake")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    done = computed_at(address, lake)
    assert done.returncode == 1
    assert re.search(rf"no Ray cluster at {address} \(.+\); check engine.ray_address\n$", done.stderr)


def test_what_a_worker_raises_is_raised_here(cluster: RayCluster, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^no answer to question 7$"):
        cluster.each(Failing(), [7], Change(tmp_path, tmp_path))


def test_a_worker_with_another_gpureport_is_refused() -> None:
    with pytest.raises(EngineError, match="run the cluster from the image that runs gpureport"):
        do_away("0.0", Failing(), 1, {})


def test_where_ray_is_not_installed_the_extra_is_named(
    by_this_machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    flags = ["--date", fleet.DAY.isoformat(), "--lake", str(by_this_machine)]
    assert main(["compute", *flags, "--engine", "ray"], environ={}) == 2
    assert "pip install 'gpureport[ray]'" in capsys.readouterr().err
