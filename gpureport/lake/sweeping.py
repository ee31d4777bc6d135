"""Remove objects that no lake needs: what changes took out of it, and what uploads left that never became part of it.

Both only a day later, by the storage's own clock: a reader goes on with the root that it opened, and an upload takes its time.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta
from secrets import token_hex

import msgspec

from gpureport.errors import StoreError
from gpureport.lake.manifest import CHANGES, Root, decode_names
from gpureport.lake.stock import Stock
from gpureport.store import Bucket
from gpureport.store.turn import TURNS

GRACE = timedelta(days=1)
_UNUSED_SECONDS = 7 * 86_400.0
_REMEMBERED = 500
"""Changes that the root goes on naming, so that a writer whose answer was lost finds its own."""


def sweep(stock: Stock, grace: timedelta = GRACE) -> int:
    """Remove what has not been needed for so long; how many objects went. Copies here go a week after their last use."""
    found = stock.read_root()
    if found is None:
        return 0
    root, before = found.root, _server_time(stock.bucket) - grace
    ages = stock.bucket.each(stock.bucket.modified_at, root.dropped)
    expired = [name for name, at in zip(root.dropped, ages, strict=True) if at is None or at < before]
    dropped = [name for each in expired for name in [*_names(stock.bucket, each), each]]
    orphans, youngest = _orphans(stock.bucket, root, before)
    stock.bucket.delete([*dropped, *orphans])
    _forget_swept(stock, root, expired, youngest)
    stock.forget(_UNUSED_SECONDS)
    return len(dropped) + len(orphans)


def _forget_swept(stock: Stock, root: Root, expired: list[str], youngest: int) -> None:
    """Take what is gone from the root; where somebody else changes it, the next sweep does."""
    swept = max(root.swept_generation, min(youngest, root.generation - _REMEMBERED))
    latest = stock.read_root()
    if latest is None or not (expired or swept > root.swept_generation):
        return
    changes = tuple(change for change in latest.root.changes if _generation(change) >= swept)
    dropped = tuple(name for name in latest.root.dropped if name not in expired)
    generation = latest.root.generation + 1
    new = msgspec.structs.replace(latest.root, generation=generation, changes=changes, dropped=dropped, swept_generation=swept)
    stock.replace_root(latest, new)


def _orphans(bucket: Bucket, root: Root, before: datetime) -> tuple[list[str], int]:
    """Objects of old changes that the root does not name, and the earliest generation of those that may yet be part of it."""
    names: dict[str, list[str]] = defaultdict(list)
    written: dict[str, datetime] = {}
    for each in bucket.objects(CHANGES, after=f"{CHANGES}/{root.swept_generation:08d}"):
        change = each.name.split("/")[1]
        if change not in root.changes and _generation(change) >= root.swept_generation:
            names[change].append(each.name)
            written[change] = max(each.modified_at, written.get(change, each.modified_at))
    old = [change for change, at in written.items() if at < before]
    youngest = min((_generation(change) for change in written if change not in old), default=root.generation)
    return [name for change in old for name in names[change]], youngest


def _generation(change: str) -> int:
    return int(change.partition("-")[0])


def _names(bucket: Bucket, name: str) -> list[str]:
    """What a list of dropped objects holds; nothing where an earlier sweep removed it."""
    found = bucket.get(name)
    return decode_names(found.data) if found else []


def _server_time(bucket: Bucket) -> datetime:
    """The time by the storage's clock, which stamps all objects."""
    name = f"{TURNS}/clock-{token_hex(8)}"
    bucket.put(name, b"")
    at = bucket.modified_at(name)
    with suppress(StoreError):  # a turn that is left counts for two minutes
        bucket.delete([name])
    if at is None:
        raise StoreError(f"{bucket.address} does not show what was just written; it cannot hold a lake")
    return at
