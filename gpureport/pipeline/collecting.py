"""Servers and files into the lake: export, import, and the state of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from gpureport import file_import, snapshot
from gpureport.config import Config
from gpureport.errors import SourceError, UsageError
from gpureport.export import Exported, ExportSettings, export_day
from gpureport.file_import import Imported
from gpureport.pipeline.progress import progress_bar
from gpureport.pipeline.settings import catalog_of, export_engine
from gpureport.snapshot import Snapshot
from gpureport.sources.kubernetes import HOW_TO_NAME_A_CLUSTER, NoClusterError, open_cluster, read_observed_at
from gpureport.window import Window, rfc3339

Say = Callable[[str], None]


def export(config: Config, environ: Mapping[str, str], day: date, only_if_grown: bool = False) -> Exported:
    """One day of the configured server into the lake."""
    if not config.prometheus.url:
        raise UsageError("no Prometheus to read; give --prometheus-url, or prometheus.url in gpureport.toml")
    settings = ExportSettings(
        prometheus=config.prometheus,
        environ=dict(environ),
        catalog=catalog_of(config),
        cluster=config.cluster,
        samples_per_group=config.export.samples_per_group,
        keep_raw=config.export.keep_raw,
    )
    with progress_bar(f"export {day}") as progress:
        return export_day(settings, config.lake, day, progress, only_if_grown, export_engine(config))


def describe_export(exported: Exported) -> list[str]:
    """What an export did, a line each; its warnings too."""
    what = f"{exported.sample_count:,} samples of {exported.series_count:,} series, by {exported.read_paths}"
    lines = [f"{exported.day}: {what}" if exported.is_written else f"{exported.day}: nothing new"]
    return lines + [f"warning: {exported.day} may be partial: {warning}" for warning in exported.warnings]


def clusters_by_label(config: Config, environ: Mapping[str, str], day: date) -> list[Config]:
    """A configuration per cluster of a server that holds several, told apart by ``prometheus.cluster_label``.

    A server whose series do not bear the label is one cluster, which its external labels name. UsageError where they do not.
    """
    from gpureport.sources.prometheus import external_labels, label_values, open_connection

    label = config.prometheus.cluster_label
    connection = open_connection(config.prometheus, environ)
    names = label_values(connection, label, catalog_of(config).asked, Window.of_day(day))
    if not names:
        if label not in (external := external_labels(connection)):
            raise UsageError(f"neither the series of {connection.url} nor its external labels bear {label!r}; set cluster")
        return [config.model_copy(update={"cluster": external[label]})]
    found = []
    for name in names:
        prometheus = config.prometheus.model_copy(update={"match": {**config.prometheus.match, label: name}})
        found.append(config.model_copy(update={"cluster": name, "prometheus": prometheus}))
    return found


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
