"""The nightly job: state and samples of every cluster into the lake, their facts, the report, and upkeep of old days."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import dropwhile
from pathlib import Path

from gpureport.collect.export import NoSeriesError
from gpureport.commands.work import collecting, delivering, observing, reporting
from gpureport.commands.work.job_metrics import Night, publish
from gpureport.config import Config
from gpureport.lake import LakeBusyError, exclusive_run, open_lake
from gpureport.lake.retention import describe_pruned, prune
from gpureport.store import ObjectAddress
from gpureport.values.errors import GpureportError, SourceError, StoreError
from gpureport.values.runtime.stopping import EXIT_CODE, is_terminated
from gpureport.values.tables import SOURCE
from gpureport.values.window import Window, to_ms

_LOG = logging.getLogger(__name__)
_DAYS_AT_ONCE = 7
_RECOMPUTE_SECONDS = 3600
_SNAPSHOT_MS = 600_000
PACKED_A_NIGHT = 5
"""Fact tables packed per night in a bucket at most, because each costs a write request; the others wait."""
_FEWEST_SNAPSHOTS = 3
"""Fewest snapshots of a table and day that are joined in a bucket: joining two costs a request and saves only one file."""


@dataclass
class Watch:
    """Duration of each stage, and the result of the run."""

    clock: Callable[[], float]
    stage_seconds: dict[str, float] = field(default_factory=dict)
    sample_counts: Counter[str] = field(default_factory=Counter)
    has_report: bool = False
    exit_code: int = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the duration of the block to a stage."""
        start = self.clock()
        try:
            yield
        finally:
            self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + self.clock() - start


@dataclass(frozen=True)
class NightPlan:
    """Plan of a nightly run: its day, and whether Kubernetes is read."""

    config: Config
    environ: Mapping[str, str]
    last_day: date
    now: datetime
    with_state: bool = True


def run(plan: NightPlan, clock: Callable[[], float]) -> reporting.Reported | None:
    """Export and compute the day, the missing days before it and recent days that grew; then write the report of the day.

    Metrics of the run are published in any case. A second run at the same time ends at once and publishes none.
    """
    watch = Watch(clock)
    try:
        with exclusive_run(plan.config.lake), _published(plan, watch):
            return _work(plan, watch)
    except LakeBusyError:
        if watch.exit_code:
            raise
        _LOG.info(f"another run over {plan.config.lake} is active; this one ends")
        return None


@contextmanager
def _published(plan: NightPlan, watch: Watch) -> Iterator[None]:
    """Publish metrics when the block ends, also with an error; not where the run ends because another run has the lake."""
    start = watch.clock()

    def finish(exit_code: int, failure: str = "") -> None:
        ended_at = plan.now + timedelta(seconds=watch.clock() - start)
        night = Night(plan.config.cluster, ended_at, exit_code, watch.stage_seconds, dict(watch.sample_counts), failure=failure)
        with _database(plan, watch.has_report) as database:
            publish(replace(night, database=database), plan.config.metrics)

    try:
        yield
    except BaseException as error:
        if isinstance(error, LakeBusyError) and isinstance(plan.config.lake, ObjectAddress):
            raise  # a run of another machine has the lake; a folder has only this run
        watch.exit_code = EXIT_CODE if is_terminated() else getattr(error, "exit_code", GpureportError.exit_code)
        finish(watch.exit_code, "Terminated" if is_terminated() else type(error).__name__)
        raise
    finish(watch.exit_code)


def _work(plan: NightPlan, watch: Watch) -> reporting.Reported:
    """Read all clusters and report. A cluster that cannot be read does not stop the report; its error is raised afterwards."""
    reporting.check(plan.config)  # before hours of fetching
    failures: list[SourceError] = []
    found_day = False
    for config in collecting.each_source(plan.config, plan.environ, plan.last_day, failures):
        elapsed = timedelta(seconds=sum(watch.stage_seconds.values()))  # the snapshot's own time, after other clusters
        found_day = _Cluster(replace(plan, config=config, now=plan.now + elapsed), watch).read(failures) or found_day
    if not found_day:
        collecting.raise_first(failures)
    try:
        written = report_and_clean_up(plan, watch)
    except GpureportError as error:
        collecting.raise_first([*failures, error])
    for warning in filter(None, (*written.warnings, written.failure) if failures else ()):
        _LOG.warning(warning)
    collecting.raise_first(failures)
    return written


def report_and_clean_up(plan: NightPlan, watch: Watch) -> reporting.Reported:
    """Write the report, then do the upkeep of old days, even if the report fails."""
    try:
        with watch.stage("report"):
            written = _reported(plan)
    except Exception:
        _clean_up(plan, watch)
        raise
    watch.has_report = True
    watch.exit_code = written.failure.exit_code if written.failure else 0
    _clean_up(plan, watch)
    return written


def _reported(plan: NightPlan) -> reporting.Reported:
    """Return the report of the day; the existing one is kept if it would not change and had no failure or warning."""
    config, window = plan.config, Window.of_day(plan.last_day)
    input_digest = reporting.input_digest(config, window.over_by(plan.now))
    if delivering.has_input_digest(config.out, input_digest):
        return reporting.Reported([config.out / "report.html"], ("Nothing has changed since the report was made.",))
    written = reporting.report(config, window, config.out, plan.now)
    if not (written.failure or written.warnings):
        delivering.save_input_digest(config.out, input_digest)
    return written


def _clean_up(plan: NightPlan, watch: Watch) -> None:
    with watch.stage("housekeeping"):
        lake = open_lake(plan.config.lake)
        is_bucket = isinstance(lake.storage.place, ObjectAddress)
        lake.pack_observations(plan.now.date(), _FEWEST_SNAPSHOTS if is_bucket else 2)
        first_to_change = plan.now.date() - timedelta(days=1 + plan.config.export.restate_days)
        lake.pack_facts(first_to_change, PACKED_A_NIGHT if is_bucket else None)
        for line in describe_pruned(prune(lake, plan.config.retention, plan.now.date())):
            _LOG.info(line)
        lake.delete_unused_files()


@dataclass(frozen=True)
class _Cluster:
    """The nightly run of one cluster."""

    plan: NightPlan
    watch: Watch

    def read(self, failures: list[SourceError]) -> bool:
        """Read state and samples, compute facts; return whether the plan's day is read. Append read errors to ``failures``."""
        self._snapshot(failures)
        days, last, read = self._days_to_do(), self.plan.last_day, list[date]()
        while days:
            day, *days = days
            try:
                read += [day] if self._read_samples(day) else []
            except SourceError as error:
                failures += [error] if str(error) not in map(str, failures) else []
                days = days[-1:]  # the report's own day is fetched even if older ones fail
        if last not in read and last in self._days_of("device_sample"):
            read.append(last)  # its samples were fetched before
        self._compute(*(day for day in read if not reporting.has_facts(self.plan.config, day)))
        self._compute(*read)  # a day with facts may depend on a day that was just computed
        self._compute_older_days()
        return last in read

    def _snapshot(self, failures: list[SourceError]) -> None:
        plan = self.plan
        if not (plan.with_state and plan.config.kubernetes.enabled) or self._is_seen_lately():
            return
        with self.watch.stage("snapshot"):
            taken = observing.try_snapshot(plan.config, plan.environ, plan.now)
        failures += observing.log_tried_snapshot(taken)

    def _is_seen_lately(self) -> bool:
        """Return whether a snapshot of the cluster is so recent that another one adds nothing."""
        found = open_lake(self.plan.config.lake, create=True).partitions(SOURCE.name)
        times = (each.last_ms or 0 for held in found if held.cluster == self.plan.config.cluster for each in held.stored)
        return 0 < to_ms(self.plan.now) - max(times, default=0) < _SNAPSHOT_MS

    def _days_to_do(self) -> list[date]:
        """Return days without facts since the lake's first day, within the backfill limit, and recent days for late data."""
        last, export = self.plan.last_day, self.plan.config.export
        held = self._days_of()
        recent = [last - timedelta(days=back) for back in range(export.restate_days + 1)]
        missing = [last - timedelta(days=back) for back in range(export.backfill_days + 1)]
        first = min(held | self._days_of("device_sample"), default=last)
        return sorted({last, *(day for day in recent if day in held), *(day for day in missing if first <= day not in held)})

    def _days_of(self, table: str = "") -> set[date]:
        lake = open_lake(self.plan.config.lake, create=True)
        held = lake.partitions(table) if table else lake.computed_days()
        return {each.date for each in held if each.cluster == self.plan.config.cluster}

    def _read_samples(self, day: date) -> bool:
        """Export a day; return whether the lake has its data. False for an earlier day without data anywhere."""
        config = self.plan.config
        try:
            with self.watch.stage("export"):
                exported = collecting.export(config, self.plan.environ, day, only_if_grown=True)
        except NoSeriesError as error:
            is_held = day in self._days_of("device_sample")
            if not is_held and reporting.has_no_accelerators(config, day):
                _LOG.info(f"{day}: Kubernetes lists no node with accelerators, and Prometheus has no series of one")
                return True
            if day == self.plan.last_day:
                raise
            _LOG.info(f"{day} {'stays as it is' if is_held else 'stays missing'}: {error}")
            return is_held
        self.watch.sample_counts[config.cluster] += exported.sample_count if exported.is_written else 0
        collecting.log_export(exported)
        return True

    def _compute_older_days(self) -> None:
        """Compute facts of an older revision again, the oldest day first, within the time limit of a night."""
        start = self.watch.clock()
        days = sorted(self._days_of() & (self._days_of("device_sample") | self._days_of("pod")))
        for number in range(0, len(days), _DAYS_AT_ONCE):
            if self.watch.clock() - start >= _RECOMPUTE_SECONDS:
                break
            self._compute(*days[number : number + _DAYS_AT_ONCE])

    def _compute(self, *days: date) -> None:
        """Compute the days from the first one whose facts are missing or outdated; a killed run may have left such days."""
        if due := [*dropwhile(partial(reporting.has_facts, self.plan.config), days)]:
            with self.watch.stage("compute"):
                for line in reporting.compute(self.plan.config, due, self.plan.config.cluster):
                    _LOG.info(line)


@contextmanager
def _database(plan: NightPlan, has_report: bool) -> Iterator[Path | None]:
    """Yield the report's DuckDB file for metrics, or None. A file that cannot be fetched costs only its metrics."""
    if not (has_report and plan.config.metrics.is_wanted):
        yield None
        return
    with ExitStack() as stack:
        database = None
        try:
            database = stack.enter_context(delivering.local_report(plan.config.out, delivering.DATABASE)) / delivering.DATABASE
        except StoreError as error:
            _LOG.warning(f"the run's metrics lack the report's figures: {error}")
        yield database if database and database.exists() else None
