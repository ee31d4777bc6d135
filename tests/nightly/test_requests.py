"""A night on object storage whose Prometheus is slow and busy: as any other, and what it costs."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
import pytest
from obstore.store import S3Store
from prometheus.replay import Reply, Request, forwarding, replaying
from store.conftest import moto_url  # noqa: F401
from store.servers import BUCKET, KEYS

from gpureport.commands.work.nightly import PACKED_A_NIGHT
from gpureport.store import Bucket, Folder, ObjectAddress, Reach

from .killed_run import Night
from .wholeness import assert_as_never_disturbed


def test_a_night_on_s3_with_a_slow_and_busy_server_is_as_any_and_puts_at_most_sixty_objects(
    night: Night,
    nights: Path,
    moto_url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(nights / "before", tmp_path, dirs_exist_ok=True)
    environ = {**KEYS, "GPUREPORT_OBJECT_STORE__ENDPOINT_URL": moto_url, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    bucket = Bucket(ObjectAddress(BUCKET, f"requests-{uuid4().hex}", Reach(moto_url, environ=KEYS, cache=tmp_path / "other")))
    for each in Folder(tmp_path / "lake").objects():
        if not each.name.startswith("."):
            bucket.upload(tmp_path / "lake" / each.name, each.name)
    shutil.rmtree(tmp_path / "lake")
    put, names = obstore.put, list[str]()

    def counted(store: S3Store, name: str, *rest: Any, **more: Any) -> object:
        names.append(name)
        return put(store, name, *rest, **more)

    answer, request_count = forwarding(night.prometheus), Counter[str]()

    def busy(request: Request) -> Reply:
        request_count[request.path] += 1
        time.sleep(0.05)
        is_first = request_count[request.path] == 1
        return Reply(503, b"Service Unavailable", "text/plain") if is_first else answer(request)

    monkeypatch.setattr(obstore, "put", counted)
    with replaying({}, otherwise=busy) as server:
        assert replace(night, prometheus=server.url, lake=str(bucket.place), environ=environ).run(tmp_path) == 0
    assert min(request_count.values()) > 1
    assert {"node", "claim", "quota", "device_sample", "facts/ledger_hour"} <= {each.split("/cluster=")[0] for each in names}
    assert len(names) + PACKED_A_NIGHT + 1 <= 60  # with what packs a month, and its root
    assert_as_never_disturbed(tmp_path, nights, bucket.place)
