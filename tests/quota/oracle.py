"""Figures of each quota, from every interval between two changes of anything, with fractions, in the plainest way."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from math import floor

from quota.cluster import GPUS_PER_NODE, Cluster, Job, Team, native

HOUR = 3_600
Figures = dict[str, Fraction]


def hours(cluster: Cluster) -> dict[tuple[str, int], Figures]:
    """Figures of quota_hour in the resource's unit, by quota and hour since the start."""
    found: dict[tuple[str, int], Figures] = defaultdict(lambda: defaultdict(Fraction))
    for start, end in _intervals(cluster):
        for system in sorted({team.system for team in cluster.teams}):
            for name, figures in _moment(cluster, system, start).items():
                for figure, value in figures.items():
                    found[name, start // HOUR][figure] += value * (end - start) / HOUR
    return found


def _intervals(cluster: Cluster) -> list[tuple[int, int]]:
    watched = cluster.watched or ((0, cluster.seconds),)
    changes = {second for interval in watched for second in interval} | set(range(0, cluster.seconds + 1, HOUR))
    changes |= {terms.since for team in cluster.teams for terms in team.terms}
    changes |= {second for job in cluster.jobs for second in (job.created, job.bound, job.ended) if second is not None}
    ordered = sorted(second for second in changes if 0 <= second <= cluster.seconds)
    pairs = pairwise(ordered)
    return [(start, end) for start, end in pairs if any(since <= start < until for since, until in watched)]


def _is_there(job: Job, now: int) -> bool:
    return job.created <= now and (job.ended is None or now < job.ended)


def _holds(job: Job, now: int) -> bool:
    return _is_there(job, now) and job.bound is not None and job.bound <= now


def _moment(cluster: Cluster, system: str, now: int) -> dict[str, Figures]:
    teams = [team for team in cluster.teams if team.system == system]
    jobs = [job for job in cluster.jobs if _is_there(job, now)]
    unit = native(system)
    held = {team.name: unit * sum(job.gpus for job in jobs if job.team == team and _holds(job, now)) for team in teams}
    wanted = {team.name: unit * sum(job.gpus for job in jobs if job.team == team) for team in teams}
    own = {team.name: unit * _own(team, now) for team in teams}
    borrowed = {team.name: max(0, held[team.name] - own[team.name]) for team in teams}
    lendable = {team.name: _lendable(team, now, own[team.name], held[team.name], unit) for team in teams}
    shares = _shares(cluster, system, teams, now, own, held)
    found = {}
    for team in teams:
        pool = [each.name for each in teams if each.cohort == team.cohort]
        all_borrowed, all_lendable = sum(borrowed[name] for name in pool), sum(lendable[name] for name in pool)
        name = team.name
        unmet = max(0, min(own[name], wanted[name]) - held[name])
        others = all_borrowed - borrowed[name]
        waiting = [job.gpus for job in jobs if job.team == team and not _holds(job, now)]
        free = unit * _free(cluster, now, min(waiting)) if waiting else 0
        cap = team.at(now).cap
        is_capped = cap is not None and bool(waiting) and held[name] + unit * min(waiting) > unit * cap
        figures = {
            "guaranteed_native_hours": own[name],
            "demanded_native_hours": wanted[name],
            "delivered_native_hours": held[name],
            "borrowed_native_hours": borrowed[name],
            "lent_native_hours": lendable[name] * min(Fraction(1), Fraction(all_borrowed, all_lendable or 1)),
            "unmet_native_hours": unmet,
            "violated_native_hours": min(unmet, free + others),
            "honourable_native_hours": min(own[name], wanted[name]),
            "honoured_native_hours": min(own[name], wanted[name], held[name]),
            "observed_seconds": HOUR,
            "capped_seconds": HOUR if is_capped else 0,
            "starved_seconds": HOUR if unmet else 0,
            **({} if shares is None else _beyond(shares[name], own[name], held[name])),
        }
        found[name] = {figure: Fraction(value) for figure, value in figures.items()}
    return found


def _beyond(share: Fraction, own: int, held: int) -> dict[str, Fraction]:
    return {
        "fair_share_native_hours": share,
        "entitled_native_hours": max(Fraction(0), share - own),
        "over_entitlement_native_hours": max(Fraction(0), held - share),
    }


def _own(team: Team, now: int) -> int:
    terms = team.at(now)
    return max(terms.deserved or 0, terms.guaranteed)


def _lendable(team: Team, now: int, own: int, held: int, unit: int) -> int:
    """Volcano keeps what is guaranteed; Kueue may limit what is lent."""
    terms = team.at(now)
    kept = max(held, terms.guaranteed * unit) if team.system == "volcano" else held
    left = max(0, own - kept)
    return left if terms.lending_limit is None else min(left, terms.lending_limit)


def _shares(
    cluster: Cluster, system: str, teams: list[Team], now: int, own: dict[str, int], held: dict[str, int]
) -> dict[str, Fraction] | None:
    """nos: min and the floor of its part of what is unused. Volcano's capacity: deserved within what guarantees and cap leave."""
    if system == "nos":
        available, total = sum(max(0, own[name] - held[name]) for name in own), sum(own.values())
        # The product is one of doubles in the original; so it is here.
        return {name: Fraction(own[name] + (floor(available * (own[name] / total)) if total else 0)) for name in own}
    if system == "volcano":
        capacity = cluster.nodes * GPUS_PER_NODE
        reserved = sum(team.at(now).guaranteed for team in teams)
        return {team.name: Fraction(_deserved(team, now, capacity - reserved)) for team in teams}
    return None


def _deserved(team: Team, now: int, unreserved: int) -> int:
    terms = team.at(now)
    most = unreserved + terms.guaranteed
    if terms.cap is not None:
        most = min(most, terms.cap)
    return max(terms.guaranteed, min(terms.deserved or 0, most))


def _free(cluster: Cluster, now: int, gpus: int) -> int:
    """GPUs free for requests of a size, node by node."""
    free = [GPUS_PER_NODE] * cluster.nodes
    for job in cluster.jobs:
        if job.node is not None and _holds(job, now):
            free[job.node] -= job.gpus
    return sum(gpus_free // gpus * gpus for gpus_free in free)
