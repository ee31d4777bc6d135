"""Export from Prometheus into the lake."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from gpureport.collect.export import Exported, ExportSettings, export_day
from gpureport.commands.work.settings import catalog_of, progress_bar
from gpureport.config import Config
from gpureport.values.errors import GpureportError, SourceError, UsageError
from gpureport.values.window import Window

_LOG = logging.getLogger(__name__)


def export(config: Config, environ: Mapping[str, str], day: date, only_if_grown: bool = False) -> Exported:
    """Export one day of the configured server into the lake."""
    if not config.prometheus.url:
        raise UsageError("no Prometheus to read; give --prometheus-url, or prometheus.url in gpureport.toml")
    with progress_bar(f"export {day}") as progress:
        return export_day(_settings(config, environ), config.lake, day, progress, only_if_grown)


def export_blocks(config: Config, blocks: str, environ: Mapping[str, str], day: date) -> None:
    """Export one day of blocks, in a folder or bucket, into the lake. Of several clusters, only the named one is read."""
    from gpureport.collect.export.blocks import export_blocks
    from gpureport.store import parse_place

    [each, *others] = config.each_cluster()
    if others or (each.prometheus.cluster_label and "cluster" not in config.model_fields_set):
        raise UsageError("blocks are read for one cluster; name it with --cluster")
    if label := each.prometheus.cluster_label:
        each = _of_label(each, label, each.cluster)
    place = config.reached_place(parse_place(blocks), environ)
    log_export(export_blocks(_settings(each, environ), place, config.lake, day))


def _settings(config: Config, environ: Mapping[str, str]) -> ExportSettings:
    return ExportSettings(
        prometheus=config.prometheus,
        environ=dict(environ),
        catalog=catalog_of(config),
        cluster=config.cluster,
        keep_raw=config.export.keep_raw,
        samples_per_group=config.export.samples_per_group,
    )


def log_export(exported: Exported) -> None:
    """Log the result of an export, with its warnings."""
    what = f"{exported.sample_count:,} samples of {exported.series_count:,} series, by {exported.read_paths}"
    _LOG.info(f"{exported.day}: {what if exported.is_written else 'nothing new'}")
    for warning in exported.warnings:
        _LOG.warning(f"{exported.day} may be partial: {warning}")
    log_unread(exported.unread)


def log_unread(unread: Mapping[str, int]) -> None:
    """Log accelerator metrics that the catalog does not know, if there are any."""
    if unread:
        named = ", ".join(f"{metric} ({count:,} series)" for metric, count in unread.items())
        _LOG.info(f"note: not read, because they are not in the catalog: {named}; add rows under [[signals]]")


def each_source(config: Config, environ: Mapping[str, str], day: date, failures: list[SourceError]) -> Iterator[Config]:
    """Yield a configuration per cluster, or per value of its ``prometheus.cluster_label``; append read errors to ``failures``."""
    for each in config.each_cluster():
        try:
            yield from clusters_by_label(each, environ, day) if each.prometheus.cluster_label else [each]
        except SourceError as error:
            failures.append(error)


def raise_first(failures: Sequence[GpureportError]) -> None:
    """Raise the failure whose exit code has priority; log the others as warnings. Call this when all else is done."""
    ordered = sorted(failures, key=lambda each: (2, 5, 1, 4, 3).index(each.exit_code))
    for failure in ordered[1:]:
        _LOG.warning(failure)
    if ordered:
        raise ordered[0]


def clusters_by_label(config: Config, environ: Mapping[str, str], day: date) -> list[Config]:
    """Return a configuration per cluster of a server with several, by ``prometheus.cluster_label``; or only the named cluster.

    A server whose series lack the label is one cluster, named by its external labels. UsageError where these lack it too.
    """
    from gpureport.collect.sources.prometheus import external_labels, label_values, open_connection

    label = config.prometheus.cluster_label
    connection = open_connection(config.prometheus, environ)
    names = label_values(connection, label, catalog_of(config).requested, Window.of_day(day))
    if not names:
        if label not in (external := external_labels(connection)):
            raise UsageError(f"neither the series of {connection.url} nor its external labels have {label!r}; set cluster")
        return [config.model_copy(update={"cluster": external[label]})]
    is_chosen = config.cluster in names and "cluster" in config.model_fields_set and not config.clusters
    return [_of_label(config, label, name) for name in ([config.cluster] if is_chosen else names)]


def _of_label(config: Config, label: str, name: str) -> Config:
    """Return the configuration of the cluster that a label names, on a server with several."""
    server = config.prometheus.model_copy(update={"match": {**config.prometheus.match, label: name}})
    return config.model_copy(update={"cluster": name, "prometheus": server})
