"""Text that labels and annotations bring: a terminal, a spreadsheet and a reader of CSV find nothing in it but text."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.collect.file_import import read_openmetrics
from gpureport.report.json_file import escaped
from gpureport.report.page.embedded import environment
from gpureport.values.quantity import amount
from gpureport.values.text.rows import print_rows
from gpureport.values.text.safe import csv_cell, csv_cell_sql, printable, to_json

CELLS = {
    "=1+1": "'=1+1",
    "-5": "'-5",
    "\r=1+1": "'\r=1+1",
    "\t=1+1": "'\t=1+1",
    "  =1+1": "'  =1+1",
    "\u00a0@SUM(A1)": "'\u00a0@SUM(A1)",
    "\u200b+1": "'\u200b+1",
    "\uff1d1+1": "'\uff1d1+1",
    "\uff20SUM": "'\uff20SUM",
    "\x1b=1": "'␛=1",
    "a\x1b[2Jb\x07\x00": "a␛[2Jb␇␀",
    "a\x9bb\u202ec": "a\ufffdb\ufffdc",
    "a=b": "a=b",
    "über-1": "über-1",
    "a\nb": "a\nb",
}
ODD = st.text(st.sampled_from("=+-@\uff1d \t\r\n\x00\x1b\x9b\u202e\u200ba'\","), max_size=6)


@pytest.mark.parametrize(("text", "cell"), CELLS.items())
def test_a_cell_is_text(text: str, cell: str) -> None:
    assert csv_cell(text) == cell


@given(st.lists(ODD, min_size=1, max_size=20))
def test_the_database_writes_the_same_cells(texts: list[str]) -> None:
    found = duckdb.execute(f"select {csv_cell_sql('t')} from (select unnest($texts) as t)", {"texts": texts}).fetchall()
    assert [cell for (cell,) in found] == [csv_cell(text) for text in texts]


@given(ODD)
def test_what_is_printed_has_no_control_character(text: str) -> None:
    printed = {}
    for output in ("table", "wide", "md", "json", "csv"):
        print_rows(["name"], [[text]], output, out := StringIO())  # type: ignore[arg-type]
        printed[output] = out.getvalue()
    shown = [*printed.values(), printable(text), escaped(text), to_json({"name": text})]
    assert not [each for each in shown if set(each) & set("\x00\x1b\x9b\u202e")]
    assert json.loads(printed["json"]) == [{"name": text}]
    assert printed["md"].count("\n") == 3  # head, rule and one row, whatever its ends of lines
    assert list(csv.reader(StringIO(printed["csv"], newline="")))[1:] == [[csv_cell(text)] if text else []]


@pytest.mark.parametrize(("text", "cell"), [("a|b", r"a\|b"), (r"a\|b", r"a\\\|b"), ("a\\", r"a\\"), ("\x1b", r"\\x1b")])
def test_a_backslash_does_not_end_a_cell_of_markdown(text: str, cell: str) -> None:
    print_rows(["name"], [[text]], "md", out := StringIO())
    assert out.getvalue().splitlines()[2] == f"| {cell} |"


def test_a_name_on_the_page_turns_no_figure() -> None:
    page = environment().from_string("<i title='{{ name }}'>{{ name }}: {{ 12 }} {{ style | safe }}</i>")
    assert page.render(name="a\u202eb<\x00", style="<b>") == "<i title='a\ufffdb&lt;␀'>a\ufffdb&lt;␀: 12 <b></i>"


def test_a_name_in_the_summary_is_short_enough_to_read() -> None:
    assert len(escaped("x" * 3000)) < 1100


def test_a_label_may_hold_a_carriage_return(tmp_path: Path) -> None:
    """OpenMetrics escapes line feeds alone."""
    text = 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",pod="a\r=1+1\x0bb"} 1 1795132800\r\n# EOF\r\n'
    (tmp_path / "metrics.txt").write_bytes(text.encode())
    [batch] = read_openmetrics(tmp_path / "metrics.txt")
    assert [dict(labels)["pod"] for labels in batch.labels] == ["a\r=1+1\x0bb"]
    assert batch.values.tolist() == [1.0]


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ('m{a="x # {y"} 1 1795132800', {"__name__": "m", "a": "x # {y"}),
        ('m{a="# } # {\\" # {y}"} 1 1795132800 # {trace_id="}"} 0.5', {"__name__": "m", "a": '# } # {" # {y}'}),
        ('m_total 1 1795132800 # {trace_id="x"} 0.5', {"__name__": "m_total"}),
        ('{"my.metric",a="b"} 1 1795132800', {"__name__": "my.metric", "a": "b"}),
        ('{"my # {metric", "a.b"="c"} 1 1795132800', {"__name__": "my # {metric", "a.b": "c"}),
        ("m\t1\t1795132800", {"__name__": "m"}),
    ],
)
def test_a_series_ends_where_its_grammar_says(tmp_path: Path, line: str, labels: dict[str, str]) -> None:
    (tmp_path / "metrics.txt").write_text(f"{line}\n# EOF\n")
    [batch] = read_openmetrics(tmp_path / "metrics.txt")
    assert [*batch.labels] == [labels]
    assert (batch.times_ms.tolist(), batch.values.tolist()) == ([1_795_132_800_000], [1.0])


@pytest.mark.parametrize("written", ["1e999", "1e-999", "9" * 400, "9" * 31 + "Ei"])
def test_a_quantity_beyond_all_bounds_is_none(written: str) -> None:
    assert amount(written) is None
