"""An export that is killed leaves every partition as it was, gone or whole, and the next one completes the day."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from forks import FORKS
from lake_rows import seen

from gpureport.cli import main
from gpureport.lake.root import ROOT

from . import fleet
from .fleet import environment, export_command
from .replay import Reply, Request, forwarding, replaying

READ = "/api/v1/read"
READS = fleet.NODE_COUNT + 1
"""One for the probe, then one for each node."""
SMALL_GROUPS = {"GPUREPORT_EXPORT__SAMPLES_PER_GROUP": "1"}
PATIENCE_SECONDS = 300.0
Files = dict[str, bytes]


class Gate:
    """A proxy's answers: the n-th remote read stays without one."""

    def __init__(self, server: str, closes_at: int) -> None:
        self.answer = forwarding(server)
        self.closes_at = closes_at
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()
        self._lock = threading.Lock()
        self._reads = 0

    def __call__(self, request: Request) -> Reply:
        if request.path == READ:
            self._pass()
        return self.answer(request)

    def _pass(self) -> None:
        with self._lock:
            self._reads += 1
            number = self._reads
        if number >= self.closes_at:
            self.is_reached.set()
            self.may_go_on.wait(PATIENCE_SECONDS)


@contextmanager
def gated_export(server: str, lake: Path, closes_at: int) -> Iterator[tuple[BaseProcess, Gate]]:
    """A running export that has come to its n-th read; whatever is left of its processes ends with the block."""
    gate = Gate(server, closes_at)
    with replaying({}, otherwise=gate) as proxy:
        process = FORKS.Process(target=_export_in_a_session, args=(proxy.url, lake))
        process.start()
        try:
            assert gate.is_reached.wait(PATIENCE_SECONDS)
            yield process, gate
        finally:
            gate.may_go_on.set()
            kill_session(process)


def _export_in_a_session(server: str, lake: Path) -> None:
    os.setsid()
    sys.exit(main(export_command(server, lake)[3:], environ=environment(**SMALL_GROUPS)))


def kill_session(process: BaseProcess | subprocess.Popen[bytes]) -> None:
    """SIGKILL to the process and its workers, as the end of a container is."""
    assert process.pid
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join() if isinstance(process, BaseProcess) else process.wait()


def export(server: str, lake: Path, *more: str, **settings: str) -> int:
    """The exit code of an export that nobody kills: the same command, in this process alone."""
    one_process = environment(GPUREPORT_PROMETHEUS__MAX_CONCURRENCY="1", **settings)
    return main(export_command(server, lake, *more)[3:], environ=one_process)


def partitions(lake: Path) -> dict[str, Files]:
    """The files of each partition that a reader sees."""
    found: dict[str, Files] = {}
    for name, data in (seen(lake) if (lake / ROOT).exists() else {}).items():
        folder, _, part = name.rpartition("/")
        found.setdefault(folder, {})[part] = data
    return found


@pytest.fixture(scope="module")
def whole(fleet_prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    lake = tmp_path_factory.mktemp("whole") / "lake"
    assert export(fleet_prometheus, lake, **SMALL_GROUPS) == 0
    found = partitions(lake)
    assert len(found[f"device_sample/lab/{fleet.DAY}"]) == fleet.NODE_COUNT
    return found


@pytest.fixture(scope="module")
def earlier(fleet_prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The day as it was exported before: in one part, with its raw samples."""
    lake = tmp_path_factory.mktemp("earlier") / "lake"
    assert export(fleet_prometheus, lake, "--keep-raw") == 0
    return lake


@pytest.fixture
def lake(request: pytest.FixtureRequest, earlier: Path, tmp_path: Path) -> Path:
    """What the export finds that is killed: nothing, or an earlier export."""
    if request.param == "earlier":
        shutil.copytree(earlier, tmp_path / "lake")
    return tmp_path / "lake"


def assert_as_it_was_gone_or_whole(lake: Path, before: dict[str, Files], whole: dict[str, Files]) -> None:
    for folder, files in partitions(lake).items():
        assert files in (before.get(folder), whole.get(folder)), folder


@pytest.mark.parametrize(("lake", "closes_at"), [("none", 2), ("earlier", 5)], indirect=["lake"])
def test_killed_while_it_reads_it_leaves_the_lake_as_it_was(
    fleet_prometheus: str, lake: Path, whole: dict[str, Files], closes_at: int
) -> None:
    before = partitions(lake)
    with gated_export(fleet_prometheus, lake, closes_at) as (process, _):
        kill_session(process)
    assert process.exitcode == -signal.SIGKILL
    assert partitions(lake) == before
    assert export(fleet_prometheus, lake, **SMALL_GROUPS) == 0
    after = partitions(lake)
    assert {folder: after[folder] for folder in whole} == whole


@pytest.mark.parametrize(("lake", "seed"), [("none", 0), ("earlier", 1), ("earlier", 2)], indirect=["lake"])
def test_killed_while_it_writes_it_leaves_partitions_whole(
    fleet_prometheus: str, lake: Path, whole: dict[str, Files], seed: int
) -> None:
    before = partitions(lake)
    with gated_export(fleet_prometheus, lake, READS) as (process, gate):
        gate.may_go_on.set()
        time.sleep(random.Random(seed).uniform(0, 0.4))
        kill_session(process)
    assert_as_it_was_gone_or_whole(lake, before, whole)
    assert export(fleet_prometheus, lake, **SMALL_GROUPS) == 0
    after = partitions(lake)
    assert {folder: after[folder] for folder in whole} == whole


@pytest.mark.parametrize("lake", ["earlier"], indirect=True)
def test_workers_of_a_killed_export_change_nothing_and_do_not_keep_the_lake_locked(
    fleet_prometheus: str, lake: Path, whole: dict[str, Files]
) -> None:
    """Only the main process is killed, as the kernel does when memory is short."""
    before = partitions(lake)
    with gated_export(fleet_prometheus, lake, READS) as (process, gate):
        process.kill()
        process.join()
        gate.may_go_on.set()
        assert partitions(lake) == before
        assert is_free_in_time(fleet_prometheus, lake)
    after = partitions(lake)
    assert {folder: after[folder] for folder in whole} == whole


def is_free_in_time(server: str, lake: Path) -> bool:
    """Whether an export comes through; workers that notice the end of their parent take a moment to go."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while export(server, lake, **SMALL_GROUPS) != 0:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.1)
    return True
