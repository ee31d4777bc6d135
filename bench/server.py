"""A local Prometheus with a simulated day in it, made once and kept under .cache/bench."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import cramjam
import numpy as np
import requests
from numpy.typing import NDArray

from bench.measure import CACHE, fingerprint
from gpureport.simulate import SimulationPlan, simulate_batches
from gpureport.values.series import SeriesBatch

_WINDOW_MS = 1_800_000
"""A head takes samples up to an hour older than its newest, so all series are sent half an hour at a time."""
_SERIES_PER_REQUEST = 2_000
_SERVER_MEMORY = "12GiB"
"""From here on the server collects garbage more often: it took 19 GB for the JSON of 10,000 GPUs."""


def prometheus_binary() -> Path:
    """PROMETHEUS_BIN, or what `make servers` unpacked."""
    if given := os.environ.get("PROMETHEUS_BIN"):
        return Path(given)
    found = sorted(Path(".cache/servers").rglob("bin/prometheus"))
    if not found:
        raise SystemExit("no Prometheus: run 'make servers', or set PROMETHEUS_BIN")
    return found[0]


def version(binary: Path) -> str:
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return (told.stdout or told.stderr).split()[2]


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Serve a data folder on a free port; its address, and the end of the server with the block."""
    port = _free_port()
    (folder / "prometheus.yml").write_text("global: {}\n")
    command = [
        str(prometheus_binary()),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=3650d",
        "--web.enable-remote-write-receiver",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    process = subprocess.Popen(command, env={**os.environ, "GOMEMLIMIT": _SERVER_MEMORY})
    try:
        _await_ready(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(120)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"Prometheus ended with {process.returncode}")
        try:
            if requests.get(f"{url}/-/ready", timeout=2).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.2)
    raise SystemExit("Prometheus did not become ready in 2 minutes")


def _await_quiet(url: str) -> None:
    """Wait until the server has merged its blocks, so that it does not do so while it is measured."""
    done, quiet_since = "", time.monotonic()
    while time.monotonic() - quiet_since < 20:
        lines = requests.get(f"{url}/metrics", timeout=60).text.splitlines()
        now = "".join(line for line in lines if line.startswith("prometheus_tsdb_compactions_"))
        if now != done:
            done, quiet_since = now, time.monotonic()
        time.sleep(2)


def filled_folder(plan: SimulationPlan, name: str) -> Path:
    """A data folder that holds the plan's samples; kept for the next run."""
    folder = CACHE / f"{name}-{fingerprint(plan, ('simulate',))}"
    if (folder / "filled").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    print(f"filling {folder} (once) …", flush=True)
    with prometheus(folder) as url:
        sent = remote_write(list(simulate_batches(plan)), f"{url}/api/v1/write")
        _await_quiet(url)
    (folder / "filled").write_text(f"{sent}\n")
    return folder


def remote_write(batches: Sequence[SeriesBatch], url: str) -> int:
    """Send every sample, all series side by side in order of time; how many were sent."""
    heads = [[_label_bytes(dict(each)) for each in batch.labels] for batch in batches]
    first = min(int(batch.times_ms.min()) for batch in batches)
    last = max(int(batch.times_ms.max()) for batch in batches)
    session = requests.Session()
    for start in range(first, last + 1, _WINDOW_MS):
        for batch, head in zip(batches, heads, strict=True):
            series = _series_of_window(batch, head, start)
            for chunk in range(0, len(series), _SERIES_PER_REQUEST):
                _post(session, url, b"".join(series[chunk : chunk + _SERIES_PER_REQUEST]))
    return sum(batch.sample_count for batch in batches)


def _series_of_window(batch: SeriesBatch, heads: Sequence[bytes], start_ms: int) -> list[bytes]:
    """Every series that has samples in the window, as its field of a write request."""
    within = (batch.times_ms >= start_ms) & (batch.times_ms < start_ms + _WINDOW_MS)
    samples = _sample_bytes(batch.times_ms[within], batch.values[within])
    ends = np.concatenate([[0], np.cumsum(within)])[batch.offsets]
    spans = zip(heads, ends[:-1], ends[1:], strict=True)
    return [_field(1, head + samples[low:high].tobytes()) for head, low, high in spans if low < high]


def _post(session: requests.Session, url: str, body: bytes) -> None:
    packed = bytes(cramjam.snappy.compress_raw(body))
    headers = {
        "Content-Encoding": "snappy",
        "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }
    reply = session.post(url, data=packed, headers=headers, timeout=120)
    if not reply.ok:
        raise SystemExit(f"remote write refused: {reply.status_code} {reply.text[:200]}")


def _label_bytes(labels: dict[str, str]) -> bytes:
    pairs = sorted(labels.items())
    return b"".join(_field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in pairs)


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _sample_bytes(times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Every sample as its 18 bytes of protobuf: value as a double, time as a varint of six bytes (2004 to 2109)."""
    out = np.empty((times_ms.size, 18), np.uint8)
    out[:, :3] = np.frombuffer(struct.pack("BBB", 0x12, 16, 0x09), np.uint8)
    out[:, 3:11] = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8)
    out[:, 11] = 0x10
    for place in range(6):
        group = (times_ms >> (7 * place)) & 0x7F
        out[:, 12 + place] = group | (0x80 if place < 5 else 0)
    return out
