"""What a night costs on object storage."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
import pytest
from obstore.store import S3Store
from store.conftest import moto_url  # noqa: F401
from store.servers import BUCKET, KEYS

from gpureport.commands.work.nightly import PACKED_A_NIGHT
from gpureport.store import Bucket, Folder, ObjectAddress, Reach

from .killed_run import Night


def test_a_night_on_s3_puts_at_most_sixty_objects(
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
    put, names = obstore.put, list[str]()

    def counted(store: S3Store, name: str, *rest: Any, **more: Any) -> object:
        names.append(name)
        return put(store, name, *rest, **more)

    monkeypatch.setattr(obstore, "put", counted)
    assert replace(night, lake=str(bucket.place), environ=environ).run(tmp_path) == 0
    assert {"node", "claim", "quota", "device_sample", "facts/ledger_hour"} <= {each.split("/cluster=")[0] for each in names}
    assert len(names) + PACKED_A_NIGHT + 1 <= 60  # with what packs a month, and its root
