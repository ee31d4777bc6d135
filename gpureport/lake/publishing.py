"""What a change does to a lake on object storage: new objects first, then the root, so that readers see all of it or nothing.

A change is worked out against the root as it is now, however often that was replaced meanwhile: days that nobody else replaced
since the writer looked go in side by side, and observations always do.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec

from gpureport.lake.change import LakeBusyError
from gpureport.lake.layout import OBSERVED, is_observation
from gpureport.lake.manifest import CHANGES, Day, Held, Index, Root, Stored, day_key, encode_index, encode_names, file_name
from gpureport.lake.scan import footer
from gpureport.lake.stock import Stock

_TRIES = 40


@dataclass(frozen=True)
class Edit:
    """What is to become of a partition: files that come, and files that go."""

    table: str
    cluster: str
    date: date
    files: tuple[Path, ...] = ()
    gone: frozenset[str] | None = None
    """Names; None: everything but observations, in place of which the files come."""

    @property
    def key(self) -> str:
        """The day's."""
        return day_key(self.cluster, self.date)

    @property
    def is_replacing(self) -> bool:
        """Whether others may not have replaced anything of the day meanwhile: what was computed rests on it."""
        return self.gone is None


def staged_edits(staging: Path) -> list[Edit]:
    """The edits that a staged change means; partitions of observations alone are added to what is there."""
    edits = []
    for folder in sorted(staging.glob("**/cluster=*/date=*")):
        files = tuple(sorted(folder.glob("*.parquet")))
        table = folder.parent.parent.relative_to(staging).as_posix()
        cluster, day = folder.parent.name.removeprefix("cluster="), date.fromisoformat(folder.name.removeprefix("date="))
        gone = frozenset[str]() if all(map(is_observation, files)) else None
        edits.append(Edit(table, cluster, day, files, gone))
    return edits


@dataclass
class _Outcome:
    """A root with edits in it, and the objects that it needs."""

    root: Root
    objects: dict[str, bytes] = field(default_factory=dict)


def publish(stock: Stock, base: Root, edits: Sequence[Edit], change: str) -> Root:
    """Make edits part of the lake; the new root. LakeBusyError, and nothing changed, where somebody else was there first."""
    if already := stock.read_root():  # who has lost by now need not send anything
        _refuse_conflicts(stock, base, already.root, edits)
    stored = dict(_upload(stock, edits, change))
    in_vain: list[str] = []
    for attempt in range(_TRIES):
        found = stock.read_root()
        latest = found.root if found else base
        if change in latest.changes:
            return latest  # an earlier attempt went through, and its answer was lost
        _refuse_conflicts(stock, base, latest, edits)
        outcome = _edited(stock, latest, edits, stored, change, attempt, in_vain)
        stock.bucket.each(lambda item: stock.bucket.put(*item), outcome.objects.items())
        if stock.replace_root(found, outcome.root):
            return outcome.root
        in_vain += outcome.objects
    raise LakeBusyError(f"others change {stock.address} without a pause; run again later")


def _upload(stock: Stock, edits: Sequence[Edit], change: str) -> Iterator[tuple[Path, Stored]]:
    pairs = [(file, file_name(change, edit.table, edit.cluster, edit.date, file.name)) for edit in edits for file in edit.files]

    def send(pair: tuple[Path, str]) -> Stored:
        stock.bucket.upload(*pair)
        with pair[0].open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return Stored(change, pair[0].stat().st_size, footer(pair[0]).num_rows, digest)

    for (file, name), stored in zip(pairs, stock.bucket.each(send, pairs), strict=True):
        stock.keep(file, name)
        yield file, stored


def _refuse_conflicts(stock: Stock, base: Root, latest: Root, edits: Sequence[Edit]) -> None:
    for edit in edits:
        before, now = base.days.get(edit.key), latest.days.get(edit.key)
        if edit.is_replacing and (before.replaced_by if before else "") != (now.replaced_by if now else ""):
            raise _busy(stock, edit)
        if edit.gone and before != now and _named(stock, before, edit) != _named(stock, now, edit):
            raise _busy(stock, edit)


def _named(stock: Stock, day: Day | None, edit: Edit) -> dict[str, Stored | None]:
    """The files that an edit names, as they were on the day."""
    files = stock.read_index(day).get(edit.table, {}) if day else {}
    return {name: files.get(name) for name in edit.gone or ()}


def _busy(stock: Stock, edit: Edit) -> LakeBusyError:
    return LakeBusyError(
        f"another gpureport changed {edit.date} of {edit.cluster} in {stock.address} meanwhile; nothing of this one is there, "
        "run again"
    )


def _edited(
    stock: Stock,
    latest: Root,
    edits: Sequence[Edit],
    stored: Mapping[Path, Stored],
    change: str,
    attempt: int,
    in_vain: Sequence[str],
) -> _Outcome:
    """The lake with the edits; what earlier attempts wrote in vain is to be removed like what the edits replace."""
    days, dropped = dict(latest.days), list(in_vain)
    objects: dict[str, bytes] = {}
    for key, own in _by_day(edits).items():
        old = days.pop(key, None)
        index, gone = _edit_day(stock, stock.read_index(old) if old else {}, own, stored)
        dropped += gone + ([old.index] if old else [])
        if index:
            name = f"{CHANGES}/{change}/index-{attempt}/{key}.json"
            objects[name] = encode_index(index)
            days[key] = Day(name, _replaced_by(change, own, old), _held(index))
    lists = latest.dropped
    if dropped:
        lists = (*lists, f"{CHANGES}/{change}/dropped-{attempt}.json")
        objects[lists[-1]] = encode_names(dropped)
    changes = (*latest.changes, change)
    root = msgspec.structs.replace(latest, generation=latest.generation + 1, days=days, changes=changes, dropped=lists)
    return _Outcome(root, objects)


def _by_day(edits: Sequence[Edit]) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        found[edit.key].append(edit)
    return found


def _replaced_by(change: str, edits: Sequence[Edit], old: Day | None) -> str:
    """The last change that replaced any of the day: this one, or the one before; '' for none."""
    if any(edit.is_replacing for edit in edits):
        return change
    return old.replaced_by if old else ""


def _edit_day(stock: Stock, index: Index, edits: Sequence[Edit], stored: Mapping[Path, Stored]) -> tuple[Index, list[str]]:
    """A day's index after the edits, and the objects that nothing refers to then."""
    changed, dropped = {table: dict(files) for table, files in index.items()}, []
    for edit in edits:
        files = changed.setdefault(edit.table, {})
        gone = edit.gone if edit.gone is not None else {name for name in files if not name.startswith(OBSERVED)}
        if not gone <= files.keys():
            raise _busy(stock, edit)
        old = {name: files.pop(name) for name in {*gone, *(file.name for file in edit.files)} & files.keys()}
        dropped += [file_name(each.change, edit.table, edit.cluster, edit.date, name) for name, each in old.items()]
        files.update({file.name: stored[file] for file in edit.files})
    return {table: files for table, files in changed.items() if files}, sorted(dropped)


def _held(index: Index) -> dict[str, Held]:
    return {
        table: Held(len(files), sum(name.startswith(OBSERVED) for name in files), sum(each.byte_count for each in files.values()))
        for table, files in sorted(index.items())
    }
