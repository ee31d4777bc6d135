"""summary.md: the first screen in at most twenty lines, whatever names say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gpureport.report.first_screen import Line, first_screen
from gpureport.report.summary import LINES_MAX, escaped, write_summary

from .conftest import FORMULA, SCRIPT, a_header


def test_the_demos_summary_begins_with_the_answer(demo: Path) -> None:
    lines = (demo / "summary.md").read_text().splitlines()
    assert len(lines) <= LINES_MAX
    assert lines[0] == "# GPU report: h200-recording, 2026-11-20T23:51:40Z to 2026-11-20T23:59:40Z"
    assert lines[2] == "1 × NVIDIA H200: 0.133 GPU-h of capacity; seen 100.0 %, not seen 0 %."
    assert lines[4].startswith("- 84.6 % of 0.133 GPU-h were allocated, 31.5 % effective")  # 406 and 151 of 480 s
    assert any("difference 0." in line for line in lines)


def test_many_findings_with_hostile_names_stay_few_lines_of_text(tmp_path: Path) -> None:
    cells = ("GR101", "warning", SCRIPT, "3", "1.5", f"{FORMULA}, [a](http://b)\n# x", "high")
    first = replace(first_screen({}, a_header()), findings=tuple(Line(cells) for _ in range(30)), finding_count=30)
    text = write_summary(first, a_header(), tmp_path / "summary.md").read_text()
    assert len(text.splitlines()) <= LINES_MAX
    html = MarkdownIt().render(text)
    assert "<script" not in html and "<a " not in html
    assert html.count("<h1>") == 1


@given(st.text(max_size=200))
def test_any_name_is_text_in_markdown(name: str) -> None:
    html = MarkdownIt().render(f"- named {escaped(name)}.")
    assert set(re.findall(r"<(\w+)", html)) == {"ul", "li"}
