"""Remove files that no lake needs: what changes took out of it, and what was added and never became part of it.

Both only a day later, by the clock that stamps the lake's own files: a reader goes on with the root that it opened.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from gpureport.lake.commit import commit, new_change
from gpureport.lake.paths import is_own
from gpureport.lake.root import Root, read_root
from gpureport.store import Bucket, Storage
from gpureport.window import to_ms

GRACE = timedelta(days=1)
_UNUSED_SECONDS = 7 * 86_400.0


def sweep(storage: Storage, grace: timedelta) -> int:
    """Remove what has not been needed for so long; how many files went. Copies here go a week after their last use."""
    found = read_root(storage)
    if found is None:
        return 0
    root, before = found.root, found.found.modified_at - grace
    due = [each for each in root.replaced if each.at_ms is not None and each.at_ms < to_ms(before)]
    replaced = {name for each in root.replaced for name in each.names}
    added = [each.name for each in storage.objects() if is_own(each.name) and each.modified_at < before]
    latest = read_root(storage)  # an addition may have become part of the lake meanwhile
    known = replaced | root.names() | (latest.root.names() if latest else set())
    gone = [name for each in due for name in each.names] + [name for name in added if name not in known]
    storage.delete(gone)
    if due:
        commit(storage, new_change(), lambda now: _without(now, [each.names for each in due]))
    if isinstance(storage, Bucket):
        storage.forget_unused(_UNUSED_SECONDS)
    return len(gone)


def _without(root: Root, gone: list[tuple[str, ...]]) -> Root:
    return msgspec.structs.replace(root, replaced=tuple(each for each in root.replaced if each.names not in gone))
