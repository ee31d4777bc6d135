"""Take turns at replacing an object, also on a storage that knows no conditional writes.

Where it knows them, the write itself says whether somebody was first. Where not, a writer puts an object of its own into
``turns/`` and looks who else is there: with anybody else it takes its own away and tries again a moment later, so two never both
go on. That rests on lists that show what was written before them, which S3 promises, and on nobody pausing for a minute between
looking and writing; a turn that was left by a writer that died counts for two.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from secrets import token_hex
from typing import TypeVar

from gpureport.errors import StoreError
from gpureport.store.bucket import Bucket, Found

TURNS = "turns"
_LEFT = timedelta(minutes=2)
_LONGEST_SECONDS = 60.0
_TRIES = 40
_PAUSE_SECONDS = 0.25

Result = TypeVar("Result")


def knows_conditions(bucket: Bucket) -> bool:
    """Whether the storage refuses to write where a condition does not hold: tried with an object of our own."""
    name = f"{TURNS}/probe-{token_hex(8)}"
    bucket.put(name, b"1")
    try:
        return bucket.put(name, b"2", is_new=True) is None and bucket.put(name, b"3", etag=f'"{"0" * 32}"') is None
    except StoreError:  # some refuse the question, which is an answer too
        return False
    finally:
        bucket.delete([name])


def replace(bucket: Bucket, name: str, old: Found | None, data: bytes, is_conditional: bool) -> bool:
    """Write an object in place of what was read of it; False, and nothing written, where it is another by now."""
    if is_conditional:
        return bucket.put(name, data, etag=old.etag if old else "", is_new=old is None) is not None
    return _in_turn(bucket, lambda: _replace_unless_changed(bucket, name, old, data))


def _replace_unless_changed(bucket: Bucket, name: str, old: Found | None, data: bytes) -> bool:
    now = bucket.get(name)
    if (now and now.data) != (old and old.data):
        return False
    bucket.put(name, data)
    return True


def _in_turn(bucket: Bucket, work: Callable[[], Result]) -> Result:
    for _ in range(_TRIES):
        own, start = f"{TURNS}/{token_hex(8)}", time.monotonic()
        bucket.put(own, b"")
        try:
            if _is_alone(bucket, own) and time.monotonic() - start < _LONGEST_SECONDS:
                return work()
        finally:
            with suppress(StoreError):  # what is left counts for two minutes
                bucket.delete([own])
        time.sleep(random.uniform(0.2, 1.0) * _PAUSE_SECONDS)
    raise StoreError(f"others write to {bucket.address} without a pause; run again later")


def _is_alone(bucket: Bucket, own: str) -> bool:
    turns = {each.name: each.modified_at for each in bucket.objects(TURNS)}
    now = turns.pop(own, None)
    left = [name for name, at in turns.items() if now is not None and now - at > _LEFT]
    bucket.delete(left)
    return now is not None and len(left) == len(turns)
