"""Import of files and of the state of Kubernetes into the lake."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gpureport.collect import file_import, snapshot
from gpureport.collect.file_import import Imported
from gpureport.collect.snapshot import Snapshot
from gpureport.collect.sources.kubernetes import HOW_TO_NAME_A_CLUSTER, NoClusterError, open_cluster, read_observed_at
from gpureport.commands.work.collecting import raise_first
from gpureport.commands.work.settings import catalog_of
from gpureport.config import Config
from gpureport.values.errors import GpureportError, SourceError
from gpureport.values.window import rfc3339

_LOG = logging.getLogger(__name__)


def import_files(config: Config, files: Sequence[Path], now: datetime) -> Imported:
    """Import OpenMetrics files into the lake."""
    return file_import.import_files(config.lake, files, config.cluster, catalog_of(config), now)


def import_state(config: Config, folder: Path, observed_at: datetime | None, now: datetime) -> Snapshot:
    """Import a folder of Kubernetes replies into the lake; without a time, use that of its ``observed_at.txt``."""
    return snapshot.import_folder(config.lake, folder, config.cluster, observed_at or read_observed_at(folder), now)


def take_snapshots(configs: Sequence[Config], environ: Mapping[str, str], now: datetime) -> None:
    """Take a snapshot of each cluster into the lake; raise a failure after all clusters are read."""
    from gpureport.commands.work.job_metrics import publish_snapshot  # slow to import, and only used here

    failures = list[GpureportError]()
    for config in configs:
        try:
            taken = _take(config, environ, now)
            log_snapshot(taken)
            failure: GpureportError | None = taken.failure
        except GpureportError as error:
            failure = error
        publish_snapshot(config.metrics, config.cluster, now, failure)
        failures += [failure] if failure else []
    raise_first(failures)


def _take(config: Config, environ: Mapping[str, str], now: datetime) -> Snapshot:
    return snapshot.take_snapshot(config.lake, open_cluster(config.kubernetes, environ), config.cluster, now)


def try_snapshot(config: Config, environ: Mapping[str, str], now: datetime) -> Snapshot | SourceError | NoClusterError:
    """Take a snapshot as part of a larger job; return an error instead of raising it, so that the job goes on."""
    try:
        return _take(config, environ, now)
    except (NoClusterError, SourceError) as error:
        return error


def log_tried_snapshot(taken: Snapshot | SourceError | NoClusterError) -> list[SourceError]:
    """Log a snapshot of a larger job; return its failure, to be raised at the end. A missing cluster is no failure."""
    if isinstance(taken, NoClusterError):
        _LOG.info(
            f"no Kubernetes cluster to read, so claims and quotas stay unknown; {HOW_TO_NAME_A_CLUSTER}, or --no-kubernetes"
        )
        return []
    if isinstance(taken, Snapshot):
        log_snapshot(taken)
        return [taken.failure] if taken.failure else []
    return [taken]


def log_snapshot(taken: Snapshot) -> None:
    """Log what was observed, and what is missing or partial."""
    counts = [f"{taken.row_counts.get(name, 0):,} in {name}" for name in ("node", "pod", "device", "claim", "quota")]
    _LOG.info(f"state of {rfc3339(taken.observed_at)} from {taken.origin}: {', '.join(counts)}")
    if taken.refused:
        _LOG.warning(f"not allowed to list {', '.join(taken.refused)}; see the rules in docs/operations.md")
    for each in taken.listed:
        for warning in each.warnings:
            _LOG.warning(f"{each.name}: {warning}")
