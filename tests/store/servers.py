"""S3 servers on free ports of 127.0.0.1, each with one empty bucket, ended with the test."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from prometheus.programs import SERVERS, free_port

BUCKET = "lake-bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "planted-secret-0123456789"}
_READY_SECONDS = 60.0


@contextmanager
def rclone(folder: Path) -> Iterator[str]:
    """URL of rclone's server over a folder: it checks keys, and knows no conditional writes."""
    (folder / "data" / BUCKET).mkdir(parents=True)
    auth = ",".join(KEYS.values())
    with _running(["rclone", "serve", "s3", "--config", "", "--auth-key", auth, str(folder / "data"), "--addr"], folder) as url:
        yield url


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    """URL of moto's server: it knows conditional writes, and lets anybody in."""
    with _running(["moto_server", "--host", "127.0.0.1", "--port"], folder, is_port=True) as url:
        requests.put(f"{url}/{BUCKET}", timeout=30).raise_for_status()
        yield url


@contextmanager
def _running(command: Sequence[str], folder: Path, is_port: bool = False) -> Iterator[str]:
    binary = SERVERS / "s3" / "bin" / command[0]
    if not binary.is_file():
        pytest.skip(f"{binary.name} is not here: run `make servers`")
    port = free_port()
    where = str(port) if is_port else f"127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(binary), *command[1:], where], stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)}
        )
    try:
        _await(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await(process: subprocess.Popen[bytes], url: str) -> None:
    give_up_at = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            requests.get(url, timeout=5)
            return
        except requests.RequestException:
            time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not start")
