"""The index of past reports of a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from gpureport.report import write_series
from gpureport.report.header import Header
from gpureport.report.page.answers import Answer
from gpureport.values.window import Window, parse_date

from .conftest import SCRIPT, a_header


def _header(day: str, *clusters: str) -> Header:
    return replace(a_header(), window=Window.of_day(parse_date(day)), clusters=clusters or ("lab",))


def _write(out: Path, header: Header, headline: str) -> list[str]:
    write_series((Answer("Cost", headline, ""),), header, out, out)
    return [entry["answers"]["Cost"][0] for entry in json.loads((out / "series.json").read_text())]


def test_reports_are_remembered_the_newest_first_and_one_made_again_takes_its_own_place(tmp_path: Path) -> None:
    assert _write(tmp_path, _header("2026-11-19"), "$1") == ["$1"]
    assert _write(tmp_path, _header("2026-11-20"), "$2") == ["$2", "$1"]
    assert _write(tmp_path, _header("2026-11-19"), "$3") == ["$2", "$3"]
    page = (tmp_path / "index.html").read_text()
    assert page.count("<a href") == 1
    assert page.index("2026-11-20 to") < page.index('<a href="report.html">2026-11-19 to')


def test_another_clusters_reports_are_another_series(tmp_path: Path) -> None:
    _write(tmp_path, _header("2026-11-19", "secret-name"), "$1")
    assert _write(tmp_path, _header("2026-11-20", "pseudonym"), "$2") == ["$2"]
    assert "secret-name" not in (tmp_path / "index.html").read_text()


def test_a_file_that_is_none_is_no_obstacle_and_names_stay_text(tmp_path: Path) -> None:
    (tmp_path / "series.json").write_text('{"not": "ours"}')
    assert _write(tmp_path, _header("2026-11-19", SCRIPT), SCRIPT) == [SCRIPT]
    assert "<script>" not in (tmp_path / "index.html").read_text()
