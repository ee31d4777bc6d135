"""Files, and the state of Kubernetes, into the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpureport import file_import, snapshot
from gpureport.config import Config
from gpureport.errors import SourceError
from gpureport.file_import import Imported
from gpureport.pipeline.collecting import catalog_of
from gpureport.snapshot import Snapshot
from gpureport.sources.kubernetes import HOW_TO_NAME_A_CLUSTER, NoClusterError, open_cluster, read_observed_at
from gpureport.window import rfc3339

Say = Callable[[str], None]


def import_files(config: Config, files: Sequence[Path], now: datetime) -> Imported:
    """OpenMetrics files into the lake."""
    return file_import.import_files(config.lake, files, config.cluster, catalog_of(config), now)


def import_state(config: Config, folder: Path, observed_at: datetime | None, now: datetime) -> Snapshot:
    """A folder of Kubernetes replies into the lake; without a time, that of its ``observed_at.txt``."""
    return snapshot.import_folder(config.lake, folder, config.cluster, observed_at or read_observed_at(folder), now)


def take_snapshot(config: Config, environ: Mapping[str, str], now: datetime) -> Snapshot:
    """The state of the configured cluster at this moment into the lake."""
    return snapshot.take_snapshot(config.lake, open_cluster(config.kubernetes, environ), config.cluster, now)


@dataclass(frozen=True)
class Beside:
    """What came of a snapshot that was taken beside a larger job: what to say, and what to raise, when that is done."""

    lines: tuple[str, ...] = ()
    failure: SourceError | None = None

    def conclude(self, say: Say) -> None:
        """Say what there is to say; raise what went wrong."""
        for line in self.lines:
            say(line)
        if self.failure:
            raise self.failure


def snapshot_beside(config: Config, environ: Mapping[str, str], now: datetime) -> Beside:
    """A snapshot where a cluster is configured; a source that fails is kept for later, so that the job is done first."""
    try:
        return Beside(tuple(describe_snapshot(take_snapshot(config, environ, now))))
    except NoClusterError:
        return Beside(
            (f"no Kubernetes cluster to read, so claims and quotas stay unknown; {HOW_TO_NAME_A_CLUSTER}, or --no-kubernetes",)
        )
    except SourceError as error:
        return Beside(failure=error)


def describe_snapshot(taken: Snapshot) -> list[str]:
    """What an observation brought, a line each; what is missing or partial too."""
    counts = [f"{taken.row_counts.get(name, 0):,} in {name}" for name in ("node", "pod", "device", "claim", "quota")]
    lines = [f"state of {rfc3339(taken.observed_at)} from {taken.origin}: {', '.join(counts)}"]
    if taken.refused:
        lines.append(f"warning: not allowed to list {', '.join(taken.refused)}; see the rules in docs/operations.md")
    return lines + [f"warning: {each.asked}: {warning}" for each in taken.listed for warning in each.warnings]
