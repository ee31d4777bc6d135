"""Export from blocks: one UTC day of a folder or bucket of them into the lake, the same rows as from a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from gpureport.collect.export import Exported, held_sample_counts, lessened
from gpureport.collect.export.planning import window_asked
from gpureport.collect.sources.blocks import Block, blocks_of, read_block
from gpureport.collect.sources.provenance import Origin, source_table
from gpureport.collect.staging import DayWriter, KnownSeries, RawDays
from gpureport.lake import open_lake
from gpureport.store import Place
from gpureport.values.catalog import Catalog
from gpureport.values.errors import SourceError
from gpureport.values.runtime.spill import spill_folder
from gpureport.values.window import Window


@dataclass(frozen=True)
class BlockSettings:
    """Place of the blocks, and the series to read from them."""

    place: Place
    catalog: Catalog
    cluster: str
    match: Mapping[str, str]
    keep_raw: bool


def export_blocks(settings: BlockSettings, lake: Place, day: date) -> Exported:
    """Write one day's partitions whole. SourceError where blocks cannot be read, or hold none of the catalog's series."""
    window = window_asked(day)
    blocks = blocks_of(settings.place, window, settings.match)
    known = KnownSeries(settings.catalog)
    with spill_folder() as folder:
        raw = RawDays(folder / "raw", known)
        for block in blocks:
            for batch in read_block(block, settings.catalog.asked, settings.match, _differing(block, blocks), window):
                raw.add(batch, [day])
        if day not in raw.days():
            raise SourceError(f"{settings.place} holds no series of the catalog for {day}; check the date and its blocks")
        opened = open_lake(lake, create=True)
        held = sum(held_sample_counts(opened, settings.cluster, day).values())
        with opened.change() as change:
            tallies = DayWriter(change, settings.cluster, known, [raw], settings.keep_raw).write(day)
            samples = sum(tally.sample_count for tally in tallies.values())
            warnings = lessened(held, samples)
            origin = Origin("prometheus", str(settings.place), "blocks", warnings)
            change.write("source", settings.cluster, day, source_table(tallies, settings.catalog, origin, Window.of_day(day)))
    series_count, of_blocks = sum(tally.series_count for tally in tallies.values()), f"{len(blocks)} blocks of {settings.place}"
    return Exported(day, of_blocks, series_count, samples, warnings, is_written=True)


def _differing(block: Block, blocks: list[Block]) -> dict[str, str]:
    """The block's own labels that not all of the blocks have: they tell copies apart, of replicas say."""
    return {name: value for name, value in block.labels.items() if any(each.labels.get(name) != value for each in blocks)}
