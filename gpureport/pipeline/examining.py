"""What a server, a cluster or a lake has and lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from gpureport.compute import connection
from gpureport.config import Config
from gpureport.errors import IncompleteError, SourceError, UsageError
from gpureport.lake import open_lake
from gpureport.pipeline.collecting import catalog_of, clusters_by_label
from gpureport.row_printing import Output
from gpureport.sources.kubernetes import NoClusterError, open_cluster

if TYPE_CHECKING:
    from gpureport.doctor import Evidence, Finding


@dataclass(frozen=True)
class LakeDay:
    """A day of a lake to be looked at; without a cluster the only one that it holds."""

    day: date
    cluster: str | None


@dataclass(frozen=True)
class Look:
    """What is looked at: a lake's day, or the servers at an instant, with the state also Kubernetes."""

    at: datetime
    lake_day: LakeDay | None = None
    with_state: bool = False


@dataclass(frozen=True)
class _Examined:
    """What was found of a cluster; ``failure`` is what could not be read of it."""

    cluster: str
    findings: tuple[Finding, ...] = ()
    sentence: str = ""
    failure: SourceError | None = None


def doctor(config: Config, environ: Mapping[str, str], look: Look, output: Output) -> str:
    """Print what each configured cluster (or a lake's day) has and lacks; the verdict.

    IncompleteError, with the verdict, where a report would lack figures. What cannot be read is raised when the rest is printed.
    """
    # Imported here: no other command should wait for it.
    from gpureport.doctor import print_findings

    found = list(_each_examined(config, environ, look))
    seen = {each.cluster: each.findings for each in found if each.sentence}
    failures = [each.failure for each in found if each.failure]
    if seen:
        print_findings(seen, output, sys.stdout)
    sentences = [f"{each.cluster}: {each.sentence}" if len(found) > 1 else each.sentence for each in found if each.sentence]
    for line in (*sentences, *(f"warning: {failure}" for failure in failures[1:])) if failures else ():
        print(line, file=sys.stderr)
    if failures:
        raise failures[0]
    sentence = "; ".join(sentences)
    if any(finding.is_loss for findings in seen.values() for finding in findings):
        raise IncompleteError(sentence)
    return sentence


def _each_examined(config: Config, environ: Mapping[str, str], look: Look) -> Iterator[_Examined]:
    """The clusters as a run takes them, one after the other."""
    for each in [config] if look.lake_day else config.each_cluster():
        is_told_apart = each.prometheus.url and each.prometheus.cluster_label and not look.lake_day
        try:
            day = (look.at - timedelta(microseconds=1)).date()
            sources = clusters_by_label(each, environ, day) if is_told_apart else [each]
        except SourceError as failure:
            yield _Examined(each.cluster, failure=failure)
            continue
        for source in sources:
            yield _examine(source, environ, look)


def _examine(config: Config, environ: Mapping[str, str], look: Look) -> _Examined:
    """One cluster's findings and verdict. UsageError where none of its servers is named."""
    from gpureport.doctor import beside, conclusion, examine

    try:
        telemetry = _look_at_telemetry(config, environ, look)
    except SourceError as failure:
        return _Examined(config.cluster, failure=failure)
    state, failed = _look_at_state(config, environ) if look.with_state and config.kubernetes.enabled else (None, None)
    evidence = beside(telemetry, state) if telemetry and state else telemetry or state
    if evidence is None and failed is None:
        raise UsageError("nothing to look at; give --prometheus-url, --kubeconfig or both, or --lake with --date")
    if evidence is None:
        return _Examined(config.cluster, failure=failed)
    for warning in evidence.warnings:
        print(f"warning: the answer may be partial: {warning}", file=sys.stderr)
    findings = tuple(examine(evidence, catalog_of(config), config.export.backfill_days))
    return _Examined(config.cluster, findings, conclusion(findings, evidence), failed)


def _look_at_telemetry(config: Config, environ: Mapping[str, str], look: Look) -> Evidence | None:
    """What a lake's day or the configured server holds; None where neither is named."""
    from gpureport.doctor import look_at_lake, look_at_server
    from gpureport.sources.prometheus import open_connection

    if look.lake_day:
        with connection(config.compute.memory_limit, config.compute.threads) as con:
            return look_at_lake(con, open_lake(config.lake), look.lake_day.cluster, look.lake_day.day, catalog_of(config))
    if not config.prometheus.url:
        return None
    server = open_connection(config.prometheus, environ)
    return look_at_server(server, catalog_of(config), look.at, config.prometheus.match)


def _look_at_state(config: Config, environ: Mapping[str, str]) -> tuple[Evidence | None, SourceError | None]:
    """What the cluster shows, or why it cannot be read; neither where none is named."""
    from gpureport.doctor import look_at_cluster

    try:
        return look_at_cluster(open_cluster(config.kubernetes, environ)), None
    except NoClusterError:
        return None, None
    except SourceError as error:
        return None, error
