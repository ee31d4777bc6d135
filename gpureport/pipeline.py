"""The stages in order: what each command does with a configuration. The only place where stages meet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import DuckDBPyConnection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpureport import file_import, findings, snapshot
from gpureport.carbon import intensities
from gpureport.catalog import Catalog, load_catalog
from gpureport.compute import (
    KEPT,
    ComputeSettings,
    ReportSettings,
    compute_day,
    connection,
    facts_hash,
    failed_checks,
    report_tables,
)
from gpureport.config import Config
from gpureport.documents.schema import render_schema
from gpureport.errors import CoverageError, FindingError, IncompleteError, LakeError, OutputError, SourceError, UsageError
from gpureport.export import Exported, ExportSettings, export_day
from gpureport.facts.look_back import window_before
from gpureport.facts.quotas import quota_lake
from gpureport.file_import import Imported
from gpureport.lake import Lake, open_lake, views
from gpureport.query import Query, load
from gpureport.resources import RECORDING
from gpureport.row_printing import Output
from gpureport.snapshot import Snapshot
from gpureport.sources.kubernetes import HOW_TO_NAME_A_CLUSTER, NoClusterError, open_cluster, read_observed_at
from gpureport.sql_prompt import answer, prompt
from gpureport.tables import TABLES
from gpureport.window import Window, day_start, parse_date, parse_instant, rfc3339

if TYPE_CHECKING:
    from gpureport.doctor import Evidence
    from gpureport.report.header import Header
    from gpureport.whatif import Question

DEMO_CLUSTER = "h200-recording"
DEMO_MONTH = date(2026, 10, 1)
DEMO_WINDOW = Window(parse_instant("2026-11-20T23:51:40Z"), parse_instant("2026-11-20T23:59:40Z"))

Say = Callable[[str], None]


@dataclass(frozen=True)
class LakeDay:
    """A day of a lake to be looked at; without a cluster the only one that it holds."""

    day: date
    cluster: str | None


def demo(config: Config, out: Path, now: datetime) -> list[Path]:
    """The bundled recording through every stage; the files written. The lake stands in ``out/lake``."""
    own = config.model_copy(update={"lake": out / "lake", "cluster": DEMO_CLUSTER})
    import_files(own, [RECORDING / "metrics.openmetrics.txt.gz"], max(now, DEMO_WINDOW.end_at))
    compute(own, DEMO_WINDOW.start_at.date())
    return report(own, DEMO_WINDOW, out, now)


def demo_month(config: Config, out: Path, now: datetime, days: int = 30) -> list[Path]:
    """A simulated month of 24 GPUs through compute and report; the files written, ``truth.json`` of what was planted last."""
    from gpureport.simulate import fill_lake, review_plan, write_truth

    plan = review_plan(24, days, DEMO_MONTH)
    own = config.model_copy(update={"lake": out / "lake", "cluster": "simulated"})
    with out_errors(out):
        fill_lake(plan, own.lake, own.cluster)
        truth = write_truth(plan, out)
    with _progress("compute a month") as progress:
        for number, day in enumerate(plan.dates):
            compute(own, day)
            progress(number + 1, plan.days)
    return [*report(own, plan.window, out, now), truth]


def import_files(config: Config, files: Sequence[Path], now: datetime) -> Imported:
    """OpenMetrics files into the lake."""
    return file_import.import_files(config.lake, files, config.cluster, _catalog(config), now)


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


def export(config: Config, environ: Mapping[str, str], day: date, only_if_grown: bool = False) -> Exported:
    """One day of the configured server into the lake."""
    if not config.prometheus.url:
        raise UsageError("no Prometheus to read; give --prometheus-url, or prometheus.url in gpureport.toml")
    settings = ExportSettings(
        prometheus=config.prometheus,
        environ=dict(environ),
        catalog=_catalog(config),
        cluster=config.cluster,
        samples_per_group=config.export.samples_per_group,
        keep_raw=config.export.keep_raw,
    )
    with _progress(f"export {day}") as progress:
        return export_day(settings, config.lake, day, progress, only_if_grown)


def describe_export(exported: Exported) -> list[str]:
    """What an export did, a line each; its warnings too."""
    what = f"{exported.sample_count:,} samples of {exported.series_count:,} series, by {exported.read_paths}"
    lines = [f"{exported.day}: {what}" if exported.is_written else f"{exported.day}: nothing new"]
    return lines + [f"warning: {exported.day} may be partial: {warning}" for warning in exported.warnings]


def compute(config: Config, day: date, only: str | None = None) -> list[str]:
    """Facts of a day for every cluster that has it, or one; failed checks, a line each. LakeError where none has."""
    lake = open_lake(config.lake)
    held = {each.cluster for each in lake.partitions("device_sample") if each.date == day}
    clusters = sorted(cluster for cluster in held if only in (None, cluster))
    if not clusters:
        raise LakeError(f"the lake at {config.lake} holds nothing for {day}; export or import that day first")
    lines = []
    for cluster in clusters:
        result = compute_day(lake, cluster, day, _compute_settings(config))
        lines += [f"{cluster} {day}: {failure}" for failure in result.failures]
    return lines


def report(config: Config, window: Window, out: Path, now: datetime, salt: str = "") -> list[Path]:
    """Every form of the report of a window; with a salt without names, each by a pseudonym that the salt decides.

    After they are written CoverageError where too little was seen, FindingError for a finding that is to fail the run.
    """
    from gpureport.report import write_report  # polars and jinja2: an export should not wait for them

    findings.check_fail_on(config.report.fail_on)
    lake = open_lake(config.lake)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        header, queries = _open_report(con, config, lake, window, now, salt)
        with out_errors(out):
            written = write_report(con, queries, header, out, _owners(con, config, lake, window))
        failing = findings.failing(con, config.report.fail_on)
    ratio = header.coverage_ratio or 0.0
    if ratio < config.report.min_coverage_ratio:
        raise CoverageError(
            f"{out / 'report.html'} is written, but only {ratio:.1%} of the device time was seen "
            f"(wanted: {config.report.min_coverage_ratio:.1%}); see its section Coverage"
        )
    if failing:
        listed = ", ".join(f"{code} ({count})" for code, count in failing.items())
        raise FindingError(f"{out / 'report.html'} is written, and holds findings that fail the run (--fail-on): {listed}")
    return written


def _owners(con: DuckDBPyConnection, config: Config, lake: Lake, window: Window) -> dict[tuple[str, str], str] | None:
    """Whose each namespace is, by its label as last seen in the window (report.by); None where no pages by owner are asked for.

    UsageError where no namespace is known to bear the label.
    """
    label = config.report.by
    if not label:
        return None
    if label == "namespace":
        rows = con.execute("select distinct cluster, namespace, namespace from report.gpu_hour_ledger").fetchall()
        return {(cluster, namespace): owner for cluster, namespace, owner in rows}
    views(con, lake, ["namespace"], dates=list(window.days()))
    rows = con.execute(
        "select cluster, namespace, arg_max(labels[$label], observed_at) from lake.namespace "
        "where labels[$label] is not null group by cluster, namespace",
        {"label": label},
    ).fetchall()
    if not rows:
        raise UsageError(
            f"no namespace bore the label {label!r} in this window; run 'gpureport snapshot', or give --by namespace"
        )
    return {(cluster, namespace): owner for cluster, namespace, owner in rows}


def _open_report(
    con: DuckDBPyConnection, config: Config, lake: Lake, window: Window, now: datetime, salt: str = ""
) -> tuple[Header, dict[str, Query]]:
    """report.* built over the facts of the window, and what the report says of itself."""
    from gpureport.report.header import read_header

    settings = _report_settings(config)
    made_with = facts_hash(load(), _compute_settings(config))
    queries = report_tables(con, lake, window, settings, made_with)
    views(con, lake, ["source"], dates=list(window.days()))
    if salt:
        from gpureport.anonymous import anonymise  # nobody else should wait for it

        anonymise(con, load(), salt)
    shown = {
        "memory_threshold_ratio": config.saturation.memory_threshold_ratio,
        "figure_min_coverage_ratio": config.report.figure_min_coverage_ratio,
        "idle_policy": config.report.idle_policy,
        **{f"price of {name}": value for name, value in _prices(config).items()},
        **({f"carbon {name}": value for name, value in config.carbon.model_dump(mode="json").items()} if _carbon(config) else {}),
        "team_label": config.owners.team_label,
        "saturation_enabled": config.saturation.enabled,
        **{f"links of {model}": link for model, link in settings.links.items()},
        **config.thresholds.model_dump(),
    }
    return read_header(con, window, now, made_with, tuple(failed_checks(con)), shown), queries


def _report_settings(config: Config) -> ReportSettings:
    links = {model: link.model_dump() for model, link in sorted(config.links.items())}
    return ReportSettings(
        config.report.figure_min_coverage_ratio,
        config.saturation.enabled,
        links,
        config.report.idle_policy,
        findings.parameters(config.thresholds, config.suppressions, config.saturation.memory_threshold_ratio),
        prices=_prices(config),
        carbon=_carbon(config),
        team_label=config.owners.team_label,
        scheduler_gauges=config.scheduler.model_dump(),
    )


def diff_windows(config: Config, window: Window, earlier: Window | None, only: str | None, output: Output) -> None:
    """Print what changed between two windows of the lake; without the earlier one against the window before.

    LakeError where the lake does not hold all days of both, made alike.
    """
    from gpureport.report.comparison import print_comparison, read_comparison

    lake, before = open_lake(config.lake), earlier or window_before(window)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        made_with = facts_hash(load(), _compute_settings(config))
        queries = report_tables(con, lake, window, _report_settings(config), made_with, before)
        if "report.gpu_hour_bridge" not in queries:
            raise LakeError(
                f"{window} cannot be held against {before}: give windows of whole hours, and compute all days of both with this "
                "configuration and version"
            )
        print_comparison(read_comparison(con, queries), only, output, sys.stdout)


def diff_reports(config: Config, earlier: Path, now: Path, only: str | None, output: Output) -> None:
    """Print what changed between two reports (folders, or their gpureport.duckdb); no lake is needed."""
    from gpureport.report.comparison import compare_reports, print_comparison, read_comparison

    settings = _report_settings(config)
    judged_by = {"figure_min_coverage_ratio": settings.figure_min_coverage_ratio, **settings.findings}
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        queries = compare_reports(con, earlier, now, judged_by)
        print_comparison(read_comparison(con, queries), only, output, sys.stdout)


def what_if(config: Config, window: Window, question: Question, output: Output, say: Say) -> None:
    """Print what quotas would have come to, had they been otherwise; LakeError where the lake knows no quota of the window."""
    from gpureport.whatif import answer as answer_question
    from gpureport.whatif import notes, print_answer

    lake, queries = open_lake(config.lake), load()
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        quota_lake(con, lake, queries, window, [question.cluster] if question.cluster else None)
        found = answer_question(con, queries, config.quota.nos.gpu_memory_gb_per_gpu, window, question)
    for note in notes(found, question, window) if output != "json" else ():
        say(note)
    print_answer(found, question, window, output, sys.stdout)


def sql(config: Config, statement: str | None, output: Output, now: datetime) -> None:
    """One statement's rows on standard output, or a prompt; report.* spans all days that have facts."""
    lake = open_lake(config.lake)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        _open_report_if_whole(con, config, lake, now)
        views(con, lake, [*(table.name for table in TABLES), *(table.replace(".", "/") for table in KEPT)])
        if statement:
            answer(con, statement, output, sys.stdout)
        else:
            prompt(con, output, sys.stdin, sys.stdout)


def simulate(config: Config, asked: Mapping[str, Any], out: Path | None, lake: Path | None, today: date) -> list[Path]:
    """A synthetic cluster as files, as a lake, or both; what was written."""
    # Imported here: no other command should wait for it.
    from gpureport.simulate import SimulationPlan, choose_signals, fill_lake, write_kubernetes, write_openmetrics, write_truth

    start = parse_date(asked["start"]) if asked["start"] else today - timedelta(days=asked["days"])
    chosen = {name: found for name, found in asked.items() if name not in ("start", "signals")}
    plan = SimulationPlan(start_date=start, signals=choose_signals(asked["signals"]), **chosen)
    written: list[Path] = []
    if out is not None:
        with out_errors(out):
            written += [*write_openmetrics(plan, out), *write_kubernetes(plan, out), write_truth(plan, out)]
    if lake is not None:
        fill_lake(plan, lake, config.cluster)
        written.append(lake)
    return written


def doctor(
    config: Config, environ: Mapping[str, str], lake_day: LakeDay | None, at: datetime, output: Output, with_state: bool = False
) -> str:
    """Print what a server (at an instant) or a lake (a day) has and lacks, with the state also the cluster; the verdict.

    IncompleteError, with the verdict, where a report would lack figures. Where only the cluster cannot be read, that is
    raised after the rest was printed.
    """
    # Imported here: no other command should wait for it.
    from gpureport.doctor import beside, conclusion, examine, print_findings

    catalog = _catalog(config)
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


def _open_report_if_whole(con: DuckDBPyConnection, config: Config, lake: Lake, now: datetime) -> None:
    """report.* over all days that have facts; where they do not fit together, lake.* and facts.* must do, which is said."""
    days = [each.date for each in lake.partitions("facts/device_hour")]
    if not days:
        return
    try:
        _open_report(con, config, lake, Window(day_start(min(days)), day_start(max(days)) + timedelta(days=1)), now)
    except LakeError as error:
        print(f"warning: no report.* here: {error}", file=sys.stderr)


def schema() -> str:
    """Every table's columns, types and meaning, as Markdown."""
    return render_schema(load())


def clusters_by_label(config: Config, environ: Mapping[str, str], day: date) -> list[Config]:
    """A configuration per cluster of a server that holds several, told apart by ``prometheus.cluster_label``.

    A server whose series do not bear the label is one cluster, which its external labels name. UsageError where they do not.
    """
    from gpureport.sources.prometheus import external_labels, label_values, open_connection

    label = config.prometheus.cluster_label
    connection = open_connection(config.prometheus, environ)
    names = label_values(connection, label, _catalog(config).asked, Window.of_day(day))
    if not names:
        if label not in (external := external_labels(connection)):
            raise UsageError(f"neither the series of {connection.url} nor its external labels bear {label!r}; set cluster")
        return [config.model_copy(update={"cluster": external[label]})]
    found = []
    for name in names:
        prometheus = config.prometheus.model_copy(update={"match": {**config.prometheus.match, label: name}})
        found.append(config.model_copy(update={"cluster": name, "prometheus": prometheus}))
    return found


def _catalog(config: Config) -> Catalog:
    return load_catalog(config.signals)


def _prices(config: Config) -> dict[str, Any]:
    """The price book; empty where nothing is configured."""
    return {name: value for name, value in config.prices.model_dump().items() if value not in ({}, None)}


def _carbon(config: Config) -> dict[str, Any]:
    """Factors of energy; empty where nothing that needs them is configured."""
    carbon = config.carbon
    grams = [*intensities("location", carbon.grams_per_kwh), *intensities("market", carbon.market_grams_per_kwh)]
    return {"pue": carbon.pue, "grams_per_kwh": grams} if grams or _prices(config) else {}


def _compute_settings(config: Config) -> ComputeSettings:
    return ComputeSettings(
        memory_threshold_ratio=config.saturation.memory_threshold_ratio,
        idle_watts=config.power.idle_watts,
        gpu_memory_gb_per_gpu=config.quota.nos.gpu_memory_gb_per_gpu,
        memory_limit=config.compute.memory_limit,
        threads=config.compute.threads,
    )


@contextmanager
def out_errors(out: Path) -> Iterator[None]:
    """What the disk refuses of a report, as a sentence; DuckDB and Python say it in their own ways."""
    try:
        yield
    except (OSError, duckdb.IOException, duckdb.FatalException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise OutputError(f"{out} cannot be written ({reason}); free space, or give another --out") from error


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's stderr, nothing elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
