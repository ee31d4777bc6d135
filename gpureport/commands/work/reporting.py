"""Facts from days of the lake, and every form of a report from the facts of a window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from duckdb import DuckDBPyConnection

from gpureport import __version__
from gpureport.commands.work.delivering import DATABASE, deliver, out_errors
from gpureport.commands.work.settings import (
    REPORT_THREADS,
    catalog_of,
    compute_settings,
    facts_made_with,
    report_settings,
    reported_lake,
)
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.fact_views import Batch, ClusterDay, folder
from gpureport.compute.identity import MadeWith, are_current, outdated_days
from gpureport.compute.idle_power import later_days_without
from gpureport.compute.intervals import ROWS_WORTH_LOOPS
from gpureport.compute.period import (
    ReportSettings,
    WindowTables,
    differing_days,
    failed_checks,
    refuse_missing_facts,
    report_tables,
)
from gpureport.compute.query import Make, Query, build, connection, load, needed
from gpureport.config import Config, findings
from gpureport.config.section import existing
from gpureport.lake import Lake, open_lake, views
from gpureport.store import Place
from gpureport.values.errors import CoverageError, FindingError, LakeError, QueryError, UsageError
from gpureport.values.tables import SOURCE, TABLES
from gpureport.values.window import Window, day_start, full_hour, parse_zone, plain, rfc3339

if TYPE_CHECKING:
    from gpureport.report.header import Header


_NAMESPACE_OWNERS = """
    with labeled as (
        select cluster, namespace, observed_at::timestamp as labeled_at, labels[$label] as owner
        from lake.namespace
        union all by name
        select
            cluster,
            namespace,
            least(date + interval 1 day, $until) as labeled_at,
            coalesce(
                namespace_labels[$label], namespace_labels['label_' || regexp_replace($label, '[^a-zA-Z0-9_]', '_', 'g')]
            ) as owner
        from facts.pod_workload
    )
    select cluster, namespace, arg_max(owner, (if(labeled_at <= $until, 1, -1) * epoch(labeled_at), owner))
    from labeled where owner != '' group by cluster, namespace
"""
"""Team of a namespace: its last label up to the window's end, in a snapshot or in the facts; without one, the first after it."""


def check(config: Config) -> None:
    """Raise UsageError for settings, files in them, or a folder that would end a report after hours of work."""
    findings.check_fail_on(config.report.fail_on)
    report_settings(config)
    catalog_of(config)
    existing("metrics.http_config_file", config.metrics.http_config_file)
    out, lake = config.out, config.lake
    if isinstance(out, Path) and out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder for the report (--out, or out in the configuration)")
    if isinstance(out, Path) and isinstance(lake, Path) and out.resolve().is_relative_to(lake.resolve()):
        raise UsageError(f"{out} belongs to the lake at {lake}; give another folder with --out")


def days_in_lake(config: Config, window: Window) -> list[date]:
    """Return the days of a window that the lake has for any cluster; LakeError for none."""
    days = sorted({each.date for each in open_lake(config.lake).partitions("source")}.intersection(window.days()))
    if not days:
        raise LakeError(f"the lake at {config.lake} has no data for {window}; export or import those days first")
    return days


def compute(config: Config, days: Collection[date], only: str | None = None) -> list[str]:
    """Compute facts of days for all clusters, or one; return a line per failed check and per later day computed without them.

    Facts of a day whose samples were removed stay unchanged, and get a line too. LakeError where no cluster has a day, or
    none of the days can be computed.
    """
    lake, settings = open_lake(config.lake), compute_settings(config)
    sources = [(each.cluster, each.date) for each in lake.partitions("source") if only in (None, each.cluster)]
    if missing := sorted({*days} - {day for _, day in sources}):
        raise LakeError(f"the lake at {config.lake} has no data for {missing[0]}; export or import that day first")
    computed = {(each.cluster, each.date) for each in lake.computed_days()}
    final = [each for each in sources if each[1] in days and each in computed and not _has_samples(lake, *each)]
    lines = [f"{cluster} {day}: its samples were removed, its facts stay as they are" for cluster, day in final]
    due = sorted(each for each in sources if each[1] in days and each not in final)
    if not due:
        raise LakeError(f"nothing to compute: {lines[0]}; export or import the day again to replace them")
    without = [
        f"{cluster} {day}: this day is missing in the idle power of {', '.join(map(str, later))}; "
        "run 'gpureport compute --date' for each of them again, the oldest first"
        for cluster, day in due
        if (later := [each for each in later_days_without(lake, cluster, day) if (cluster, each) not in due])
    ]
    return [*lines, *(line for batch in _batches(lake, due) for line in _failures(lake, batch, settings)), *without]


def outdated(config: Config) -> list[str]:
    """Return a line for each cluster with days to be computed again."""
    return [
        f"{cluster}: facts of {', '.join(map(str, sorted(days)))} are based on samples that have changed; "
        "run 'gpureport compute --date' for each of them again, the oldest first"
        for cluster, days in sorted(outdated_days(open_lake(config.lake)).items())
    ]


def _batches(lake: Lake, due: Sequence[ClusterDay]) -> list[list[ClusterDay]]:
    """Return batches of days to compute at once: days with few rows, of several clusters or in sequence for one cluster."""
    batches, row_count = list[list[ClusterDay]](), 0
    for cluster, day in due:
        parts = [lake.partition(table, cluster, day) for table in ("device_sample", "sample")]
        rows = sum(each.row_count for each in parts if each)
        follows = batches and (batches[-1][-1][0] != cluster or batches[-1][-1][1] == day - timedelta(days=1))
        if follows and row_count + rows < ROWS_WORTH_LOOPS:
            batches[-1].append((cluster, day))
            row_count += rows
        else:
            batches.append([(cluster, day)])
            row_count = rows
    return batches


def _has_samples(lake: Lake, cluster: str, day: date) -> bool:
    """Return whether a day still has samples or state; ``source`` stays when they are removed."""
    return any(lake.partition(table.name, cluster, day) for table in TABLES if table != SOURCE)


def _failures(lake: Lake, batch: Sequence[ClusterDay], settings: ComputeSettings) -> list[str]:
    """Compute days at once; if that fails, each alone, because one of them is the cause. Return their failed checks."""
    try:
        failures = compute_days(lake, batch, settings).failures
    except (QueryError, LakeError):
        if len(batch) == 1:
            raise
        failures = [failure for each in batch for failure in compute_days(lake, [each], settings).failures]
    return [f"{cluster} {day}: {failure}" for (cluster, day), failure in sorted(failures, key=lambda found: found[0])]


def has_facts(config: Config, day: date) -> bool:
    """Return whether the cluster's facts of the day match the present samples of the lake and this configuration."""
    return are_current(open_lake(config.lake), config.cluster, day, facts_made_with(config))


def has_no_accelerators(config: Config, day: date) -> bool:
    """Return whether Kubernetes was listed on the day and no node of the cluster had an accelerator."""
    with connection(config.compute.memory_limit) as con:
        nodes = needed(load(), ["day.node_snapshot"])
        Batch([(config.cluster, day)]).open_lake(con, open_lake(config.lake, create=True), nodes, timedelta())
        for query in nodes:
            build(con, query, {})
        [found] = con.execute(
            "select count(*) > 0 and bool_and(cardinality(capacity) = 0 and slice_device_count is null) from day.node_snapshot"
        ).fetchall()
    return bool(found[0])


@dataclass(frozen=True)
class Reported:
    """Files of a report (the page first), its answers (a line each), and warnings for the operator."""

    files: list[Place]
    answers: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    failure: CoverageError | FindingError | None = None
    """Reason for an exit code other than 0, although the report is written."""


def report(config: Config, window: Window, out: Place, now: datetime, salt: str = "") -> Reported:
    """Write every form of the report of a window. With a salt, pseudonyms that depend on it replace all names.

    ``failure`` of the result is about too little data, or about a finding that must fail the run.
    """
    from gpureport.report import Forms, write_report  # polars and jinja2 are slow to import; an export does not need them

    check(config)
    lake, whole, window = reported_lake(config), window, window.over_by(now)
    cut = f"Provisional: the period lasts until {rfc3339(whole.end_at)}; the report has its completed part."
    provisional = [cut] if window != whole else []
    answers: list[str] = []

    def write(folder: Path) -> list[Path]:
        written = write_report(con, queries, header, folder, owners, forms)
        answers.extend(each.line for each in written.answers)
        return written.files

    with connection(config.compute.memory_limit, REPORT_THREADS) as con:
        refuse_missing_facts(lake, window)
        refuse_cut_hours(con, lake, window)
        owners = _owners(con, config, lake, window)
        with out_errors(Path(gettempdir()), "set TMPDIR to another folder"):
            leave = None if salt else _begin_database(con, lake, window)
            header, queries = open_report(con, config, lake, window, now, salt, leave)
        header = replace(header, notes=(*provisional, *header.notes))
        failing = findings.failing(con, config.report.fail_on)
        unmatched = [] if salt else _unmatched(con, config)
        forms = Forms(config.report.csv_rows, config.report.facts, config.report.only)
        written = deliver(out, write)
    unsent = list[str]()
    if config.report.notify.model_fields_set:
        from gpureport.commands.work.notifying import notify  # slow to import; most reports are not sent

        title = f"GPU usage report: {', '.join(header.clusters)}, {window}"
        unsent = notify(config.report.notify, title, [*answers, str(written[0])])
    return Reported(written, tuple(answers), (*unmatched, *unsent), _failure(config, written[0], header.coverage_ratio, failing))


def input_digest(config: Config, window: Window) -> str:
    """Return a digest that changes with the facts, settings, owners of namespaces, version and window."""
    lake, days = reported_lake(config), {*window.days(), window.end_at.date()}
    state = [each.stored for table in ("source", "namespace") for each in lake.partitions(table) if each.date in days]
    settings = (config.model_dump_json(), facts_made_with(config), report_settings(config))
    return hashlib.sha256(repr((__version__, str(window), settings, lake.root.notes, state)).encode()).hexdigest()


def _begin_database(con: DuckDBPyConnection, lake: Lake, window: Window) -> Make:
    """Begin the report's database in the temporary folder; return a function that moves a table there to free memory.

    All tables together have about six times the ledger's rows.
    """
    from gpureport.report.database import begin, move
    from gpureport.report.results import MANY_ROWS

    days = {*window.days()}
    files = {file for each in lake.partitions("facts/ledger_day") if each.date in days for file in each.stored}
    ((spill,),) = con.execute("select current_setting('temp_directory')").fetchall()
    has_many = 6 * sum(file.row_count for file in files) > MANY_ROWS
    begin(con, Path(spill) / DATABASE, has_many)
    return partial(move, con, has_many)


def _failure(config: Config, first: Place, seen: float | None, failing: Mapping[str, int]) -> CoverageError | FindingError | None:
    if (ratio := seen or 0.0) < config.report.min_coverage_ratio:
        return CoverageError(
            f"{first} is written, but data coverage is {ratio:.1%} "
            f"(required: {config.report.min_coverage_ratio:.1%}); report.coverage has the reasons"
        )
    listed = ", ".join(f"{code} ({count})" for code, count in failing.items())
    if failing:
        return FindingError(f"{first} is written, and has findings that fail the run (--fail-on): {listed}")
    return None


def refuse_cut_hours(con: DuckDBPyConnection, lake: Lake, window: Window) -> None:
    """Raise UsageError for a window that cuts an hour with data on both sides of GPUs, else of their nodes: facts are hourly."""
    first, last = full_hour(window.start_at), full_hour(window.end_at + timedelta(hours=1, milliseconds=-1))
    wanted = {table: load()[table].columns for table in ("facts.device_signal", "facts.node_day")}
    for edge in {window.start_at, window.end_at} - {first, last}:
        views(con, lake, map(folder, wanted), dates=[edge.date()], wanted=wanted)
        statement = """
            from (select start_at, end_at from facts.device_signal union all select start_at, end_at from facts.node_day
            anti join facts.device_signal using (cluster) where accelerator_count > 0) where start_at < $edge and end_at > $edge
        """
        if con.execute(statement, {"edge": plain(edge)}).fetchone():
            raise UsageError(
                f"{window} cuts an hour that has data on both sides, and facts are hourly. Give {Window(first, last)}"
            )


def _unmatched(con: DuckDBPyConnection, config: Config) -> list[str]:
    """Return a sentence for each configured name that nothing in the window has: it would silently have no effect."""
    rows = con.execute("select distinct gpu_model, device_uuid from period.capacity").fetchall()
    models, uuids = {model for model, _ in rows}, {uuid for _, uuid in rows}
    labeled = con.execute("select distinct team, namespace from period.workload").fetchall()
    teams = {team or namespace for team, namespace in labeled}  # named as in the costs
    clusters = {each.cluster for each in open_lake(config.lake).partitions("source")}
    label, is_chosen = config.owners.team_label, "team_label" in config.owners.model_fields_set
    sentence = f"owners.team_label is {label!r}, which no namespace with GPUs in the period has"
    unlabeled = [sentence] if is_chosen and not any(team for team, _ in labeled) else []
    given: list[tuple[str, str, set[str], set[str]]] = [
        ("prices.gpu_hour", "GPU of the period", {*config.prices.gpu_hour} - {"all"}, models),
        ("prices.budgets", "team of the period", {*config.prices.budgets}, teams),
        ("power.idle_watts", "GPU of the period", {*config.power.idle_watts} - {"all"} - uuids, models),
        ("links", "GPU of the period", {*config.links}, models),
        ("retired", "cluster of the lake", {each.cluster for each in config.retired} - {""}, clusters),
    ]
    return unlabeled + [
        f"{section} names {name!r}, which is no {kind}; known: {', '.join(sorted(filter(None, there))) or 'none'}"
        for section, kind, names, there in given
        for name in sorted(names - there)
    ]


def _owners(con: DuckDBPyConnection, config: Config, lake: Lake, window: Window) -> dict[tuple[str, str], str] | None:
    """Return the teams of namespaces, by their last label in the window (report.by); None without team pages.

    UsageError where no namespace has the label.
    """
    label = config.report.by
    if not label:
        return None
    days = list(window.days())
    views(con, lake, ["namespace"], dates=[*days, days[-1] + timedelta(days=1)])  # the next day may have the only state
    views(con, lake, ["facts/pod_workload"], dates=days)
    if label == "namespace":
        rows = con.execute("select distinct cluster, namespace, namespace from facts.pod_workload").fetchall()
    else:
        rows = con.execute(_NAMESPACE_OWNERS, {"label": label, "until": plain(window.end_at)}).fetchall()
    if not rows:
        raise UsageError(
            f"no namespace has the label {label!r} between {window.start_at:%Y-%m-%d} and {window.end_at:%Y-%m-%d}; "
            "run gpureport snapshot, collect kube_namespace_labels, or use --by namespace"
        )
    return {(cluster, namespace): owner for cluster, namespace, owner in rows}


def open_report(
    con: DuckDBPyConnection, config: Config, lake: Lake, window: Window, now: datetime, salt: str = "", leave: Make | None = None
) -> tuple[Header, dict[str, Query]]:
    """Build report.* from the facts of the window (``leave``: see ``report_tables``); return the header and the queries."""
    from gpureport.report.header import read_header

    settings = report_settings(config)
    made_with = facts_made_with(config)
    tables = WindowTables(con, lake, window, settings, made_with, releases=not config.report.facts)
    queries = report_tables(tables, leave)
    views(con, lake, ["source"], dates=list(window.days()))
    if salt:
        from gpureport.compute.period.anonymous import anonymise  # slow to import, and only used here

        anonymise(con, load(), salt)
        queries = {table: load()[table] for table in queries}  # the values of the others name suppressed namespaces
    shown = _without_names(_shown_settings(config, settings)) if salt else _shown_settings(config, settings)
    header = read_header(con, window, now, _digest(made_with, shown), tuple(failed_checks(con, tables.params)), shown)
    return replace(header, notes=differing_days(lake, window, made_with, has_names=not salt)), queries


def _without_names(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the team label, paths of files, and names of retired objects; their dates stay."""
    files = {name: "a file" for name, found in shown.items() if name.startswith("carbon") and isinstance(found, str)}
    retired = {name: [each["since"] for each in shown[name]] for name in ("retired",) if name in shown}
    return {**shown, **files, **retired, "team_label": "a label"}


def _digest(made_with: MadeWith, shown: Mapping[str, Any]) -> str:
    """Return twelve hex digits that change with the settings on the page, and with a revision of its facts."""
    everything = json.dumps([made_with.entries, shown], sort_keys=True, default=str)
    return hashlib.sha256(everything.encode()).hexdigest()[:12]


def default_window(config: Config, now: datetime) -> Window:
    """Return the last full week with facts, Monday to Sunday; else the days with facts of the last seven. LakeError for none."""
    days = {each.date for each in reported_lake(config).computed_days()}
    if not days:
        raise LakeError(f"The lake at {config.lake} has no facts. Run gpureport export and gpureport compute first.")
    zone = parse_zone(config.report.timezone)
    # In a zone behind UTC, the last day ends on the next UTC day, which has no facts.
    last = max(days) - timedelta(days=int(day_start(max(days), zone) > day_start(max(days)) and len(days) > 1))
    over = last - timedelta(days=int(day_start(last + timedelta(days=1), zone) > now))  # today's facts are partial
    monday = over - timedelta(days=(over.weekday() + 1) % 7 + 6)
    ahead = int(day_start(last, zone) < day_start(last))  # then a day begins on the previous UTC day
    if days.issuperset(monday + timedelta(days=number) for number in range(-ahead, 7)):
        return Window(day_start(monday, zone), day_start(monday + timedelta(days=7), zone))
    first = min(day for day in days if last - day < timedelta(7))
    first += timedelta(days=int(ahead and first < last and first - timedelta(1) not in days))
    return Window(day_start(first, zone), day_start(last + timedelta(1), zone))


def _shown_settings(config: Config, settings: ReportSettings) -> dict[str, Any]:
    """Return the settings behind the figures, as the page names them; prices and factors only if there are any."""
    prices = config.prices.model_dump(mode="json")
    carbon = config.carbon.model_dump(mode="json") if settings.carbon else {}
    return {
        "memory_threshold_ratio": config.saturation.memory_threshold_ratio,
        "figure_min_coverage_ratio": config.report.figure_min_coverage_ratio,
        "idle_policy": config.report.idle_policy,
        **({} if config.report.timezone == "UTC" else {"timezone": config.report.timezone}),
        **{f"price of {name}": value for name, value in prices.items() if name in settings.prices},
        "currency": config.prices.currency,
        **{f"carbon {name}": value for name, value in carbon.items()},
        "team_label": config.owners.team_label,
        "saturation_enabled": config.saturation.enabled,
        **({"retired": settings.retired} if settings.retired else {}),
        **{f"links of {model}": link for model, link in settings.links.items()},
        **config.thresholds.model_dump(),
    }
