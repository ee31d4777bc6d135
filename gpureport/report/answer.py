"""The answer in three sentences: what was used, what was not, and how far one can trust it."""

from __future__ import annotations

from collections.abc import Mapping

from gpureport import formats
from gpureport.figures import REASONS
from gpureport.report.bounds import is_trace
from gpureport.report.header import Header
from gpureport.report.ledger import HELD, Balance, added, by_holder
from gpureport.report.panels import waiting
from gpureport.report.results import Result


def answer(whole: Balance, tables: Mapping[str, Result], header: Header) -> tuple[str, ...]:
    """The sentences, of a capacity above zero."""
    return (_use(whole), _waste(whole, tables), _doubt(whole, header))


def _use(whole: Balance) -> str:
    """How much was held, and how much of it did work; a lower bound is said to be one, and none known is not zero."""
    capacity = formats.gpu_hours(whole.capacity_gpu_hours)
    if not whole.of(*HELD):
        known = "is known to have been" if whole.shows("unknown") else "was"
        return _sentence(f"none of {capacity} {known} allocated")
    held = "more than 0 %" if is_trace(whole, *HELD) else f"{_least(whole, 'unknown')}{spelled(whole.share(*HELD))}"
    return _sentence(f"{held} of {capacity} were allocated, {_depth(whole)}")


def _depth(whole: Balance) -> str:
    busy = formats.gpu_hours(whole.of("allocated_busy"))
    if not whole.is_depth_known:
        return f"{busy} of them busy; how effectively is unknown, for SM activity is not measured"
    if not whole.of("effective") and whole.shows("allocated_busy", "unknown"):
        return "none of it known to be effective, with half of the SMs or more at work"
    least = f"{_least(whole, 'allocated_busy', 'unknown')}{spelled(whole.share('effective'))}"
    share = "more than 0 %" if is_trace(whole, "effective") else least
    told = f"{share} effective: {formats.gpu_hours(whole.of('effective'))} with half of the SMs or more at work"
    return f"{told} (of {busy} more that were busy, SM activity is not known)" if whole.shows("allocated_busy") else told


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def spelled(ratio: float | None) -> str:
    """A share as a sentence can begin with it."""
    share = formats.percent(ratio)
    return share.replace("> ", "more than ").replace("< ", "less than ")


def _least(whole: Balance, *names: str) -> str:
    return "at least " if whole.shows(*names) else ""


def _waste(whole: Balance, tables: Mapping[str, Result]) -> str:
    unused = f"{_hours(whole, 'allocated_idle', 'reserved_idle')} held without being used"
    text = f"{unused}{_most_idle(tables)}; {_hours(whole, 'free', 'stranded')} free"
    stranded, asked = whole.of("stranded"), waiting(tables).device_hours
    placeless = f", {formats.gpu_hours(stranded)} of them stranded: nothing could be placed there" if stranded else ""
    return _sentence(f"{text}{placeless}{f'; pods waited for {formats.significant(asked)} device-hours' if asked else ''}")


def _hours(whole: Balance, *names: str) -> str:
    """GPU-hours of buckets and their verb; at least these, or none that is known, where others are unknown."""
    if not whole.of(*names) and whole.shows("unknown"):
        return "none are known to have been"
    return f"{_least(whole, 'unknown')}{formats.gpu_hours(whole.of(*names))} were"


def _most_idle(tables: Mapping[str, Result]) -> str:
    """The namespace that holds the most of it."""
    by_team: dict[str, list[Mapping[str, float]]] = {}
    for (_, namespace, *_), hours in by_holder(tables.get("gpu_hour_ledger")).items():
        by_team.setdefault(namespace, []).append(hours)
    idle = {team: added(parts).get("allocated_idle", 0.0) for team, parts in by_team.items()}
    if not any(idle.values()):
        return ""
    team = max(sorted(idle), key=lambda name: idle[name])
    return f", the most by {team} ({formats.gpu_hours(idle[team])})"


def _doubt(whole: Balance, header: Header) -> str:
    """What is not known, and what could not be used."""
    text = f"{spelled(header.coverage_ratio)} of the expected device time was seen"
    unknown, down = whole.of("unknown"), whole.of("unavailable")
    known = f"what became of {formats.gpu_hours(unknown)} is unknown" if unknown else "no GPU-hour is left unexplained"
    why = [REASONS.get(each.reason, each.reason) for each in header.unaccounted[:1]] if unknown else []
    reason = f" (mostly: {why[0]})" if why else ""
    lost = f", and {formats.gpu_hours(down)} could not be used" if down else ""
    return _days(header) + _sentence(f"{text}; {known}{reason}{lost}")


def _days(header: Header) -> str:
    """Of how many days there is nothing to tell; '' where the lake holds them all."""
    lacking = sorted(header.lacking_days.items(), key=lambda each: (each[1], each[0]))
    if not lacking:
        return ""
    cluster, held = lacking[0]
    whose = f" of {cluster}" if len(header.clusters) > 1 else ""
    more = f", nor all of {formats.counted(len(lacking) - 1, 'other cluster')}" if len(lacking) > 1 else ""
    asked = formats.counted(len(list(header.window.days())), "day")
    return f"The lake holds {held:,} of the window's {asked}{whose}{more}: a day without any trace of a GPU is in no figure. "
