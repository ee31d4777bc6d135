"""The six answers of a report, one line each: name, number, money where prices are known, confidence and link."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from gpureport.report.header import Header
from gpureport.report.page.tables import UNMEASURED, Tables
from gpureport.report.page.words import ALLOCATED, IDLE, TABS, Hours, Money, hours_by
from gpureport.values.text import formats
from gpureport.values.text.safe import printable

_TRACE = 0.0005
"""Smallest share of capacity that an answer mentions."""
_HIGH, _MEDIUM = 0.99, 0.9
_SIZES = {"share": "share of a GPU", "1": "1 GPU", "2-4": "2–4 GPUs", "5-8": "5–8 GPUs", "more": "more than 8 GPUs"}
"""Names of the size classes of requests."""
_RETURNABLE_GPUS = """
    with fit as (
        select cluster, namespace, workload, workload_kind as kind, sum(freed_gpu_hours) as freed from report.rightsizing
        where verdict = 'fits' group by all
    ),
    workload as (
        select team, cluster, namespace, workload, kind, sum(gpu_hours) as held, sum(cost) as cost,
            bool_or(cost is null) as is_partial, coalesce(sum(gpu_hours) filter (where is_unused), 0) as unused,
            coalesce(sum(cost) filter (where is_unused), 0) as unused_cost
        from (select *, bucket in ('allocated_idle', 'reserved_idle') as is_unused from page.use)
        where namespace != '' and $team in ('', team) group by all
    )
    select team, sum(unused) as idle, sum(coalesce(fit.freed, 0) * (1 - unused / held)) as freed,
        sum(unused_cost + (cost - unused_cost) * coalesce(fit.freed, 0) / held) as cost,
        bool_or(is_partial and unused + coalesce(fit.freed, 0) > 0) as is_partial
    from workload left join fit using (cluster, namespace, workload, kind) where held > 0
    group by team order by sum(unused + coalesce(fit.freed, 0) * (1 - unused / held)) desc, team
"""
"""GPU-hours that each team can return: idle ones, and active ones that a smaller size would free. An hour counts once."""
_HEALTH = "substr(code, 1, 3) in ('GR3', 'GR4') and code not in ('GR310', 'GR402')"
"""Findings of faulty or throttled GPUs, without those that programs cause on healthy GPUs."""


@dataclass(frozen=True)
class Answer:
    """An answer. ``tone`` is '' (fine or unknown), warn or bad; ``tab`` and ``query`` (for GPUs) locate the evidence."""

    title: str
    headline: str
    detail: str
    tone: str = ""
    confidence: str = ""
    tab: str = "overview"
    query: str = ""
    link: str = "Evidence"

    @property
    def line(self) -> str:
        """The answer as one line of text, for a terminal too: names may have line ends and control characters."""
        confidence = f" ({self.confidence} confidence)" if self.confidence else ""
        return printable(" ".join(f"{self.title}: {self.headline}. {self.detail}{confidence}".split()))


def answers(tables: Tables, header: Header, money: Money, team: str = "") -> tuple[Answer, ...]:
    """Return the six answers of the whole report, or of one team."""
    answers = _Answers(tables, header, money, team)
    return (answers.use(), answers.waste(), answers.returnable(), answers.pending(), answers.health(), answers.cost())


def ledger(tables: Tables, team: str = "") -> Hours:
    """Return GPU-hours by category, of the whole report or of a team."""
    sql = "select '' as whole, bucket, sum(gpu_hours) as gpu_hours from page.use where $team in ('', team) group by all"
    return hours_by(tables.rows(sql, team=team), "whole").get("", Hours({}))


_UTILIZATION = """
    select sum(weighted_gpu_hours) / sum(known_gpu_hours) as mean from report.distribution
    where signal = 'gpu_util_ratio' and scope = if($team = '', 'cluster', 'team') and $team in ('', team)
    having sum(known_gpu_hours) >= $least
"""
"""Mean GPU utilization over the GPU-hours for which it is known, if these are enough."""

_IDLE_ENERGY = {"separate": " without idle energy", "pool": " with idle energy by pool"}
"""Suffix of a team's emissions, by idle policy. A team's energy always includes the idle energy of its own GPUs."""


def _per(amount: float, hours: float) -> str:
    return formats.rounded(amount / hours, 1 if amount / hours >= 1 else 2) if hours else formats.UNKNOWN


@dataclass(frozen=True)
class _Answers:
    tables: Tables
    header: Header
    money: Money
    team: str

    @property
    def hours(self) -> float:
        return self.header.window.seconds / 3600

    def gpus(self, gpu_hours: float, is_least: bool = False) -> str:
        average = _per(gpu_hours, self.hours)
        return formats.at_least(f"{average} {'GPU' if average == '1' else 'GPUs'}", is_least)

    @property
    def confidence(self) -> str:
        covered, lacking = self.header.coverage_ratio, ledger(self.tables).share("unknown", "allocated_unmeasured") or 0.0
        if covered is None or self.is_unmeasured:
            return ""
        ratio = min(covered, 1 - lacking)
        return "high" if ratio >= _HIGH else "medium" if ratio >= _MEDIUM else "low"

    @cached_property
    def whole(self) -> Hours:
        return ledger(self.tables, self.team)

    @cached_property
    def is_part(self) -> bool:
        """Whether a team may have had more hours: some allocation of its clusters is unknown."""
        return bool(self.team and self.row("select 1 from page.use where is_unknown and team = $team limit 1"))

    @property
    def is_unmeasured(self) -> bool:
        """Whether no use is known: all allocated hours are unmeasured, all allocation is unknown, or the data have no GPU."""
        is_unknown = self.whole.of("unknown") > (1 - UNMEASURED) * self.whole.capacity or not (self.whole.capacity or self.team)
        return is_unknown or 0 < self.whole.of("allocated_unmeasured") == self.whole.of(*ALLOCATED)

    @property
    def is_open(self) -> bool:
        """Whether hours of unknown allocation, which may be of each of the other parts, make these lower bounds."""
        return self.whole.of("unknown") > UNMEASURED * self.whole.capacity

    def is_notable(self, gpu_hours: float | None) -> bool:
        return (gpu_hours or 0.0) > _TRACE * self.whole.capacity

    def row(self, sql: str) -> Mapping[str, Any]:
        return self.tables.row(sql, team=self.team)

    def where(self, found: Mapping[str, Any]) -> str:
        """Return the cluster if there are several, because their namespaces, nodes and queues may have the same names."""
        return f" ({found['cluster']})" if len(self.header.clusters) > 1 else ""

    def use(self) -> Answer:
        """Answer: share of the capacity that was used effectively."""
        hours = self.whole
        if not hours.capacity:
            return Answer("Capacity use", "No data", "The data of this period has no GPU-hours.")
        allocated, unmeasured = hours.of(*ALLOCATED), hours.of("active_unmeasured", "allocated_unmeasured")
        lacking = (hours.of("unknown"), hours.of("unknown", "allocated_unmeasured"), hours.of("unknown") + unmeasured)
        held, active, sm = (each > UNMEASURED * hours.capacity for each in lacking)
        parts = [] if self.team else [f"{formats.percent(allocated / hours.capacity, held)} allocated"]
        shares = ((sm, "underutilized", ("underutilized",)), (active, "idle", IDLE), (False, "unknown", ("unknown",)))
        parts += [
            f"{formats.percent(hours.share(*names), least)} {word}"
            for least, word, names in shares
            if self.is_notable(hours.of(*names))
        ]
        if not allocated and self.is_unmeasured:
            headline, parts = "Unknown", ["Allocation unknown"]
        elif self.is_unmeasured:
            headline = f"{formats.percent(hours.share('allocated_unmeasured'), held)} allocated"
            parts = [*parts[1:], "use is not measured"]
        elif unmeasured and not hours.of("effective", "underutilized"):
            headline = f"{formats.percent(hours.share('active_unmeasured'), active)} active"
            parts.append("SM activity is not measured")
        else:
            headline = f"{formats.percent(hours.share('effective'), sm)} effective"
        least = self.header.settings.get("figure_min_coverage_ratio", 0.5) * hours.capacity
        if (mean := self.tables.row(_UTILIZATION, team=self.team, least=least).get("mean")) is not None:
            parts.append(f"mean GPU utilization {formats.percent(mean)}")
        of = (
            f"{self.gpus(allocated, self.is_part)} on average"
            if self.team
            else f"{formats.gpu_hours(hours.capacity)} of capacity"
        )
        return Answer("Capacity use", headline, " · ".join([*parts, of]), "", self.confidence, "capacity", link="Capacity")

    def _worst(self, *buckets: str) -> Mapping[str, Any]:
        named = ", ".join(f"'{each}'" for each in buckets)
        return self.row(f"""
            select cluster, team, namespace, workload, kind, count(distinct (pod, pod_uid)) filter (where pod != '') as pods,
                sum(gpu_hours) as gpu_hours, bool_or(is_unknown) as is_least,
                sum(cost) as cost, is_least or bool_or(cost is null) as is_partial
            from page.use where bucket in ({named}) and namespace != '' and $team in ('', team)
            group by all order by gpu_hours desc, cluster, namespace, workload, kind limit 1
        """)

    def waste(self) -> Answer:
        """Answer: the workload with the most idle GPU-hours, and the one with the most underutilized GPU-hours."""
        worst = [
            (found["gpu_hours"], found, f"{formats.gpu_hours(found['gpu_hours'], found['is_least'])} {word}")
            for word, buckets in (("idle", IDLE), ("underutilized (SM activity below 50 %)", ("underutilized",)))
            if self.is_notable(self.whole.of(*buckets)) and (found := self._worst(*buckets))
        ]
        amounts = {
            "idle": IDLE, "underutilized": ("underutilized",), "of unknown SM activity": ("active_unmeasured",),
            "not measured": ("allocated_unmeasured",), "of unknown allocation": ("unknown",),
        }  # fmt: skip
        known = {word: hours for word, buckets in amounts.items() if self.is_notable(hours := self.whole.of(*buckets))}
        least = {word: self.is_part or (self.is_open and word != "of unknown allocation") for word in known}
        sums = ", ".join(f"{formats.gpu_hours(hours, least[word])} {word}" for word, hours in known.items())
        if not worst:
            trace = self.whole.of(*IDLE, "underutilized")
            is_open = bool(sums) or self.is_part
            headline = "No data" if self.is_unmeasured else "None known" if is_open else "Almost none" if trace else "None"
            exception = f", but for {formats.gpu_hours(trace)}" if trace else ""
            verb = "is known to be" if is_open or self.is_unmeasured else "was"
            detail = f"No allocated GPU {verb} idle or underutilized{exception}{sums and f'; {sums}'}."
            return Answer("Largest waste", headline, detail, tab="workloads", link="Workloads")
        worst.sort(key=lambda each: -each[0])
        first, rest = worst[0][1], worst[1:]
        pods = f" in {formats.counted(first['pods'], 'pod')}" if first["pods"] else ""
        named = [f"{each['team']} / {each['workload']}{self.where(each)}" for _, each, _ in worst]
        second = f" {'Also' if named[-1] == named[0] else f'Next: {named[1]},'} {rest[0][2]}." if rest else ""
        detail = f"{worst[0][2]}{pods}{self.money.tail(first['cost'], is_least=first['is_partial'])}.{second} In all: {sums}."
        return Answer("Largest waste", named[0], detail, "warn", self.confidence, "workloads", link="Workloads")

    def returnable(self) -> Answer:
        """Answer: GPUs to return: idle ones on average, smaller sizes, and those free in every hour (hourly average)."""
        teams = self.tables.rows(_RETURNABLE_GPUS, team=self.team)
        idle, freed = (sum(each[name] or 0.0 for each in teams) for name in ("idle", "freed"))
        free = "select sum(floor(free_gpus_min + 1e-6)) as gpus from report.gpu_need where gpu_model != '(all)' and $team = ''"
        parts = [] if self.is_unmeasured else [f"{_per(idle, self.hours)} idle on average"]
        if self.is_notable(unmeasured := self.whole.of("allocated_unmeasured")):
            parts.append(f"use of {self.gpus(unmeasured)} not measured")
        if self.is_notable(freed):
            parts.append(f"{_per(freed, self.hours)} by a MIG profile or smaller model")
        # The ledger also has GPUs without an exporter.
        count = max(self.header.device_count, round(self.whole.capacity / self.hours) if self.hours else 0)
        is_lower = self.is_part or self.is_open or unmeasured > UNMEASURED * self.whole.of(*ALLOCATED)  # may be idle or active
        if self.is_open:
            parts.append(f"allocation of {self.gpus(self.whole.of('unknown'))} unknown")
        if whole_spare := int(self.row(free).get("gpus") or 0):
            parts.append(f"{whole_spare} free in every hour (hourly average)")
        need = {} if self.team else self.row("select * from report.gpu_need where gpu_model = '(all)' and $team = ''")
        if need.get("active_gpus_p95") is not None and len(self.header.clusters) == 1:
            active = [need[f"active_gpus_{which}"] for which in ("p95", "max")]
            p95, peak = (formats.rounded(each, 1, is_lower and round(each, 1) < count) for each in active)  # no ≥ for all GPUs
            parts.append(f"active GPUs, hourly average: p95 {p95}, peak {peak}")
        gpus = (idle + freed) / self.hours + whole_spare if self.hours else 0.0
        largest = [each for each in teams if each["team"] and self.is_notable(each["idle"] + each["freed"])]
        if largest and not self.team:
            by_team = (f"{each['team']} {_per(each['idle'] + each['freed'], self.hours)}" for each in largest[:3])
            parts.append(f"by team: {', '.join(by_team)}")
        of = "" if self.team else f" of {count:,}"
        tone = "warn" if gpus >= 0.5 else ""
        is_least = is_lower or any(each["is_partial"] for each in teams)
        if spent := sum(each["cost"] or 0.0 for each in teams):
            parts.append(f"cost of those allocated: {self.money(spent, is_least)}")
        amount, detail = formats.rounded(gpus, 1, is_lower), " · ".join(parts)
        headline, detail = "No data" if self.is_unmeasured and not gpus else f"{amount}{of}", detail[:1].upper() + detail[1:]
        return Answer("GPUs to return", headline, detail, tone, self.confidence, "workloads", link="Workloads")

    def pending(self) -> Answer:
        """Answer: pending or starved teams, and the cause."""
        title = "Pending and starved"
        tab = "quotas" if self.row("select 1 from report.quota_fair_share where $team is not null limit 1") else "capacity"
        waits = self.tables.rows(
            """
            select cluster, team, size, sum(sum(pending_gpu_hours)) over (partition by cluster, team) as gpu_hours,
                if(bool_or(bool_or(pending_gpu_hours is null)) over (partition by cluster, team), '≥ ', '') as least,
                quantile_cont(coalesce(waiting_seconds, placing_seconds), 0.95) as p95,
                quantile_cont(if(waiting_seconds is null, placing_seconds, 1e18), 0.95) > p95 as is_least
            from (select pod.*, coalesce(known.team, namespace) as team
                from period.pod_wait as pod left join page.team as known using (cluster, namespace))
            where coalesce(waiting_seconds, placing_seconds) is not null
            group by cluster, team, size order by least(p95, 14400) desc, gpu_hours desc nulls last,
                sum(pending_gpu_hours) desc nulls last, cluster, team, size
            """
        )
        known, unlisted = self._listed({each["cluster"] for each in waits})
        lack = f"No source lists the pods of {', '.join(unlisted)} that request GPUs." if unlisted else ""
        waits = [each for each in waits if self.team in ("", each["team"])]
        longest = waits[0] if waits and waits[0]["p95"] >= 0.5 else {}
        why = self._pending_causes(longest)
        if not waits:
            lack = lack if known else "No source lists the pods that request GPUs."
            where = f" in {', '.join(known)}" if unlisted else ""
            headline = f"No pending pods{where}" if known else "No data"
            return Answer(title, headline, f"{lack} {why}".strip(), tab=tab, link=TABS[tab])
        first = waits[0]
        wait = f"p95 wait {'≥ ' if first['is_least'] else ''}{formats.duration(first['p95'])}"
        size = _SIZES.get(first["size"], "size unknown")
        is_long = first["p95"] >= 4 * 3600
        team = f"{first['team']}{self.where(first)}"
        is_pending = is_long and first["gpu_hours"]
        headline = f"{team}, {first['least']}{formats.gpu_hours(first['gpu_hours'])} pending" if is_pending else wait
        of = f"Longest: {team}, {size}" if longest else "For every team and size"
        detail = " ".join(filter(None, (f"{f'{wait} ({size})' if is_pending else of}.", lack, why)))
        return Answer(title, headline, detail, "bad" if is_long else "", self.confidence, tab, link=TABS[tab])

    def _listed(self, waiting: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Return the clusters, or those of the team, whose pods a source lists, and the others."""
        pressure = "report.scheduler_pressure where greatest(observed_seconds, demand_observed_seconds) > 0"
        found = self.tables.rows(f"select distinct cluster from {pressure}") if self.tables.has("period.pod_wait") else []
        listed = {*waiting, *(each["cluster"] for each in found)}
        own = self.tables.rows("select distinct cluster from page.team where team = $team order by all", team=self.team)
        clusters = [each["cluster"] for each in own] if self.team else self.header.clusters
        return [each for each in clusters if each in listed], [each for each in clusters if each not in listed]

    def _pending_causes(self, first: Mapping[str, Any]) -> str:
        """Return GPU-hours that could have served the longest wait: of its cluster and of other teams; without a wait, all."""
        cluster = first.get("cluster", "")
        statement = """
            select cluster, scheduler, resource, quota, borrower, sum(contested_gpu_hours) as gpu_hours from report.quota_pair
            where $cluster in ('', cluster) and ($team = '' or (cluster, scheduler, quota) in (select (cluster, scheduler, quota)
                from report.quota_pod join page.team using (cluster, namespace) where team = $team))
            group by all order by gpu_hours desc nulls last limit 1
        """
        pair = self.tables.row(statement, team=self.team, cluster=cluster)
        parts = []
        if pair and self.is_notable(pair["gpu_hours"]):
            whose = f"{formats.gpu_hours(pair['gpu_hours'])} guaranteed to {pair['quota']}{self.where(pair)}"
            parts.append(f"borrowed by {pair['borrower']}: {whose}")
        if not self.team:
            there = self.tables.rows(
                "select team is not distinct from $waits as waits, bucket, sum(gpu_hours) as gpu_hours from page.use "
                "where $cluster in ('', cluster) group by all",
                waits=first.get("team"),
                cluster=cluster,
            )
            others = hours_by(there, "waits").get("False", Hours({}))
            idle = f"idle in allocations{' of others' if first else ''}"
            amounts = ((others.of("fragmented"), "unallocated but fragmented"), (others.of(*IDLE), idle))
            parts += [f"{formats.gpu_hours(hours)} {what}" for hours, what in amounts if self.is_notable(hours)]
        return "; ".join(parts)[:1].upper() + "; ".join(parts)[1:] + ("." if parts else "")

    def health(self) -> Answer:
        """Answer: faulty GPUs, with node, GPU and error of the most severe findings."""
        found = self.tables.rows(
            f"""
            select * from page.finding
            where {_HEALTH} and gravity < 2 and ($team in ('', team) or list_contains(concerned, $team)) order by number
            """,
            team=self.team,
        )
        if not found:
            return Answer("GPU health", *self._no_health_findings(), tab="gpus", link="GPUs")
        critical = {(each["cluster"], each["device_uuid"] or _place(each)) for each in found if each["gravity"] == 0}
        nodes = {(each["cluster"], each["node_name"]) for each in found}
        if critical:
            headline = f"{formats.counted(len(critical), 'GPU')} {'needs' if len(critical) == 1 else 'need'} action"
        else:
            headline = f"{formats.counted(len(found), 'warning')} on {formats.counted(len(nodes), 'node')}"
        shown: dict[str, str] = {}
        for each in found:
            trouble = str(each["evidence"] or each["title"]).partition("; alloc")[0]
            key = f"{each['code']} {each['node_name']} {each['cluster']}"
            shown.setdefault(key, f"{_place(each)}{self.where(each)}: {trouble}")
        named = list(shown.values())[:2]
        rest = len(found) - len(named)
        detail = " · ".join([*named, *([formats.counted(rest, "more finding")] if rest else [])])
        name = "device_uuid" if found[0]["device_uuid"] else "node_name"
        query, tone = urlencode({each: found[0][each] for each in ("cluster", name)}), "bad" if critical else "warn"
        return Answer("GPU health", headline, detail, tone, found[0]["confidence"], "gpus", query, "GPUs")

    def _no_health_findings(self) -> tuple[str, str]:
        """Return headline and detail without a finding. A signal that no exporter reports is unknown, not absent."""
        known = self.row("""
            select count(*) as gpus, count(xid_error_count) as errors,
                count(coalesce(any_throttle_ratio, thermal_violation_ratio, power_violation_ratio)) as slowdowns
            from report.device where gpu_instance_id = '' and $team is not null
        """)
        found = (
            ("No XID error", "XID errors are", known.get("errors")),
            ("No throttling or slowdown above the thresholds", "Throttling is", known.get("slowdowns")),
        )
        extent = {n: "" if n == known["gpus"] else f" on {n:,} of {known['gpus']:,} GPUs" for *_, n in found if n}
        parts = (f"{none}{extent[count]}." if count else f"{what} unknown." for none, what, count in found)
        return "No sick GPU found" if any(count for *_, count in found) else "No data", " ".join(parts)

    def cost(self) -> Answer:
        """Answer: cost, and its certainty."""
        priced = self.tables.rows(
            """
            select part, sum(cost) as cost, sum(gpu_hours) filter (where cost is not null) / sum(gpu_hours) as priced_ratio,
                bool_or(cost is null) or ($is_open and part not in ('whole', 'allocation unknown')) as is_least
            from (select *, unnest(['whole', if(bucket = 'allocated_idle', 'idle', null), case
                when bucket = 'reserved_idle' then 'reserved, idle' when namespace != '' then 'allocated'
                when bucket = 'unknown' then 'allocation unknown' else 'unallocated' end
            ]) as part from page.use where $team in ('', team)) group by part
            """,
            team=self.team,
            is_open=self.is_open,
        )
        spent = {each["part"]: each for each in priced if each["cost"] is not None}
        energy = self._energy()
        covered = f"Data coverage {formats.percent(self.header.coverage_ratio)}, difference to capacity {difference(self.tables)}"
        if not spent:
            is_priced = bool(self.header.settings.get("price of gpu_hour"))
            headline = f"Energy {energy[0]}" if energy else "No price for these GPUs" if is_priced else "No prices configured"
            needed = "Cost needs a price for a model and day of the period" if is_priced else "Cost needs [prices.gpu_hour]"
            detail = f"{needed} in the configuration. {covered}."
            return Answer("Cost", headline, detail, "", self.confidence, "energy", link="Energy and cost")
        shown = {part: self.money(each["cost"], self.is_part or each["is_least"]) for part, each in spent.items() if each["cost"]}
        idle = f" ({shown['idle']} idle)" if "idle" in shown else ""
        parts = [
            f"{shown[name]} {name}{idle if name == 'allocated' else ''}"
            for name in ("allocated", "reserved, idle", "unallocated", "allocation unknown")
            if name in shown and (spent[name]["cost"] != spent["whole"]["cost"] or idle or name == "allocation unknown")
        ]
        if is_partial := (ratio := spent["whole"]["priced_ratio"]) < 1 - _TRACE:
            parts.append(f"{formats.percent(ratio)} of GPU-hours have a price")
        headline = self.money(spent["whole"]["cost"], is_partial or self.is_part)
        detail = f"{' · '.join([*parts, *energy])}. {covered}."
        return Answer("Cost", headline, detail, "", self.confidence, "energy", link="Energy and cost")

    def _energy(self) -> list[str]:
        of_team = "left join page.team as known using (cluster, namespace) where $team in ('', known.team)"
        joules = self.row(f"select sum(energy_joules) as total from report.energy {of_team}").get("total")
        emitted = self.row(f"""
            select sum(co2e_grams) as grams, bool_or(co2e_grams is null and energy_kwh > 0) as is_partial
            from report.cost {of_team}
        """)
        found = self.row("""
            select sum(measured_gpu_hours) as gpu_hours,
                if(bool_and(energy_joules = 0 or energy_accuracy_ratio is not null),
                    sum(energy_joules * energy_accuracy_ratio) / sum(energy_joules), null) as accuracy_ratio
            from report.energy_balance as balance
            left join page.team as known on (balance.cluster, value) = (known.cluster, namespace)
            where dimension = if($team = '', 'cluster', 'namespace') and $team in ('', known.team)
        """)
        due = self.whole.of(*ALLOCATED) if self.team else self.whole.capacity - self.whole.of("unavailable")
        least = self.is_part or (found.get("gpu_hours") or 0.0) < (1 - UNMEASURED) * due
        within = f" ± {formats.percent(found['accuracy_ratio'])}" if found.get("accuracy_ratio") else ""
        parts = [f"{formats.energy(joules, least)}{within}"] if joules else []
        if not emitted.get("grams"):
            return parts
        grams = formats.scaled(emitted["grams"], ((1e6, "t"), (1e3, "kg"), (1, "g")))
        basis = _IDLE_ENERGY.get(self.header.settings.get("idle_policy", ""), "") if self.team else ""
        return [*parts, f"{formats.at_least(grams, emitted['is_partial'] or least)} CO₂e{within}{basis}"]


def difference(tables: Tables) -> str:
    """Return the absolute difference between the sum of categories and capacity, over all clusters, in GPU-hours."""
    sql = "select sum(abs(difference_gpu_hours)) as off from report.gpu_hour_balance where dimension = 'cluster'"
    off = tables.row(sql).get("off")
    return formats.UNKNOWN if off is None else formats.significant(round(off, 3))


def _place(finding: Mapping[str, Any]) -> str:
    gpu = f" / GPU {finding['gpu_index']}" if finding.get("gpu_index") else ""
    return f"{finding['node_name'] or finding['subject']}{gpu}"
