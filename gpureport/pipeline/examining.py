"""What a server, a cluster or a lake has and lacks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from gpureport.catalog import Catalog
from gpureport.compute import connection
from gpureport.config import Config
from gpureport.errors import IncompleteError, SourceError, UsageError
from gpureport.lake import open_lake
from gpureport.pipeline.settings import catalog_of
from gpureport.row_printing import Output
from gpureport.sources.kubernetes import NoClusterError, open_cluster

if TYPE_CHECKING:
    from gpureport.doctor import Evidence


@dataclass(frozen=True)
class LakeDay:
    """A day of a lake to be looked at; without a cluster the only one that it holds."""

    day: date
    cluster: str | None


def doctor(
    config: Config, environ: Mapping[str, str], lake_day: LakeDay | None, at: datetime, output: Output, with_state: bool = False
) -> str:
    """Print what a server (at an instant) or a lake (a day) has and lacks, with the state also the cluster; the verdict.

    IncompleteError, with the verdict, where a report would lack figures. Where only the cluster cannot be read, that is
    raised after the rest was printed.
    """
    # Imported here: no other command should wait for it.
    from gpureport.doctor import beside, conclusion, examine, print_findings

    catalog = catalog_of(config)
    telemetry = _look_at_telemetry(config, environ, lake_day, at, catalog)
    state, failure = _look_at_state(config, environ) if with_state else (None, None)
    evidence = beside(telemetry, state) if telemetry and state else telemetry or state
    if evidence is None:
        raise failure or UsageError("nothing to look at; give --prometheus-url, --kubeconfig or both, or --lake with --date")
    for warning in evidence.warnings:
        print(f"warning: the answer may be partial: {warning}", file=sys.stderr)
    found = examine(evidence, catalog, config.export.backfill_days)
    print_findings(found, output, sys.stdout)
    sentence = conclusion(found, evidence)
    if failure:
        print(sentence, file=sys.stderr)
        raise failure
    if any(finding.is_loss for finding in found):
        raise IncompleteError(sentence)
    return sentence


def _look_at_telemetry(
    config: Config, environ: Mapping[str, str], lake_day: LakeDay | None, at: datetime, catalog: Catalog
) -> Evidence | None:
    """What a lake's day or the configured server holds; None where neither is named."""
    from gpureport.doctor import look_at_lake, look_at_server
    from gpureport.sources.prometheus import open_connection

    if lake_day:
        with connection(config.compute.memory_limit, config.compute.threads) as con:
            return look_at_lake(con, open_lake(config.lake), lake_day.cluster, lake_day.day, catalog)
    return look_at_server(open_connection(config.prometheus, environ), catalog, at) if config.prometheus.url else None


def _look_at_state(config: Config, environ: Mapping[str, str]) -> tuple[Evidence | None, SourceError | None]:
    """What the cluster shows, or why it cannot be read; neither where none is named."""
    from gpureport.doctor import look_at_cluster

    try:
        return look_at_cluster(open_cluster(config.kubernetes, environ)), None
    except NoClusterError:
        return None, None
    except SourceError as error:
        return None, error
