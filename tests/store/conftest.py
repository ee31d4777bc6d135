"""One server of each kind per test process, and an empty prefix per test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from gpureport.store import ObjectAddress, Reach

from .servers import BUCKET, KEYS, moto, rclone


@pytest.fixture(scope="session")
def rclone_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rclone(tmp_path_factory.mktemp("rclone")) as url:
        yield url


@pytest.fixture(scope="session")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture(params=["rclone_url", "moto_url"])
def any_url(request: pytest.FixtureRequest) -> str:
    """Both servers: without and with conditional writes."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def address(any_url: str, tmp_path: Path) -> ObjectAddress:
    """An empty prefix."""
    reach = Reach(endpoint_url=any_url, environ=KEYS, retries=1, cache=tmp_path / "cache")
    return ObjectAddress(BUCKET, f"lakes/{uuid4().hex}", reach)


@pytest.fixture
def elsewhere(address: ObjectAddress, tmp_path: Path) -> ObjectAddress:
    """The same prefix, seen from another machine."""
    return replace(address, reach=replace(address.reach, cache=tmp_path / "other-cache"))
