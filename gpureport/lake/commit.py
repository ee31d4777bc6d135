"""A change becomes part of a lake with one object, the root: readers see all of it or nothing.

It is worked out against the root as it is now, however often that was replaced meanwhile: days that nobody else replaced since
the writer looked go in side by side, and snapshots always do. What no root needs any more is removed a day later, by the clock
that stamps the lake's own files: a reader goes on with the root that it opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from secrets import token_hex

import msgspec

from gpureport.lake.paths import ROOT, is_own
from gpureport.lake.root import Days, FoundRoot, Replaced, Root, Stored, encode_root, read_root
from gpureport.store import Bucket, Storage
from gpureport.store.refusal import no_conditions
from gpureport.values.errors import LakeError
from gpureport.values.window import to_ms

_TRIES = 100
_REMEMBERED = 100
GRACE = timedelta(days=1)
_UNUSED_SECONDS = 7 * 86_400.0

Edit = Callable[[Root], Root]
"""A root from another; LakeBusyError where it is not what the writer started from."""


class LakeBusyError(LakeError):
    """Another gpureport is at work on the lake, or wrote what this one was about to."""


def new_change() -> str:
    """A name that no other change has."""
    return token_hex(8)


def create_root(storage: Storage) -> Root:
    """The root, made where there is none."""
    if not (found := read_root(storage)):
        storage.replace(ROOT, None, encode_root(Root()))
        found = read_root(storage)
    return _there(storage, found).root


def commit(storage: Storage, change: str, edit: Edit) -> Root:
    """Replace the root by the edited one; the new root. LakeBusyError, and nothing changed, where somebody else was first."""
    for _ in range(_TRIES):
        latest, found = _there(storage, read_root(storage))
        if change in latest.changes:
            return latest  # an attempt went through, and its answer was lost
        edited = edit(latest)
        if edited.files == latest.files and edited.replaced == latest.replaced:
            return latest
        if not latest.is_conditional:
            raise no_conditions(storage.place)
        root = _stamped(latest, edited, change, to_ms(found.modified_at))
        if storage.replace(ROOT, found, encode_root(root)):
            return root
    raise LakeBusyError(f"others change {storage.place} without a pause; run again later")


def _there(storage: Storage, found: FoundRoot | None) -> FoundRoot:
    if found is None:
        raise LakeError(f"{storage.place}/{ROOT} is gone; restore it from a backup, or use another lake")
    return found


def _stamped(latest: Root, edited: Root, change: str, written_ms: int) -> Root:
    """The edited root with its change's name, and what it takes out of the lake; what the one before took out has a time now."""
    gone = tuple(sorted(latest.names() - edited.names()))
    timed = tuple(each if each.at_ms is not None else Replaced(each.names, written_ms) for each in edited.replaced)
    replaced = (*timed, Replaced(gone)) if gone else timed
    return msgspec.structs.replace(edited, changes=(*latest.changes, change)[-_REMEMBERED:], replaced=replaced)


def with_files(root: Root, changed: Mapping[tuple[str, str], tuple[Stored, ...]]) -> Root:
    """The root with other files in some tables' days, by table and day; none where they are empty."""
    tables: dict[str, Days] = dict(root.files)
    for (table, key), files in changed.items():
        days = {**tables.get(table, {}), key: tuple(sorted(files, key=lambda each: (each.first_ms or 0, each.number)))}
        tables[table] = {name: found for name, found in sorted(days.items()) if found}
    return msgspec.structs.replace(root, files={table: days for table, days in sorted(tables.items()) if days})


def sweep(storage: Storage, grace: timedelta) -> int:
    """Remove what has not been needed for so long: files that changes took out of the lake, and those that never were part of it.

    How many went. Copies here go a week after their last use.
    """
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
    if removed := {each.names for each in due}:

        def edit(now: Root) -> Root:
            return msgspec.structs.replace(now, replaced=tuple(each for each in now.replaced if each.names not in removed))

        commit(storage, new_change(), edit)
    if isinstance(storage, Bucket):
        storage.forget_unused(_UNUSED_SECONDS)
    return len(gone)
