"""Blocks of a place with samples of a window, by their own metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpureport.store import Bucket, ObjectAddress, Place
from gpureport.values.errors import SourceError
from gpureport.values.series import Labels
from gpureport.values.window import Window

_META = "meta.json"


@dataclass(frozen=True)
class Block:
    """One block: its folder within the place, its time [start, end), and the labels that whoever uploaded it added."""

    place: Place
    name: str
    start_ms: int
    end_ms: int
    resolution_ms: int
    labels: Labels = field(default_factory=dict)

    def file(self, name: str) -> Path | None:
        """A file of the block on this machine; downloaded from a bucket. None where there is none."""
        if isinstance(self.place, ObjectAddress):
            path = Bucket(self.place).bring(f"{self.name}/{name}")
        else:
            path = self.place / self.name / name
        return path if path.exists() else None

    def segments(self) -> list[str]:
        """The names of the files that hold its chunks, in order."""
        if isinstance(self.place, ObjectAddress):
            found = (each.name.rpartition("/")[2] for each in Bucket(self.place).objects(f"{self.name}/chunks"))
        else:
            found = (each.name for each in (self.place / self.name / "chunks").glob("*"))
        return sorted(name for name in found if name.isdigit())

    def __str__(self) -> str:
        return f"block {self.name} of {self.place}"


def blocks_of(place: Place, window: Window, match: Mapping[str, str]) -> list[Block]:
    """The blocks with samples of the window and, where they have them, the labels of ``match``.

    SourceError where there is none, or a part of the window is only in downsampled ones: they hold no raw samples.
    """
    metas = [(name, _meta(place, name, text)) for name, text in _metas(place)]
    if not metas:
        raise SourceError(f"{place} holds no blocks; name the folder that has them, each with its {_META}")
    blocks = [_block(place, name, meta) for name, meta in sorted(metas)]
    found = [each for each in blocks if _is_wanted(each, window, match)]
    raw = [each for each in found if not each.resolution_ms]
    for each in found:
        if each.resolution_ms and not _is_covered(each, window, raw):
            raise SourceError(
                f"{each} is downsampled to {each.resolution_ms // 1000} s: it holds no raw samples; "
                "name blocks of full resolution, or export a day that Thanos still has at full resolution"
            )
    return raw


def _is_wanted(block: Block, window: Window, match: Mapping[str, str]) -> bool:
    overlaps = block.start_ms < window.end_ms and block.end_ms > window.start_ms
    return overlaps and all(block.labels.get(name, value) == value for name, value in match.items())


def _is_covered(block: Block, window: Window, raw: Sequence[Block]) -> bool:
    reached = max(block.start_ms, window.start_ms)
    for each in sorted(raw, key=lambda one: one.start_ms):
        if each.start_ms <= reached:
            reached = max(reached, each.end_ms)
    return reached >= min(block.end_ms, window.end_ms)


def _metas(place: Place) -> Iterator[tuple[str, bytes]]:
    names: Iterable[str]
    if isinstance(place, ObjectAddress):
        bucket = Bucket(place)
        names = [each.name for each in bucket.objects() if each.name.count("/") == 1 and each.name.endswith(f"/{_META}")]
        found = ((name, bucket.get(name)) for name in names)
        yield from ((name.partition("/")[0], each.data) for name, each in found if each)
    else:
        yield from ((path.parent.name, path.read_bytes()) for path in sorted(place.glob(f"*/{_META}")))


def _meta(place: Place, name: str, text: bytes) -> Mapping[str, Any]:
    try:
        meta = json.loads(text)
        if meta["version"] == 1:
            return dict(meta)
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{place}/{name}/{_META} is damaged ({error}); remove the block, or copy it again") from error
    raise SourceError(f"{place}/{name}/{_META} has version {meta['version']}; this gpureport reads version 1")


def _block(place: Place, name: str, meta: Mapping[str, Any]) -> Block:
    thanos = meta.get("thanos", {})
    resolution = int(thanos.get("downsample", {}).get("resolution", 0))
    return Block(place, name, int(meta["minTime"]), int(meta["maxTime"]), resolution, dict(thanos.get("labels") or {}))
