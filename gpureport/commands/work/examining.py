"""Findings of ``doctor`` on a server, a cluster or a lake."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from gpureport.collect.sources.kubernetes import NoClusterError, open_cluster
from gpureport.commands.work.collecting import clusters_by_label, raise_first
from gpureport.commands.work.reporting import compute
from gpureport.commands.work.settings import catalog_of
from gpureport.compute.query import connection
from gpureport.config import Config
from gpureport.lake import Lake, Partition, open_lake
from gpureport.lake.check import Damage, damaged_files, remedy
from gpureport.lake.root import day_key, day_of
from gpureport.values.errors import IncompleteError, LakeError, SourceError, UsageError
from gpureport.values.text.rows import Output, print_rows

if TYPE_CHECKING:
    from gpureport.doctor import Evidence, Finding
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class LakeDay:
    """A day of a lake; without ``cluster`` the lake must have only one."""

    day: date
    cluster: str | None


@dataclass(frozen=True)
class Scope:
    """Target of ``doctor``: a day of a lake, or the servers at an instant; ``with_state`` adds Kubernetes."""

    at: datetime
    lake_day: LakeDay | None = None
    with_state: bool = False


@dataclass(frozen=True)
class _Examined:
    """Findings on a cluster; ``failure`` is the error of a part that could not be read."""

    cluster: str
    findings: tuple[Finding, ...] = ()
    sentence: str = ""
    failure: SourceError | None = None


def doctor(config: Config, environ: Mapping[str, str], scope: Scope, output: Output) -> str:
    """Print what each configured cluster (or a lake's day) has and lacks; return the verdict.

    IncompleteError, with the verdict, where a report would lack figures. Read errors are raised after everything is printed.
    """
    # Slow to import, and only used here.
    from gpureport.doctor import print_findings

    found = list(_each_examined(config, environ, scope))
    seen = {each.cluster: each.findings for each in found if each.sentence}
    failures = [each.failure for each in found if each.failure]
    if seen:
        print_findings(seen, output, sys.stdout)
    sentences = [f"{each.cluster}: {each.sentence}" if len(found) > 1 else each.sentence for each in found if each.sentence]
    for line in sentences if failures else ():
        _LOG.info(line)
    raise_first(failures)
    sentence = "; ".join(sentences)
    if any(finding.is_loss for findings in seen.values() for finding in findings):
        raise IncompleteError(sentence)
    return sentence


def _each_examined(config: Config, environ: Mapping[str, str], scope: Scope) -> Iterator[_Examined]:
    """Examine the clusters one by one, as a run reads them."""
    for each in [config] if scope.lake_day else config.each_cluster():
        has_cluster_label = each.prometheus.url and each.prometheus.cluster_label and not scope.lake_day
        try:
            day = (scope.at - timedelta(microseconds=1)).date()
            sources = clusters_by_label(each, environ, day) if has_cluster_label else [each]
        except SourceError as failure:
            yield _Examined(each.cluster, failure=failure)
            continue
        for source in sources:
            yield _examine(source, environ, scope)


def _examine(config: Config, environ: Mapping[str, str], scope: Scope) -> _Examined:
    """Return one cluster's findings and verdict. UsageError where none of its servers is configured."""
    from gpureport.doctor import combine_evidence, conclusion, examine

    try:
        telemetry = _examine_telemetry(config, environ, scope)
    except SourceError as failure:
        return _Examined(config.cluster, failure=failure)
    state, failed = _examine_state(config, environ) if scope.with_state and config.kubernetes.enabled else (None, None)
    evidence = combine_evidence(telemetry, state) if telemetry and state else telemetry or state
    if evidence is None and failed is None:
        raise UsageError("nothing to examine; give --prometheus-url, --kubeconfig or both, or --lake with --date")
    if evidence is None:
        return _Examined(config.cluster, failure=failed)
    for warning in evidence.warnings:
        _LOG.warning(f"the answer may be partial: {warning}")
    findings = tuple(examine(evidence, catalog_of(config), config.export.backfill_days))
    return _Examined(config.cluster, findings, conclusion(findings, evidence), failed)


def _examine_telemetry(config: Config, environ: Mapping[str, str], scope: Scope) -> Evidence | None:
    """Return the signals of a lake's day or of the configured server; None without either."""
    from gpureport.collect.sources.prometheus import open_connection
    from gpureport.doctor import examine_lake, examine_server

    if scope.lake_day:
        with connection(config.compute.memory_limit, config.compute.threads) as con:
            return examine_lake(con, open_lake(config.lake), scope.lake_day.cluster, scope.lake_day.day, catalog_of(config))
    if not config.prometheus.url:
        return None
    server = open_connection(config.prometheus, environ)
    return examine_server(server, catalog_of(config), scope.at, config.prometheus.match)


def _examine_state(config: Config, environ: Mapping[str, str]) -> tuple[Evidence | None, SourceError | None]:
    """Return the state of Kubernetes, or the reason why it cannot be read; neither where no cluster is configured."""
    from gpureport.doctor import examine_cluster

    try:
        return examine_cluster(open_cluster(config.kubernetes, environ)), None
    except NoClusterError:
        return None, None
    except SourceError as error:
        return None, error


def examine_files(config: Config, is_repairing: bool, output: Output) -> str:
    """Print damaged or missing files of the lake, and the repair of each; return the verdict.

    IncompleteError, with the verdict, where damaged files remain. A repair computes facts again. It removes damaged snapshots
    from the lake, and all samples of a day with damaged samples.
    """
    lake = open_lake(config.lake)
    found = damaged_files(lake.storage, lake.root)
    rows = [[each.table, *map(str, day_of(each.key)), each.stored.name, each.what, remedy(lake.storage, each)] for each in found]
    if rows:
        print_rows(["table", "cluster", "date", "file", "damage", "repair"], rows, output, sys.stdout)
    damaged = [each for each in found if not each.is_copy]
    count = len(lake.root.names())
    if not damaged:
        return f"all {count:,} files of the lake at {lake} are intact"
    if is_repairing:
        return repair(config, lake, damaged)
    file_count = len({each.stored.name for each in damaged})
    raise IncompleteError(f"{file_count:,} of {count:,} files of the lake at {lake} are damaged or missing; see above")


def repair(config: Config, lake: Lake, damaged: Sequence[Damage]) -> str:
    """Remove unreadable files from the lake, and all samples of their day; compute facts again. Return the verdict."""
    sampled = {each.key for each in damaged if each.is_samples}
    lake.remove(
        each
        for table in lake.tables()
        for each in lake.partitions(table)
        if not table.startswith("facts/") and day_key(each.cluster, each.date) in sampled
    )
    lake.remove(Partition(each.table, *day_of(each.key), (each.stored,), lake) for each in damaged if each.stored.is_observed)
    failures = [*_recompute(config, sorted({day_of(each.key) for each in damaged if each.table.startswith("facts/")}))]
    again = ", ".join(f"{cluster} {day}" for cluster, day in sorted(map(day_of, sampled)))
    if failures:
        raise IncompleteError(
            f"facts of {', '.join(failures)} stay damaged, because their samples are gone; restore the files from a backup"
        )
    return f"{len(damaged):,} files are repaired or taken out of the lake{f'; export or import again: {again}' if again else ''}"


def _recompute(config: Config, days: Sequence[tuple[str, date]]) -> Iterator[str]:
    """Compute the days; yield those that cannot be computed."""
    for cluster, day in days:
        try:
            for line in compute(config, [day], cluster):
                _LOG.info(line)
        except LakeError as error:
            _LOG.warning(error)
            yield f"{cluster} {day}"
