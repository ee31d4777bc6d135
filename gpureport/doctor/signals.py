"""Device signals: which ones exist, on how many devices, and which figures their absence costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from gpureport.config.findings import hidden_from_guest, not_on_model
from gpureport.doctor import remedies
from gpureport.doctor.evidence import Carried, Evidence, Finding, Remedy, Rhythm, ServerSeen, listed
from gpureport.values.catalog import FIGURES, Catalog, Figure, Meaning
from gpureport.values.tables import SIGNALS

STAIRCASE_BELOW_RATIO = 0.7
"""Share of power samples with a new value below which the exporter renews values more slowly than it is scraped."""
LONG_STEP_SECONDS = 60.0
_PATHS = {
    "remote-read": "samples come by remote read",
    "victoria-metrics": "samples come by VictoriaMetrics' export",
    "openmetrics": "samples came from files",
    "simulation": "samples are simulated by gpureport simulate",
    "matrix": "no remote read: samples come by raw queries, which is slower and subject to the server's query limits",
}


def server_findings(server: ServerSeen | None, backfill_days: int) -> list[Finding]:
    """Return findings on the server."""
    if server is None:
        return []
    path = _PATHS.get(server.read_path, server.read_path)
    findings = [Finding("server", "ok" if server.read_path != "matrix" else "note", server.name, path)]
    kept = server.retention_days
    if kept is not None and kept < backfill_days + 1:
        text = f"samples are kept for {kept:g} days; export.backfill_days is {backfill_days}, so the oldest days stay empty"
        findings.append(Finding("retention", "note", server.name, text))
    return findings


def rhythm_findings(rhythm: Rhythm) -> list[Finding]:
    """Return findings on the rhythm of samples."""
    findings = []
    if rhythm.step_seconds is not None:
        findings.append(_interval(rhythm.step_seconds, rhythm.fresh_ratio))
    if rhythm.reset_count:
        text = f"resets in the data (driver reloaded): {rhythm.reset_count}; growth counts before and after each"
        findings.append(Finding("counter_reset", "note", "energy_joules", text))
    return findings


def _interval(step_seconds: float, fresh_ratio: float | None) -> Finding:
    text = f"a sample every {step_seconds:g} s"
    if fresh_ratio is not None and fresh_ratio < STAIRCASE_BELOW_RATIO:
        renewed = step_seconds / fresh_ratio if fresh_ratio else float("inf")
        more = f", but a new value only every {renewed:.0f} s: scrape as often as the exporter collects"
        return Finding("scrape_interval", "note", "scrape", text + (more if fresh_ratio else ", all of them equal"))
    if step_seconds > LONG_STEP_SECONDS:
        return Finding("scrape_interval", "note", "scrape", f"{text}: shorter changes may be missed, except in counters")
    return Finding("scrape_interval", "ok", "scrape", text)


NOT_ON_MIG = frozenset({"gpu_util_ratio", "mem_copy_util_ratio", "enc_util_ratio", "dec_util_ratio"})
"""Fields that NVML does not define for a MIG instance (dcgm-exporter 50, 216)."""
UNTIL_FIRST_ERROR = "xid_code"
"""Signal without a series until the first error, from DCGM 4.5.3 on (dcgm-exporter 700)."""
_READ_IF_THERE = frozenset({"low_util_violation_seconds", "reliability_violation_seconds"})
"""Slowdowns that no report needs: they are rare, or the workload itself causes them."""
_ZERO_BELOW = (4, 5)
_PROFILING = "profiling: a GPU without it can stop it on the whole node; DCGM issue 226, dcgm-exporter issue 50"

_GUESTS = "{} are virtual GPUs: guests cannot read it; the exporter on their host can"

Version = tuple[int, ...]
Cell = tuple[str, str, bool]
"""Host, model, whether MIG: devices for which one exporter should behave in the same way."""


def signal_findings(evidence: Evidence, catalog: Catalog) -> list[Finding]:
    """Return a finding per signal that a figure needs, or one in all without device series; and one on unread metrics."""
    if not evidence.carried:
        return [_no_device_series(evidence, catalog), *_unread(evidence)]
    seen = Seen(evidence.carried)
    lost = costs(seen.signals)
    findings = []
    for signal in (signal.name for signal in SIGNALS):
        if signal in seen.signals:
            findings.append(_present(signal, seen, evidence))
        elif signal in lost and signal not in _READ_IF_THERE:
            findings.append(_absent(signal, lost[signal], seen, catalog, evidence))
    return [*findings, *_absent_by_vendor(seen, catalog, evidence), *_unread(evidence)]


def _absent_by_vendor(seen: Seen, catalog: Catalog, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each signal that the devices of one vendor lack and those of another have."""
    vendors = {row.exporter: row.vendor for row in catalog.rows}
    named = {each.exporter: vendors.get(each.exporter, "") for each in seen.carried}
    for vendor in sorted({*named.values()} - {""}) if len({*named.values()} - {""}) > 1 else ():
        own = Seen(tuple(each for each in seen.carried if named[each.exporter] in (vendor, "")))
        devices = _places({_cell(each) for each in own.carried if named[each.exporter] == vendor})
        for signal, lost in costs(own.signals).items():
            if signal in seen.signals and signal not in _READ_IF_THERE:
                found = _absent(signal, lost, own, catalog, replace(evidence, left_out={}))
                yield replace(found, status="partial" if found.is_loss else "note", found=f"not on {devices}: {found.found}")


def _unread(evidence: Evidence) -> list[Finding]:
    if not evidence.unread:
        return []
    named = ", ".join(f"{metric} ({count:,} series)" for metric, count in evidence.unread.items())
    return [Finding("unread_metrics", "note", "signals", f"not read, because they are not in the catalog: {named}")]


def costs(present: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return signals to add → the figures that each would make known, by ``FIGURES``.

    Figures with only one way come first, because their signals may serve the others too.
    """
    there = frozenset(present)
    wanted: dict[str, list[str]] = defaultdict(list)
    for name, figure in sorted(FIGURES.items(), key=lambda item: len(item[1].ways) > 1):
        if figure.missing(there):
            for signal in _cheapest_way(figure, there, wanted.keys()):
                wanted[signal].append(name)
    return {signal: tuple(name for name in FIGURES if name in names) for signal, names in wanted.items()}


def _cheapest_way(figure: Figure, there: Set[str], wanted: Set[str]) -> list[str]:
    """Return the missing signals of the way that needs the fewest signals besides those wanted anyway."""
    way = min(figure.ways, key=lambda signals: len(set(signals) - there - wanted))
    return [signal for signal in way if signal not in there]


@dataclass(frozen=True)
class Seen:
    """The evidence by signal, exporter and cell."""

    carried: tuple[Carried, ...]

    @cached_property
    def signals(self) -> frozenset[str]:
        """Signals that any device has."""
        return frozenset(each.signal for each in self.carried)

    @cached_property
    def exporters(self) -> Mapping[str, Mapping[Cell, int]]:
        """Exporter → cell → number of its devices there, from the metric that most of them have."""
        return {exporter: self.cells(exporter) for exporter in dict.fromkeys(each.exporter for each in self.carried)}

    def cells(self, exporter: str, signal: str = "") -> dict[Cell, int]:
        """Return cell → number of devices for which the exporter has the signal (any signal for '') there, by any metric."""
        found: dict[Cell, int] = {}
        for each in self.carried:
            if each.exporter == exporter and signal in ("", each.signal):
                found[_cell(each)] = max(found.get(_cell(each), 0), each.device_count)
        return found

    def versions(self, catalog: Catalog) -> tuple[Version, Version]:
        """Return the oldest and newest version of dcgm-exporter that can have published all observed names."""
        names = {each.metric for each in self.carried if each.exporter == remedies.DCGM}
        ranges = [_range(row) for row in catalog.rows if row.metric in names and row.exporter == remedies.DCGM]
        oldest, newest = max((low for low, _ in ranges), default=(2, 0)), min((high for _, high in ranges), default=_ANY)
        return (oldest, newest) if newest >= _FIELD_NAMES[0] else _FIELD_NAMES


_ANY: Version = (1 << 30,)
_FIELD_NAMES: tuple[Version, Version] = ((2, 0), (4, 8))
"""Versions for names of the old namespace: a flag enables these names, but the CSV still has field names."""


def _cell(each: Carried) -> Cell:
    return each.host, each.model, each.is_mig


def _range(row: Meaning) -> tuple[Version, Version]:
    low, _, high = row.versions.partition("-")
    return _version(low), _version(high) if high else _ANY


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _no_device_series(evidence: Evidence, catalog: Catalog) -> Finding:
    known = ", ".join(dict.fromkeys(row.exporter for row in catalog.rows if row.is_device))
    figures = tuple(name for name, figure in FIGURES.items() if figure.signals)
    nodes = sorted(evidence.kube.allocatable)
    have = f"; nodes with accelerators: {listed(nodes)}" if nodes else ""
    return Finding(
        "device_series",
        "missing",
        "devices",
        f"no series of any known exporter ({known}){have}: check that one is scraped, and that this is the right server and time",
        figures,
    )


def _present(signal: str, seen: Seen, evidence: Evidence) -> Finding:
    """Return the finding of the exporter with most devices of the signal; it names devices without the signal."""
    of_exporter = {exporter: seen.cells(exporter, signal) for exporter in seen.exporters}
    exporter = max(of_exporter, key=lambda name: sum(of_exporter[name].values()))
    here, there = of_exporter[exporter], seen.exporters[exporter]
    without = [cell for cell, count in there.items() if here.get(cell, 0) < count]
    guests = [cell for cell in without if signal in hidden_from_guest(cell[1])]
    lacking = [cell for cell in without if cell not in guests and signal not in not_on_model(cell[1])]
    metrics = ", ".join(dict.fromkeys(each.metric for each in seen.carried if each.signal == signal))
    text = f"{metrics} on {sum(here.values())} of {sum(there.values())} devices"
    lost = costs(seen.signals - {signal}).get(signal, ())
    if guests and not lacking:
        return Finding("virtual_gpu", "partial" if lost else "note", signal, f"{text}: {_GUESTS.format(_models(guests))}", lost)
    if without and not lacking:
        return Finding("not_on_model", "note", signal, f"{text}: not supported by {_models(without)}")
    if not lacking:
        return Finding("signal", "ok", signal, text)
    if signal == UNTIL_FIRST_ERROR:
        return Finding("signal_conditional", "note", signal, f"{text}: the others have had no error yet (DCGM 4.5.3 or newer)")
    if signal in NOT_ON_MIG and all(is_mig for _, _, is_mig in lacking):
        return Finding("signal_conditional", "note", signal, f"{text}: it is not defined for MIG instances")
    reason = f" ({_PROFILING})" if "_PROF_" in metrics.upper() else ""
    if signal in evidence.left_out:
        reason = f" ({_left_out(signal, evidence)})"
    return Finding("signal", "partial" if lost else "note", signal, f"{text}; not on {_places(lacking)}{reason}", lost)


def _absent(signal: str, lost: tuple[str, ...], seen: Seen, catalog: Catalog, evidence: Evidence) -> Finding:
    if signal in evidence.left_out:
        return Finding("values_left_out", "missing", signal, _left_out(signal, evidence), lost)
    if all(signal in not_on_model(each.model) for each in seen.carried):
        return Finding("not_on_model", "note", signal, f"no series: not supported by {_models(map(_cell, seen.carried))}")
    if all(signal in hidden_from_guest(each.model) for each in seen.carried):
        return Finding("virtual_gpu", "missing", signal, f"no series: {_GUESTS.format(_models(map(_cell, seen.carried)))}", lost)
    add = remedy(signal, seen, catalog)
    is_silent = remedies.DCGM in seen.exporters and seen.versions(catalog)[1] >= _ZERO_BELOW
    if signal == UNTIL_FIRST_ERROR and is_silent:
        text = "no series: no error yet (DCGM 4.5.3 or newer has none before the first), or the row is not in the CSV"
        return Finding("signal_conditional", "note", signal, text, (), add)
    if signal in NOT_ON_MIG and all(each.is_mig for each in seen.carried):
        return Finding("signal_conditional", "note", signal, "no series: it is not defined for MIG instances")
    return Finding("signal", "missing", signal, _why_absent(signal, seen, catalog), lost, add)


def _left_out(signal: str, evidence: Evidence) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in evidence.left_out[signal].items())
    return f"series exist, but every value was left out: {reasons}"


def _why_absent(signal: str, seen: Seen, catalog: Catalog) -> str:
    candidates = [row for row in catalog.candidates(signal) if row.is_device and row.exporter in seen.exporters]
    if not candidates:
        return f"no series; none of {', '.join(seen.exporters)} publishes it"
    if remedies.DCGM in seen.exporters:
        chosen = _dcgm_row(signal, seen, catalog)
        is_custom = chosen is not None and "custom csv" in chosen.needs
        return "no series; not in the stock metrics CSV" if is_custom else "no series, though the stock metrics CSV has it"
    return "no series"


def remedy(signal: str, seen: Seen, catalog: Catalog) -> tuple[Remedy, ...]:
    """Return settings with which each exporter in use publishes the signal; () where none can."""
    found = []
    for exporter in seen.exporters:
        if exporter == remedies.DCGM:
            row = _dcgm_row(signal, seen, catalog)
            found += [remedies.csv_row(row)] if row else []
            continue
        others = [row for row in catalog.candidates(signal) if row.exporter == exporter and row.is_device]
        found += [remedies.published_by(others[0])] if others else []
    return tuple(found)


def _dcgm_row(signal: str, seen: Seen, catalog: Catalog) -> Meaning | None:
    """Return the first row that the version in use can publish; a direct metric goes before a quotient of two."""
    oldest, newest = seen.versions(catalog)
    rows = [row for row in catalog.candidates(signal) if row.exporter == remedies.DCGM and row.metric.startswith("DCGM_FI")]
    fitting = [row for row in rows if _range(row)[0] <= newest and _range(row)[1] >= oldest]
    return min(fitting or rows, key=lambda row: row.per not in ("", "second"), default=None)


def _places(cells: Iterable[Cell]) -> str:
    names = [f"{host or 'a host without a name'}{f' ({model})' if model else ''}" for host, model, _ in sorted(cells)]
    return listed(names)


def _models(cells: Iterable[Cell]) -> str:
    return listed(sorted({model for _, model, _ in cells}))
