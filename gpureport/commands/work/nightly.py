"""The nightly job: every cluster's state and samples into the lake, their facts, the report, and what becomes of old days."""

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
"""Tables of a night into a bucket, where each costs a request to write; the others wait."""
_FEWEST_SNAPSHOTS = 3
"""Of a table and day that are joined in a bucket: to join two costs a request and saves one file."""


@dataclass
class Watch:
    """Duration of each stage, and its result."""

    clock: Callable[[], float]
    stage_seconds: dict[str, float] = field(default_factory=dict)
    sample_counts: Counter[str] = field(default_factory=Counter)
    has_report: bool = False
    exit_code: int = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        start = self.clock()
        try:
            yield
        finally:
            self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + self.clock() - start


@dataclass(frozen=True)
class NightPlan:
    """Plan of a night: its day, and whether Kubernetes is read."""

    config: Config
    environ: Mapping[str, str]
    last_day: date
    now: datetime
    with_state: bool = True


def run(plan: NightPlan, clock: Callable[[], float]) -> reporting.Reported | None:
    """Export and compute the day, the days missing before it and the recent ones that grew; then the report of the day.

    Then metrics of the run are published, whatever came of it; a second run at the same time leaves at once and publishes none.
    """
    watch = Watch(clock)
    try:
        with exclusive_run(plan.config.lake), _published(plan, watch):
            return _work(plan, watch)
    except LakeBusyError:
        if watch.exit_code:
            raise
        _LOG.info(f"another run over {plan.config.lake} is at work; this one leaves")
        return None


@contextmanager
def _published(plan: NightPlan, watch: Watch) -> Iterator[None]:
    """Metrics of the night that the block is, however it ends; none of one that leaves to another run."""
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
            raise  # by a run of another machine; in a folder there is no other one
        watch.exit_code = EXIT_CODE if is_terminated() else getattr(error, "exit_code", GpureportError.exit_code)
        finish(watch.exit_code, "Terminated" if is_terminated() else type(error).__name__)
        raise
    finish(watch.exit_code)


def _work(plan: NightPlan, watch: Watch) -> reporting.Reported:
    """One cluster that cannot be read does not keep the others from their report; its failure is given after it."""
    reporting.check(plan.config)  # hours of fetching should not come before it
    failures: list[SourceError] = []
    found_day = False
    for config in collecting.each_source(plan.config, plan.environ, plan.last_day, failures):
        gone_by = timedelta(seconds=sum(watch.stage_seconds.values()))  # a snapshot is of its own time: others came first
        found_day = _Cluster(replace(plan, config=config, now=plan.now + gone_by), watch).read(failures) or found_day
    if not found_day:
        collecting.raise_first(failures)
    try:
        written = report_and_tidy(plan, watch)
    except GpureportError as error:
        collecting.raise_first([*failures, error])
    for warning in filter(None, (*written.warnings, written.failure) if failures else ()):
        _LOG.warning(warning)
    collecting.raise_first(failures)
    return written


def report_and_tidy(plan: NightPlan, watch: Watch) -> reporting.Reported:
    """The report, then what becomes of old days, whatever the report says of this one."""
    try:
        with watch.stage("report"):
            written = _reported(plan)
    except Exception:
        _tidy(plan, watch)
        raise
    watch.has_report = True
    watch.exit_code = written.failure.exit_code if written.failure else 0
    _tidy(plan, watch)
    return written


def _reported(plan: NightPlan) -> reporting.Reported:
    """The report of the day; the one that lies there where it would say the same, and nothing is amiss."""
    config, window = plan.config, Window.of_day(plan.last_day)
    made_of = reporting.made_of(config, window.over_by(plan.now))
    if delivering.is_made_of(config.out, made_of):
        return reporting.Reported([config.out / "report.html"], ("Nothing has changed since the report was made.",))
    written = reporting.report(config, window, config.out, plan.now)
    if not (written.failure or written.warnings):
        delivering.remember(config.out, made_of)
    return written


def _tidy(plan: NightPlan, watch: Watch) -> None:
    with watch.stage("housekeeping"):
        lake = open_lake(plan.config.lake)
        is_bucket = isinstance(lake.storage.place, ObjectAddress)
        lake.pack_observations(plan.now.date(), _FEWEST_SNAPSHOTS if is_bucket else 2)
        first_to_change = plan.now.date() - timedelta(days=1 + plan.config.export.restate_days)
        lake.pack_facts(first_to_change, PACKED_A_NIGHT if is_bucket else None)
        for line in describe_pruned(prune(lake, plan.config.retention, plan.now.date())):
            _LOG.info(line)
        lake.tidy()


@dataclass(frozen=True)
class _Cluster:
    """A night of one cluster."""

    plan: NightPlan
    watch: Watch

    def read(self, failures: list[SourceError]) -> bool:
        """State, samples and facts into the lake; whether the night's day is there. What cannot be read goes to the failures."""
        self._snapshot(failures)
        days, last, read = self._days_to_do(), self.plan.last_day, list[date]()
        while days:
            day, *days = days
            try:
                read += [day] if self._read_samples(day) else []
            except SourceError as error:
                failures += [error] if str(error) not in map(str, failures) else []
                days = days[-1:]  # the report's own day is fetched whatever became of older ones
        if last not in read and last in self._days_of("device_sample"):
            read.append(last)  # of samples that were fetched before
        self._compute(*(day for day in read if not reporting.has_facts(self.plan.config, day)))
        self._compute(*read)  # a day that has facts may rest on one that has just got its own
        self._compute_older_days()
        return last in read

    def _snapshot(self, failures: list[SourceError]) -> None:
        plan = self.plan
        if not (plan.with_state and plan.config.kubernetes.enabled) or self._is_seen_lately():
            return
        with self.watch.stage("snapshot"):
            taken = observing.snapshot_beside(plan.config, plan.environ, plan.now)
        failures += observing.log_beside(taken)

    def _is_seen_lately(self) -> bool:
        """Whether a snapshot of the cluster is so new that another one says nothing more."""
        found = open_lake(self.plan.config.lake, create=True).partitions(SOURCE.name)
        times = (each.last_ms or 0 for held in found if held.cluster == self.plan.config.cluster for each in held.stored)
        return 0 < to_ms(self.plan.now) - max(times, default=0) < _SNAPSHOT_MS

    def _days_to_do(self) -> list[date]:
        """Days without facts as far back as may be filled from the first one held, and the recent ones for late data."""
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
        """Whether the lake has what a day's facts are made of; not of an earlier day of which the server knows nothing."""
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
        """Facts of an older revision again, the oldest day first, for as long as a night may take for that."""
        start = self.watch.clock()
        days = sorted(self._days_of() & (self._days_of("device_sample") | self._days_of("pod")))
        for number in range(0, len(days), _DAYS_AT_ONCE):
            if self.watch.clock() - start >= _RECOMPUTE_SECONDS:
                break
            self._compute(*days[number : number + _DAYS_AT_ONCE])

    def _compute(self, *days: date) -> None:
        """Facts of days from the first that lacks those of its samples, or of what was left to it; a run may have been killed."""
        if due := [*dropwhile(partial(reporting.has_facts, self.plan.config), days)]:
            with self.watch.stage("compute"):
                for line in reporting.compute(self.plan.config, due, self.plan.config.cluster):
                    _LOG.info(line)


@contextmanager
def _database(plan: NightPlan, has_report: bool) -> Iterator[Path | None]:
    """The report's DuckDB file where metrics are to be had from it; one that cannot be fetched only costs those."""
    if not (has_report and plan.config.metrics.is_wanted):
        yield None
        return
    with ExitStack() as stack:
        database = None
        try:
            database = stack.enter_context(delivering.report_here(plan.config.out, delivering.DATABASE)) / delivering.DATABASE
        except StoreError as error:
            _LOG.warning(f"the run's metrics lack what the report says: {error}")
        yield database if database and database.exists() else None
