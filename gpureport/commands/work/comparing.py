"""Changes between two periods or reports, and outcomes with other quotas, nodes or pods."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from gpureport.commands.work.delivering import DATABASE, local_report
from gpureport.commands.work.settings import REPORT_THREADS, facts_made_with, quota_rules, report_settings, reported_lake
from gpureport.compute.look_back import window_before
from gpureport.compute.period import WindowTables, report_tables
from gpureport.compute.query import connection
from gpureport.compute.quotas import quota_lake
from gpureport.config import Config
from gpureport.lake import open_lake
from gpureport.store import Place
from gpureport.values.errors import LakeError
from gpureport.values.text.rows import Output, print_rows
from gpureport.values.window import Window

if TYPE_CHECKING:
    from gpureport.whatif import Question
    from gpureport.whatif.nodes import NodeScenario

_LOG = logging.getLogger(__name__)
_NOT_COMPARED = "select distinct cluster from period.capacity anti join previous.capacity using (cluster) order by cluster"


def diff_windows(config: Config, window: Window, previous: Window | None, only: str | None, output: Output) -> None:
    """Print the changes between two windows of the lake. Without ``previous``, compare with the period just before.

    LakeError where the lake lacks days of either window, or their facts were computed differently.
    """
    from gpureport.report.comparison import print_comparison, read_comparison

    lake, settings = reported_lake(config), report_settings(config)
    before = previous or window_before(window, settings.timezone)
    with connection(config.compute.memory_limit, REPORT_THREADS) as con:
        tables = WindowTables(con, lake, window, settings, facts_made_with(config), before, releases=True)
        if not tables.has_previous:
            raise LakeError(
                f"{window} cannot be compared with {before}: give windows of whole hours with data from their beginning, and "
                "compute all days of both with this configuration and version"
            )
        queries = report_tables(tables)
        if absent := con.execute(_NOT_COMPARED).fetchall():
            names = ", ".join(name for (name,) in absent)
            _LOG.info(f"left out, because their days of {before} are not complete, or were computed differently: {names}")
        print_comparison(read_comparison(con, queries), only, output, sys.stdout)


def diff_reports(config: Config, previous: Place, now: Place, only: str | None, output: Output) -> None:
    """Print the changes between two reports (folders, their gpureport.duckdb, or addresses); no lake is needed.

    LakeError where one is not a report of this version, or no cluster is in both.
    """
    from gpureport.report.comparison import compare_reports, print_comparison, read_comparison

    settings = report_settings(config)
    judged_by = {"figure_min_coverage_ratio": settings.figure_min_coverage_ratio, **settings.findings}
    limits = (config.compute.memory_limit, REPORT_THREADS)
    with local_report(previous, DATABASE) as first, local_report(now, DATABASE) as second, connection(*limits) as con:
        queries = compare_reports(con, first, second, judged_by)
        print_comparison(read_comparison(con, queries), only, output, sys.stdout)


def what_if_nodes(config: Config, window: Window, scenario: NodeScenario, output: Output) -> None:
    """Print the outcome with other nodes or pods; LakeError where the lake has no pods of the window."""
    from gpureport.whatif.nodes import NAMES, rows_of

    lake = open_lake(config.lake)
    lake = lake.of_cluster(scenario.cluster) if scenario.cluster else lake
    settings = report_settings(config)
    with connection(config.compute.memory_limit, REPORT_THREADS) as con:
        WindowTables(con, lake, window, settings, facts_made_with(config)).build(scenario.tables)
        found = list(rows_of(con, window, scenario, settings.prices.get("gpu_hour", {})))
    for note in dict.fromkeys(each for each, _ in found):
        _LOG.info(note)
    rows = [[float(f"{each:.9g}") if isinstance(each, float) else each for each in row] for _, row in found]
    print_rows(NAMES, rows, output, sys.stdout)


def what_if(config: Config, window: Window, question: Question, output: Output) -> None:
    """Print the outcome with other quotas; LakeError where the lake has no quota of the window."""
    from gpureport.whatif import answer as answer_question
    from gpureport.whatif import notes, past_use, print_answer

    lake = open_lake(config.lake)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        quota_lake(con, lake, window, [question.cluster] if question.cluster else None)
        past = past_use(con, lake, window, quota_rules(config).with_settings(question.rules))
        found = answer_question(con, quota_rules(config), window, question, past)
    for level, note in notes(found, question, window) if output != "json" else ():
        _LOG.log(level, note)
    print_answer(found, question, window, output, sys.stdout)
