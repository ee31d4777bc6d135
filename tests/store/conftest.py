"""One server of each kind for all workers, and an empty prefix per test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from built_once import started_once

from gpureport.store import ObjectAddress, Reach

from .servers import AZURE, BUCKET, GOOGLE, KEYS, azurite, google, moto, rclone


@pytest.fixture(scope="session")
def rclone_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started_once("rclone", rclone, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def moto_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started_once("moto", moto, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def azure_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started_once("azurite", azurite, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def google_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started_once("google", google, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(params=[("s3", "moto_url"), ("gs", "google_url"), ("az", "azure_url")], ids=lambda each: each[0])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectAddress:
    """An empty prefix of each storage."""
    scheme, server = request.param
    for name, value in ({**AZURE, **GOOGLE}).items():  # the library reads these itself
        monkeypatch.setenv(name, value)
    reach = Reach(endpoint_url=request.getfixturevalue(server), environ=KEYS, retries=1, cache=tmp_path / "cache")
    return ObjectAddress(BUCKET, f"lakes/{uuid4().hex}", reach, scheme)


@pytest.fixture
def elsewhere(address: ObjectAddress, tmp_path: Path) -> ObjectAddress:
    """The same prefix, seen from another machine."""
    return replace(address, reach=replace(address.reach, cache=tmp_path / "other-cache"))
