"""Real servers on free ports of 127.0.0.1, filled before the test and ended with it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import requests

SERVERS = Path(__file__).parents[2] / ".cache" / "servers"
_PROGRAMS = {
    "PROMETHEUS_BIN": "prometheus-2/usr/bin/prometheus",
    "PROMTOOL_BIN": "prometheus-2/usr/bin/promtool",
    "PROMETHEUS3_BIN": "prometheus-3/usr/bin/prometheus",
    "PUSHGATEWAY_BIN": "pushgateway/usr/bin/prometheus-pushgateway",
    "VICTORIA_METRICS_BIN": "victoria-metrics/usr/bin/victoria-metrics",
}
_READY_SECONDS = 300.0


def program(variable: str) -> Path:
    """The program that the variable names, else the one unpacked by `make servers`; the test is skipped without it."""
    path = Path(os.environ.get(variable) or SERVERS / _PROGRAMS[variable])
    if not path.is_file():
        pytest.skip(f"{path.name} is not here: run `make servers`, or set {variable}")
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def fill_blocks(data: Path, *texts: str) -> None:
    """Prometheus blocks of OpenMetrics texts, each ending in # EOF."""
    for number, text in enumerate(texts):
        source = data.with_name(f"{data.name}-{number}.txt")
        source.write_text(text)
        command = [program("PROMTOOL_BIN"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", source, data]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


@contextmanager
def prometheus(binary: Path, blocks: Path | None, folder: Path, *flags: str, config: str = "", **ready: object) -> Iterator[str]:
    """URL of a Prometheus over a copy of the blocks."""
    data = folder / "data"
    if blocks:
        shutil.copytree(blocks, data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(config)

    with _running(lambda port: _command(binary, folder, port, *flags), folder / "prometheus.log", "/-/ready", **ready) as url:
        yield url


def _command(binary: Path, folder: Path, port: int, *flags: str) -> Sequence[object]:
    return [
        binary,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *flags,
    ]


def filled_with(*texts: str) -> Callable[[Path], AbstractContextManager[str]]:
    """How a Prometheus that holds the texts starts over an empty folder."""

    @contextmanager
    def start(folder: Path) -> Iterator[str]:
        fill_blocks(folder / "blocks", *texts)
        with prometheus(program("PROMETHEUS_BIN"), folder / "blocks", folder / "server") as url:
            yield url

    return start


class Restarted:
    """A Prometheus over blocks, on one port, that is stopped and started as a test wants it."""

    def __init__(self, blocks: Path, folder: Path) -> None:
        shutil.copytree(blocks, folder / "data")
        (folder / "prometheus.yml").write_text("")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = [str(part) for part in _command(program("PROMETHEUS_BIN"), folder, port)]
        self._log = folder / "prometheus.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        if not _is_ready(self._process, f"{self.url}/-/ready", {}):
            raise RuntimeError(f"Prometheus does not start:\n{self._log.read_text()[-2000:]}")

    def answers(self) -> float:
        """How many requests of its API it answered since it started."""
        lines = requests.get(f"{self.url}/metrics", timeout=60).text.splitlines()
        counts = [line.split()[-1] for line in lines if line.startswith("prometheus_http_requests_total") and "/api/v1" in line]
        return sum(map(float, counts))

    def stop(self, is_killed: bool = False) -> None:
        """Until it is gone."""
        if self._process:
            (self._process.kill if is_killed else self._process.terminate)()
            self._process.wait(timeout=_READY_SECONDS)


@contextmanager
def victoria_metrics(folder: Path, *flags: str) -> Iterator[str]:
    """URL of an empty VictoriaMetrics."""
    binary = program("VICTORIA_METRICS_BIN")
    folder.mkdir(parents=True, exist_ok=True)

    def command(port: int) -> Sequence[object]:
        return [
            binary,
            f"-storageDataPath={folder / 'data'}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-retentionPeriod=100y",
            "-loggerLevel=ERROR",
            "-memory.allowedBytes=64MB",
            *flags,
        ]

    with _running(command, folder / "victoria-metrics.log", "/health") as url:
        yield url


@contextmanager
def pushgateway(folder: Path) -> Iterator[str]:
    """URL of an empty Pushgateway."""
    binary = program("PUSHGATEWAY_BIN")
    with _running(lambda port: [binary, f"--web.listen-address=127.0.0.1:{port}"], folder / "pushgateway.log", "/-/ready") as url:
        yield url


@contextmanager
def _running(
    command: Callable[[int], Sequence[object]], log: Path, ready_path: str, scheme: str = "http", **arguments: object
) -> Iterator[str]:
    """Start until one stays up: between choosing a free port and taking it another process may have it."""
    for _ in range(3):
        port = free_port()
        url = f"{scheme}://127.0.0.1:{port}"
        with log.open("wb") as output:
            process = subprocess.Popen([str(part) for part in command(port)], stdout=output, stderr=output)
        try:
            if _is_ready(process, url + ready_path, arguments):
                yield url
                return
        finally:
            process.terminate()
            process.wait(timeout=_READY_SECONDS)
    raise RuntimeError(f"{process.args[0]} does not start:\n{log.read_text()[-2000:]}")  # type: ignore[index]


def _is_ready(process: subprocess.Popen[bytes], url: str, arguments: dict[str, object]) -> bool:
    give_up_at = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            if requests.get(url, timeout=60, **arguments).ok:  # type: ignore[arg-type]
                return True
        except requests.RequestException:
            pass
        time.sleep(0.05)
    return False
