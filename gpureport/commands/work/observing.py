"""Files, and the state of Kubernetes, into the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpureport.collect import file_import, snapshot
from gpureport.collect.file_import import Imported
from gpureport.collect.snapshot import Snapshot
from gpureport.collect.sources.kubernetes import HOW_TO_NAME_A_CLUSTER, NoClusterError, open_cluster, read_observed_at
from gpureport.commands.work.settings import catalog_of
from gpureport.config import Config
from gpureport.values.errors import GpureportError, SourceError
from gpureport.values.window import rfc3339

Say = Callable[[str], None]


def import_files(config: Config, files: Sequence[Path], now: datetime) -> Imported:
    """OpenMetrics files into the lake."""
    return file_import.import_files(config.lake, files, config.cluster, catalog_of(config), now)


def import_state(config: Config, folder: Path, observed_at: datetime | None, now: datetime) -> Snapshot:
    """A folder of Kubernetes replies into the lake; without a time, that of its ``observed_at.txt``."""
    return snapshot.import_folder(config.lake, folder, config.cluster, observed_at or read_observed_at(folder), now)


def take_snapshots(configs: Sequence[Config], environ: Mapping[str, str], now: datetime, say: Say) -> None:
    """The state of each cluster at this moment into the lake; a failure of one is raised when the others are read."""
    from gpureport.commands.work.job_metrics import publish_snapshot  # a snapshot beside an export should not wait for it

    failures = []
    for config in configs:
        failure: GpureportError | None = None
        try:
            taken = _take(config, environ, now)
            failure = taken.failure
            for line in describe_snapshot(taken):
                say(line)
        except GpureportError as error:
            failure = error
        publish_snapshot(config.metrics, config.cluster, now, failure, lambda text: say(f"warning: {text}"))
        failures += [failure] if failure else []
    for failure in failures[1:]:
        say(f"warning: {failure}")
    if failures:
        raise failures[0]


def _take(config: Config, environ: Mapping[str, str], now: datetime) -> Snapshot:
    return snapshot.take_snapshot(config.lake, open_cluster(config.kubernetes, environ), config.cluster, now)


@dataclass(frozen=True)
class Beside:
    """Result of a snapshot beside a larger job: lines to print, and an error to raise, when the job is done."""

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
        taken = _take(config, environ, now)
        return Beside(tuple(describe_snapshot(taken)), taken.failure)
    except NoClusterError:
        return Beside(
            (f"no Kubernetes cluster to read, so claims and quotas stay unknown; {HOW_TO_NAME_A_CLUSTER}, or --no-kubernetes",)
        )
    except SourceError as error:
        return Beside(failure=error)


def describe_snapshot(taken: Snapshot) -> list[str]:
    """Result of an observation, a line each, with what is missing or partial."""
    counts = [f"{taken.row_counts.get(name, 0):,} in {name}" for name in ("node", "pod", "device", "claim", "quota")]
    lines = [f"state of {rfc3339(taken.observed_at)} from {taken.origin}: {', '.join(counts)}"]
    if taken.refused:
        lines.append(f"warning: not allowed to list {', '.join(taken.refused)}; see the rules in docs/operations.md")
    return lines + [f"warning: {each.asked}: {warning}" for each in taken.listed for warning in each.warnings]
