"""Every figure of the report is defined, every signal in a definition exists, every reason has a sentence."""

from __future__ import annotations

import re

from gpureport.compute.query import load
from gpureport.values.catalog import FIGURES, REASONS
from gpureport.values.runtime.resources import catalog_rows
from gpureport.values.tables import DROP_REASONS, SIGNAL_BY_NAME

QUERIES = load()
REPORT = {name: query for name, query in QUERIES.items() if query.life == "report"}
HEALTH = {"fb_used_ratio", "row_remap_failure_count"} | {
    f"{kind}_{grade}_count" for kind in ("ecc", "remapped_row") for grade in ("correctable", "uncorrectable")
}
"""Signals without a sum of observed seconds: events of memory health, and a stand-in for used memory."""
UNIT = re.compile(r"_(ratio|avg|max|min|joules|watts|bytes|hertz|celsius|gpu_hours|codes)$|^(xid_error|pcie_replay)_count$")


def test_every_figure_of_the_report_is_defined() -> None:
    figures = {column for query in REPORT.values() for column in query.columns if UNIT.search(column)}
    assert figures - FIGURES.keys() == set()


def test_every_defined_figure_stands_in_a_report_table() -> None:
    columns = {column for query in REPORT.values() for column in query.columns}
    assert FIGURES.keys() - columns == set()


def test_every_signal_of_a_definition_exists() -> None:
    assert {signal for figure in FIGURES.values() for signal in figure.signals} - SIGNAL_BY_NAME.keys() == set()


def test_every_reason_in_the_queries_has_a_sentence() -> None:
    judging = ("period.figure", "day.signal_absence", "period.node_gap", "period.holder_day", "report.accelerator")
    judged = "\n".join(QUERIES[name].sql for name in judging)
    every = "\n".join(query.sql for query in QUERIES.values())
    given = {*re.findall(r"\bthen '(\w+)'", judged), *re.findall(r"'reason': (?:if\(.*, null, )?'(\w+)'", every)}
    assert {"not_collected", "low_coverage", "pods_not_mapped"} <= given
    assert given - REASONS.keys() == set()


def test_the_coverage_ledger_knows_every_device_signal() -> None:
    assert {row["signal"] for row in catalog_rows("expected_signal.csv")} == SIGNAL_BY_NAME.keys() - HEALTH


def test_every_way_to_leave_values_out_is_a_reason_but_those_that_lose_nothing() -> None:
    assert DROP_REASONS.keys() - REASONS.keys() == {"duplicate", "copy", "coarser_unit"}
