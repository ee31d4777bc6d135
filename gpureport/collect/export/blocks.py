"""Export of one UTC day from a folder or bucket of blocks into the lake, with the same rows as from a server."""

from __future__ import annotations

from datetime import date

from gpureport.collect.export import Exported, ExportSettings, fewer_samples_warning, held_sample_counts
from gpureport.collect.export.planning import window_to_read
from gpureport.collect.sources.blocks import Block, blocks_of, read_block
from gpureport.collect.sources.provenance import Origin, source_table
from gpureport.collect.staging import DayWriter, KnownSeries, RawDays
from gpureport.lake import open_lake
from gpureport.store import Place
from gpureport.values.errors import SourceError
from gpureport.values.runtime.spill import spill_folder
from gpureport.values.text.formats import counted
from gpureport.values.window import Window


def export_blocks(settings: ExportSettings, place: Place, lake: Place, day: date) -> Exported:
    """Export one day. SourceError where blocks cannot be read or have no series of the catalog."""
    window, match = window_to_read(day), settings.prometheus.match
    blocks = blocks_of(place, window, match)
    known = KnownSeries(settings.catalog)
    with spill_folder() as folder:
        raw = RawDays(folder / "raw", known)
        for block in sorted(blocks, key=lambda one: -one.start_ms):  # of samples at one time, Prometheus has the later block's
            for batch in read_block(block, settings.catalog.requested, match, _differing(block, blocks), window):
                raw.add(batch, [day])
        if day not in raw.days():
            chosen = "".join(f", {name}={value}" for name, value in match.items())
            raise SourceError(f"{place} has no series of the catalog for {day}{chosen}; check the date and its blocks")
        opened = open_lake(lake, create=True)
        held = sum(held_sample_counts(opened, settings.cluster, day).values())
        with opened.change() as change:
            tallies = DayWriter(change, settings.cluster, known, [raw], settings.keep_raw).write(day)
            samples = sum(tally.sample_count for tally in tallies.values())
            warnings = fewer_samples_warning(held, samples)
            origin = Origin("prometheus", str(place), "blocks", warnings)
            change.write("source", settings.cluster, day, source_table(tallies, settings.catalog, origin, Window.of_day(day)))
    series_count, of_blocks = sum(tally.series_count for tally in tallies.values()), f"{counted(len(blocks), 'block')} of {place}"
    return Exported(day, of_blocks, series_count, samples, warnings, is_written=True)


def _differing(block: Block, blocks: list[Block]) -> dict[str, str]:
    """Return the block's labels that other blocks lack or have with other values: they distinguish copies, as of replicas."""
    return {name: value for name, value in block.labels.items() if any(each.labels.get(name) != value for each in blocks)}
