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
from typing import TYPE_CHECKING, TypeVar

from gpureport.errors import StoreError

if TYPE_CHECKING:
    from gpureport.store.bucket import Bucket

TURNS = "turns"
_LEFT = timedelta(minutes=2)
_LONGEST_SECONDS = 60.0
_TRIES = 200
_SHORTEST_SECONDS = 0.05

Result = TypeVar("Result")


def probe(bucket: Bucket) -> bool:
    """Whether the storage refuses to write where a condition does not hold: tried with an object of our own."""
    name = f"{TURNS}/probe-{token_hex(8)}"
    bucket.put(name, b"1")
    try:
        return bucket.put(name, b"2", is_new=True) is None and bucket.put(name, b"3", etag=f'"{"0" * 32}"') is None
    except StoreError:  # some refuse the question, which is an answer too
        return False
    finally:
        bucket.delete([name])


def in_turn(bucket: Bucket, work: Callable[[], Result]) -> Result:
    """Do something while no other writer is in its turn. StoreError where others write without a pause."""
    for _ in range(_TRIES):
        own, start = f"{TURNS}/{token_hex(8)}", time.monotonic()
        bucket.put(own, b"")
        try:
            if _is_alone(bucket, own) and time.monotonic() - start < _LONGEST_SECONDS:
                return work()
        finally:
            with suppress(StoreError):  # what is left counts for two minutes
                bucket.delete([own])
        # As long as a few turns of this machine take now: on a slow one a fixed pause would let nobody be alone.
        time.sleep(random.uniform(0.2, 4.0) * max(time.monotonic() - start, _SHORTEST_SECONDS))
    raise StoreError(f"others write to {bucket.address} without a pause; run again later")


def _is_alone(bucket: Bucket, own: str) -> bool:
    turns = {each.name: each.modified_at for each in bucket.objects(TURNS)}
    now = turns.pop(own, None)
    left = [name for name, at in turns.items() if now is not None and now - at > _LEFT]
    bucket.delete(left)
    return now is not None and len(left) == len(turns)
