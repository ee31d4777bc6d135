"""The overview: answers, ledger, trend, teams and the most severe findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from markupsafe import Markup

from gpureport.report.header import Header
from gpureport.report.page import drawings
from gpureport.report.page.answers import Answer, answers, difference, ledger
from gpureport.report.page.tables import UNMEASURED, Tables
from gpureport.report.page.words import ALLOCATED, BUCKETS, IDLE, Bucket, Hours, Money, hours_by
from gpureport.values.text import formats
from gpureport.values.window import day_start, full_hour, local, plain

FINDINGS_SHOWN = 9
_HOURLY_DAYS_MAX = 3


@dataclass(frozen=True)
class Team:
    """A row of the team table."""

    name: str
    gpus: str
    bar: Markup
    effective: str
    idle: str
    pending: str
    cost: str
    energy: str
    change: str
    spark: Markup
    findings: tuple[tuple[str, int], ...]
    """Severities with their number of findings."""
    file: str = ""


@dataclass(frozen=True)
class Overview:
    """Content of the first screen."""

    answers: tuple[Answer, ...]
    bar: Markup
    legend: Sequence[tuple[Bucket, str, str]]
    """Categories with GPU-hours, each with its share and hours."""
    capacity: str
    reconciled: str
    trend: Markup
    trend_unit: str
    teams: tuple[Team, ...]
    rest: Sequence[tuple[str, str, str]]
    """GPU-hours of no team: title, GPUs and cost."""
    findings: Sequence[Mapping[str, Any]]
    finding_count: int
    models: str
    compared: str


def overview(tables: Tables, header: Header, money: Money, files: Mapping[str, str], team: str = "") -> Overview:
    """Return the overview of the whole report or of one team; ``files`` are the pages of teams by name."""
    whole = ledger(tables, team)
    teams = [] if team else _teams(tables, header, money, files)
    findings = _findings(tables, team)
    drawn, unit = _trend(tables, header, whole, team)
    off = difference(tables)
    models = tables.rows("""
        select value, sum(device_count)::bigint as gpus from report.gpu_hour_balance where dimension = 'gpu_model'
        group by all order by gpus desc, value
    """)
    rest = tables.rows("""
        select if(bucket = 'unknown', 'Allocation unknown', 'Unallocated') as title, sum(gpu_hours) as hours, sum(cost) as cost,
            bool_or(is_unknown and bucket != 'unknown') as is_open, is_open or bool_or(cost is null) as is_least
        from page.use where team = '' group by all order by title desc
    """)
    hours = header.window.seconds / 3600
    return Overview(
        answers=answers(tables, header, money, team),
        bar=drawings.bar(whole) if whole.capacity else Markup(""),
        legend=[
            (each, formats.percent(whole.share(each.name)), formats.significant(whole.of(each.name)))
            for each in BUCKETS
            if whole.of(each.name)
        ],
        capacity=formats.gpu_hours(whole.capacity),
        reconciled="" if team or off == formats.UNKNOWN else f"Reconciled: categories sum to capacity (difference {off}).",
        trend=drawn,
        trend_unit=unit,
        teams=tuple(teams),
        rest=[
            (
                each["title"],
                formats.at_least(_gpus(each["hours"] / hours), each["is_open"]),
                money(each["cost"], each["is_least"]) if each["cost"] else "",
            )
            for each in rest
        ],
        findings=[{**each, "where": _where(each), "impact": _impact(each, money)} for each in findings[:FINDINGS_SHOWN]],
        finding_count=sum(each["times"] for each in findings),
        models=" · ".join(f"{row['gpus']:,} × {row['value'] or 'unknown model'}" for row in models),
        compared=_compared(tables, header.timezone),
    )


def _gpus(found: float) -> str:
    return formats.grouped(found, 1) if found >= 0.05 or found == 0 else formats.significant(found)


def _compared(tables: Tables, zone: str) -> str:
    compared = "report.period semi join report.namespace_change using (cluster) where period = 'before'"
    row = tables.row(f"select min(since_at) as since, max(until_at) as until from {compared}")
    if not row.get("since"):
        return "No comparison: this period or the previous one is not complete in the data."
    start, last = (local(each.replace(tzinfo=UTC), zone) for each in (row["since"], row["until"] - timedelta(seconds=1)))
    others = tables.row("""
        select string_agg(distinct cluster, ', ' order by cluster) as names from page.use
        where team != '' and cluster not in (select cluster from report.namespace_change)
    """)
    lacking = f" No comparison for {others['names']}." if others.get("names") else ""
    return f"Change against {start:%Y-%m-%d} to {last:%Y-%m-%d}.{lacking}"


def _findings(tables: Tables, team: str) -> list[dict[str, Any]]:
    """Return findings, most severe first. Those alike (code, detail, severity) of a pod, or a node's platform, are one line."""
    return tables.rows(
        """
        select
            code, min(number) as number, min(row) as row, arg_min(severity, number) as severity, arg_min(title, number) as title,
            arg_min(evidence, number) as evidence, arg_min(action, number) as action, arg_min(subject, number) as subject,
            if((select count(distinct cluster) from report.gpu_hour_ledger) > 1, cluster, '') as of_cluster,
            node_name, whose, count(*) as times, count(gpu_hours) as sized,
            sum(gpu_hours) as gpu_hours, sum(at_stake_cost) as at_stake_cost,
            count(at_stake_cost) as priced, list(distinct gpu_index order by gpu_index) filter (where gpu_index != '') as gpus
        from (
            select *, if(owner = 'platform', '', holder) as whose, row_number() over (order by number) - 1 as row
            from page.finding where $team in ('', team) or list_contains(concerned, $team)
        )
        group by code, detail, severity, cluster, node_name, whose, if(whose = '', '', pod_uid), if(device_uuid = '', number, 0)
        order by min(number)
        """,
        team=team,
    )


def _where(finding: Mapping[str, Any]) -> str:
    gpus = finding["gpus"] or []
    named = f"{len(gpus)} GPUs" if len(gpus) > 1 else f"GPU {gpus[0]}" if gpus else ""
    return " · ".join(filter(None, (finding["of_cluster"], finding["node_name"], named, finding["whose"]))) or finding["subject"]


def _impact(finding: Mapping[str, Any], money: Money) -> str:
    hours, cost = finding["gpu_hours"], money.tail(finding["at_stake_cost"], " · ", is_least=finding["priced"] < finding["times"])
    return "" if hours is None else formats.gpu_hours(hours, finding["sized"] < finding["times"]) + cost


def _trend(tables: Tables, header: Header, whole: Hours, team: str) -> tuple[Markup, str]:
    """Draw the trend by day, or by hour if the window has few days; a team's always by day. Return it with the unit."""
    is_daily = bool(team) or len(list(header.window.days())) > _HOURLY_DAYS_MAX
    is_local = header.timezone != "UTC" and not team  # the ledger has UTC days; other days are sums of hours
    unit = "day" if is_daily else "hour"
    drawn = _daily(tables, header, team) if is_daily and not is_local else _from_hours(tables, header, unit)
    capacity = max(whole.capacity / (header.window.seconds / 3600), *(each.gpus.capacity for each in drawn), 0.0)
    return drawings.trend(drawn, 0.0 if team else capacity), unit


def _pending(tables: Tables, at: str, **params: Any) -> dict[Any, float | None]:
    """Return pending units on average by ``at``: means of the clusters, each over the time in which they are known."""
    rows = tables.rows(
        f"""
        select time, sum(gpus) as gpus from (
            select {at} as time, cluster, sum(unscheduled_units_avg * seconds) / sum(seconds) as gpus
            from (select *, demand_observed_seconds as seconds from report.scheduler_pressure)
            where resource = 'gpu' and unscheduled_units_avg is not null group by all
        ) group by time
        """,
        **params,
    )
    return {row["time"]: row["gpus"] for row in rows}


def _daily(tables: Tables, header: Header, team: str) -> list[drawings.Column]:
    use = "select day, bucket, sum(gpu_hours) as gpu_hours from page.use where $team in ('', team) group by all order by day"
    above = {} if team else _pending(tables, "hour_start_at::date")
    found = {date.fromisoformat(day): hours.by_bucket for day, hours in hours_by(tables.rows(use, team=team), "day").items()}
    return _columns("%-d %b", _days(header), found, above)


def _days(header: Header) -> dict[date, float]:
    """Return the days of the window, each with its hours within the window."""
    return {day: _within(header, day_start(day), timedelta(days=1)) for day in header.window.days()}


def _within(header: Header, start: datetime, length: timedelta) -> float:
    """Return the hours of an interval that are within the window."""
    return (min(header.window.end_at, start + length) - max(header.window.start_at, start)).total_seconds() / 3600


def _from_hours(tables: Tables, header: Header, unit: str) -> list[drawings.Column]:
    """Return columns from the hourly table. What the ledger's UTC day has beyond it is drawn in the hours with the least data.

    The hourly table does not divide unallocated hours: they are divided as in the ledger's UTC day.
    """
    of_day = ", ".join(f"coalesce(sum(gpu_hours) filter (bucket = '{each.name}'), 0) as day_{each.name}" for each in BUCKETS)
    rows = tables.rows(
        f"""
        with daily as (
            select cluster, day, sum(gpu_hours) as capacity, {of_day},
                day_active_unmeasured > day_effective + day_underutilized as is_unmeasured,
                day_free + day_fragmented + day_reserved_idle as day_vacant
            from page.use group by all
        ),
        clock as (
            select *, epoch(least(hour_start_at + interval 1 hour, $end) - greatest(hour_start_at, $start)) / 3600 as length
            from (select *, unnest(generate_series(greatest(day, date_trunc('hour', $start::timestamp)),
                least(day + 1, $end::timestamp) - interval 1 millisecond, interval 1 hour)) as hour_start_at from daily)
        ),
        hourly as (
            select clock.*, coalesce(sum(usable_gpu_hours), 0) as usable,
                sum(effective_gpu_hours) as effective, sum(allocated_idle_gpu_hours) as allocated_idle,
                sum(active_gpu_hours - effective_gpu_hours) filter (not is_unmeasured) as underutilized,
                round(sum(active_gpu_hours) - coalesce(effective, 0) - coalesce(underutilized, 0), 9) as active_unmeasured,
                coalesce(sum(allocated_gpu_hours - coalesce(active_gpu_hours + allocated_idle_gpu_hours, 0)), 0) as unmeasured,
                coalesce(sum(unnamed_gpu_hours), 0) as unnamed,
                greatest(0, usable - coalesce(sum(allocated_gpu_hours), 0) - unnamed) as vacant
            from clock left join report.gpu_hours_over_time using (cluster, hour_start_at) group by all
        ),
        lacking as (
            select *, capacity - sum(usable) over whole as short,
                greatest(max(usable / length) over whole, capacity / sum(length) over whole) as top,
                greatest(0, day_allocated_unmeasured - sum(unmeasured) over whole) as more_unmeasured,
                greatest(0, day_vacant - sum(vacant) over whole) as more_vacant,
                (top * length - usable) / nullif(top * sum(length) over whole - sum(usable) over whole, 0) as of_room,
                coalesce(of_room * greatest(0, short), 0) as missing,
                missing / nullif(greatest(short, more_unmeasured + more_vacant + day_unavailable), 0) as part
            from hourly window whole as (partition by cluster, day)
        )
        select date_trunc($unit, local_time(hour_start_at, $zone)) as at, *,
            round(unmeasured + coalesce(part * more_unmeasured, 0), 9) as allocated_unmeasured,
            (vacant + coalesce(part * more_vacant, 0)) / nullif(day_vacant, 0) as of_vacant,
            of_vacant * day_reserved_idle as reserved_idle, of_vacant * day_fragmented as fragmented,
            of_vacant * day_free as free, part * day_unavailable as unavailable,
            round(unnamed + if(day_vacant = 0, vacant, 0) + missing
                - coalesce(part * (more_unmeasured + more_vacant + day_unavailable), 0), 9) as unknown
        from lacking order by hour_start_at, cluster
        """,
        unit=unit, zone=header.timezone, start=plain(header.window.start_at), end=plain(header.window.end_at),
    )  # fmt: skip
    above = _pending(tables, "date_trunc($unit, local_time(hour_start_at, $zone))", unit=unit, zone=header.timezone)
    found: dict[Any, dict[str, float]] = {}
    for row in rows:
        there = found.setdefault(row["at"], {each.name: 0.0 for each in BUCKETS})
        there |= {bucket: there[bucket] + max(0.0, row[bucket] or 0.0) for bucket in there}
    start, hours = full_hour(header.window.start_at), defaultdict[datetime, float](float)
    while start < header.window.end_at:
        at = local(start, header.timezone)
        hours[at.replace(hour=0) if unit == "day" else at] += _within(header, start, timedelta(hours=1))
        start += timedelta(hours=1)
    return _columns("%-d %b" if unit == "day" else "%-d %b %H:%M", hours, found, above)


def _columns(
    label: str, hours: Mapping[Any, float], found: Mapping[Any, Mapping[str, float]], above: Mapping[Any, float | None]
) -> list[drawings.Column]:
    """Return columns, each of some hours: GPU-hours as GPUs on average, and pending GPUs above them."""
    return [
        drawings.Column(
            f"{at:{label}}", Hours({name: part / shown for name, part in found.get(at, {}).items()}), above.get(at) or 0.0
        )
        for at, shown in hours.items()
        if found
    ]


def _teams(tables: Tables, header: Header, money: Money, files: Mapping[str, str]) -> list[Team]:
    """Return every team, the largest first."""
    hours = header.window.seconds / 3600
    use = hours_by(
        tables.rows("select team, bucket, sum(gpu_hours) as gpu_hours from page.use where team != '' group by all"), "team"
    )
    figures = _by_team(tables)
    trends = _trends(tables, _days(header))
    ranked = sorted(use, key=lambda name: (-use[name].of(*ALLOCATED), name))
    return [_team(name, use[name], figures, trends.get(name, []), hours, money, files.get(name, "")) for name in ranked]


def _team(
    name: str, use: Hours, figures: Mapping[str, Mapping[str, Any]], trend: Sequence[float], hours: float, money: Money, file: str
) -> Team:
    own: dict[str, Any] = {figure: found.get(name) for figure, found in figures.items()}
    lacking = (use.of("active_unmeasured", "allocated_unmeasured"), use.of("allocated_unmeasured"))
    least = [each > UNMEASURED * use.of(*ALLOCATED) for each in lacking]
    effective = formats.percent(use.effective_share, least[0])
    measured = use.of(*ALLOCATED) if own["measured"] is None else own["measured"]
    least.append(measured < (1 - UNMEASURED) * use.of(*ALLOCATED) or own["is_unknown"])
    cost = "" if own["cost"] is None else money(own["cost"], own["unpriced"] or own["is_unknown"])
    findings = [(severity, own[severity]) for severity in ("critical", "warning", "info") if own[severity]]
    return Team(
        name, formats.at_least(_gpus(use.of(*ALLOCATED) / hours), own["is_unknown"]), drawings.bar(use), effective,
        formats.rounded(use.of(*IDLE), 1, least[1] or own["is_unknown"]) if lacking[1] < use.of(*ALLOCATED, *IDLE) else "",
        "" if own["pending"] is None else formats.rounded(own["pending"], 1, own["pending_is_least"]),
        cost, formats.energy(own["joules"], least[2]) if own["joules"] else "",
        _change(own["before"], own["now"]), drawings.spark(trend), tuple(findings), file,
    )  # fmt: skip


def _change(before: float | None, now: float | None) -> str:
    if not before or now is None:
        return "new" if now and before == 0 else ""
    percent = round((now / before - 1) * 100, 1)
    return f"{percent:+,.{0 if abs(percent) >= 1 else 1}f} %".replace("-", "−") if percent else "0 %"


_TEAM = "join page.team as known using (cluster, namespace) group by all"
_BY_TEAM = {
    "pending": f"select known.team, sum(pending_gpu_hours) from period.pod_wait {_TEAM}",
    "pending_is_least": """select team, bool_or(is_open) from (
        select known.team, pending_gpu_hours is null as is_open from period.pod_wait
        join page.team as known using (cluster, namespace)
        union all
        select team, true from page.team
        where cluster not in (select cluster from report.scheduler_pressure union select cluster from period.pod_wait)
    ) group by team""",
    "is_unknown": "select team, bool_or(is_unknown) from page.use where team != '' group by all",
    "cost": "select team, sum(cost) from page.use where team != '' group by all",
    "unpriced": "select team, bool_or(cost is null) from page.use where team != '' group by all",
    "joules": f"select known.team, sum(energy_joules) from report.energy {_TEAM}",
    "measured": "select known.team, sum(measured_gpu_hours) from report.energy_balance as balance join page.team as known"
    " on (balance.cluster, value) = (known.cluster, namespace) where dimension = 'namespace' group by all",
    "before": f"select known.team, sum(previous_allocated_gpu_hours) from report.namespace_change {_TEAM}",
    "now": f"select known.team, sum(allocated_gpu_hours) from report.namespace_change {_TEAM}",
    **{
        severity: f"select team, count(*) from page.finding where severity = '{severity}' group by all"
        for severity in ("critical", "warning", "info")
    },
}
"""Figures of teams from other tables: pending hours, hours of unknown holders, cost, energy, change, findings by severity."""


def _by_team(tables: Tables) -> dict[str, dict[str, Any]]:
    """Return figure → team → value."""
    queries = {figure: sql for figure, sql in _BY_TEAM.items() if tables.can(sql)}
    known = {figure: {row[0]: row[1] for row in tables.con.execute(sql).fetchall()} for figure, sql in queries.items()}
    return {figure: known.get(figure, {}) for figure in _BY_TEAM}


def _trends(tables: Tables, hours: Mapping[date, float]) -> dict[str, list[float]]:
    """Return by team the GPUs allocated on each day with a known allocation in all its clusters; ``hours`` are those of a day."""
    rows = tables.rows("""
        select team, day, coalesce(sum(gpu_hours) filter (where bucket != 'reserved_idle'), 0) as gpu_hours
        from (select team, cluster, count(*) over (partition by team) as clusters from page.use where team != '' group by 1, 2)
        inner join (select distinct cluster, day from page.use where bucket != 'unknown') using (cluster)
        left join page.use using (team, cluster, day)
        group by team, day, clusters having count(distinct cluster) = clusters order by day
    """)
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["day"] in hours:
            found.setdefault(row["team"], []).append(row["gpu_hours"] / hours[row["day"]])
    return found


def since_text(header: Header) -> str:
    """Return the window in words: a month, days, or from a time to a time."""
    start, end = local(header.window.start_at, header.timezone), local(header.window.end_at, header.timezone)
    last = end - timedelta(seconds=1)
    if start.day == 1 and (start.hour, start.minute) == (0, 0) and end == (start + timedelta(days=32)).replace(day=1):
        return f"{start:%B %Y}"
    if (start.hour, start.minute, end.hour, end.minute) == (0, 0, 0, 0):
        return f"{start:%-d %B %Y}" if start.date() == last.date() else f"{start:%-d %b %Y} to {last:%-d %b %Y}"
    return (
        f"{start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S}"
        if start.date() == end.date()
        else f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"
    )
