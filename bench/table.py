"""Every part of a night beside what it is held against, in one run and one table, which goes into docs/benchmarks.md too.

GPUS ("1000,10000"), ROUNDS (3) and CLIENT (1) set the size, as for each part; PromQL is measured at its first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from bench import export, facts, night, promql, quota
from bench.measure import Measured, machine, measure, median, print_table
from bench.server import prometheus_binary, version
from bench.written import written_into

PAGE = Path("docs/benchmarks.md")
TITLE = "Everything side by side"
TELLING_GPUS = 1000
COLUMNS = (
    "what",
    "GPUs",
    "s",
    "CPU s",
    "peak MB",
    "of all processes",
    "against",
    "its s",
    "its CPU s",
    "s / its s",
    "CPU / its CPU",
)


@dataclass(frozen=True)
class Timed:
    """Medians of some runs; None what was not, or cannot be, measured."""

    wall: float | None
    cpu: float | None
    process_mb: float | None = None
    tree_mb: float | None = None


@dataclass(frozen=True)
class Row:
    """A part at a size, and what it is held against."""

    what: str
    gpus: int
    own: Timed
    against: str = ""
    other: Timed = Timed(None, None)

    def cells(self) -> list[object]:
        ratios = (_ratio(self.own.wall, self.other.wall), _ratio(self.own.cpu, self.other.cpu))
        own = (self.own.wall, self.own.cpu, self.own.process_mb, self.own.tree_mb)
        found = (self.what, self.gpus, *own, self.against, self.other.wall, self.other.cpu, *ratios)
        return ["–" if cell in (None, "") else cell for cell in found]


def main() -> None:
    """Measure part by part, then print the table and put it into the page."""
    head = f"{datetime.now(UTC):%Y-%m-%d}; {machine()}, Prometheus {version(prometheus_binary())}; median of {facts.ROUNDS}"
    rows = []
    for number, gpus in enumerate(facts.SIZES):
        for part in (*PARTS, *(ONCE if number == 0 else ())):
            print(f"{gpus:,} GPUs, {part.__name__.removesuffix('_rows')} …", file=sys.stderr, flush=True)
            rows += list(part(gpus))
    text = StringIO()
    with redirect_stdout(text):
        print_table(TITLE, COLUMNS, [row.cells() for row in rows])
    told = f"{text.getvalue().strip()}\n\n{head}."
    if max(facts.SIZES) < TELLING_GPUS:
        told += f" Fewer than {TELLING_GPUS:,} GPUs: this shows the form of the table, and how fast nothing is."
    print(told)
    PAGE.write_text(written_into(PAGE.read_text(), told))


def export_rows(gpus: int) -> Iterator[Row]:
    """Export against curl and the client, from one server."""
    runs, _ = export.measured(gpus)
    own = _of(runs["export"])
    yield Row("export", gpus, own, "curl, raw JSON, one connection", _of(runs["curl 1"]))
    yield Row("export", gpus, own, "curl, the same, four connections", _of(runs["curl 4"]))
    if "client" in runs:
        found = _of(runs["client"])
        client = Timed(export.client_seconds(runs["client"]), None, found.process_mb, found.tree_mb)
        yield Row("export", gpus, own, "prometheus-api-client (one metric x 12)", client)


def facts_rows(gpus: int) -> Iterator[Row]:
    """All facts against a bare sum over every column of numbers."""
    lake = facts.simulated_lake(gpus)
    runs = _in_turns("bench.facts", ("scan", "compute", "saturation"), lake)
    sums = _told(runs["scan"])
    yield Row("facts", gpus, _told(runs["compute"]), "a bare sum of their columns", sums)
    own = Timed(None, median([_sum_of_words(run) for run in runs["saturation"]]))
    yield Row("of them saturation and ownership", gpus, own, "the same", sums)


def sums_rows(gpus: int) -> Iterator[Row]:
    """All sums of samples by loops, against a bare sum: CPU time of one thread, in one process."""
    lake = facts.simulated_lake(gpus)
    told = [list(map(float, measure([sys.executable, "-m", "bench.sums", lake]).stdout.split())) for _ in range(facts.ROUNDS)]
    other, own = (Timed(None, median([each[number] for each in told])) for number in (0, 1))
    yield Row("of them sums of samples", gpus, own, "a bare sum of their columns", other)


def power_rows(gpus: int) -> Iterator[Row]:
    """What energy costs, against a bare sum over its columns: CPU time of one thread."""
    runs = _in_turns("bench.power", ("scan", "compute"), facts.simulated_lake(gpus))
    own, other = (Timed(None, median([_sum_of_words(run) for run in runs[what]])) for what in ("compute", "scan"))
    yield Row("of them energy", gpus, own, "a bare sum of its columns", other)


def quota_rows(gpus: int) -> Iterator[Row]:
    """Facts of quotas against reading what they are made of."""
    runs = quota.measured(gpus)
    yield Row("quotas", gpus, _told(runs["facts"]), "reading the state that they are made of", _told(runs["scan"]))


def night_rows(gpus: int) -> Iterator[Row]:
    """Facts and report on as many cores as a pod has; against its memory, whose seconds there are none of."""
    for stage, runs in night.measured(gpus).items():
        own = _told(runs)
        kept = "within" if (own.tree_mb or 0) < night.POD_MB else "MORE THAN"
        yield Row(f"{stage} on {night.CORES} cores, with {night.DATA}", gpus, own, f"a pod of 2 GiB: {kept} it")


def promql_rows(gpus: int) -> Iterator[Row]:
    """OpenCost's expressions against export and compute of the same day."""
    runs = promql.measured(gpus)
    parts = [_of(runs[name]) for name in ("export", "compute")]
    largest = max(parts, key=lambda part: part.tree_mb or 0)
    walls, cpus = ([value for part in parts if (value := getattr(part, name))] for name in ("wall", "cpu"))
    own = Timed(sum(walls), sum(cpus), largest.process_mb, largest.tree_mb)
    theirs = Timed(_of(runs["PromQL"]).wall, None)  # the CPU of it is the server's
    yield Row("export and compute", gpus, own, "OpenCost's 14 PromQL queries", theirs)


PARTS: tuple[Callable[[int], Iterator[Row]], ...] = (export_rows, facts_rows, sums_rows, power_rows, quota_rows, night_rows)
ONCE: tuple[Callable[[int], Iterator[Row]], ...] = (promql_rows,)


def _in_turns(module: str, whats: Sequence[str], lake: Path) -> dict[str, list[Measured]]:
    runs: dict[str, list[Measured]] = {what: [] for what in whats}
    for _ in range(facts.ROUNDS):
        for what, found in runs.items():
            found.append(measure([sys.executable, "-m", module, what, lake]))
    return runs


def _of(runs: Sequence[Measured]) -> Timed:
    """Of whole commands."""
    wall, cpu = median([run.wall_seconds for run in runs]), median([run.cpu_seconds for run in runs])
    return Timed(wall, cpu, max(run.process_mb for run in runs), max(run.tree_mb for run in runs))


def _told(runs: Sequence[Measured]) -> Timed:
    """Of the work alone: the last two words that it printed."""
    wall, cpu = (median([float(run.stdout.split()[number]) for run in runs]) for number in (-2, -1))
    return Timed(wall, cpu, max(run.process_mb for run in runs), max(run.tree_mb for run in runs))


def _sum_of_words(run: Measured) -> float:
    """Of lines with a name and a number each."""
    return sum(float(line.split()[1]) for line in run.stdout.splitlines())


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own is not None and other else None


if __name__ == "__main__":
    main()
