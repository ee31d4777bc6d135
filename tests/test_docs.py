"""The documents are true: their SQL runs, their commands exist, their generated parts are current."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from click import Context
from click.testing import CliRunner
from documents.figures import render_figures
from documents.findings import render_findings
from documents.metrics import render_metrics

from bench.written import BEGIN, END, written_into
from gpureport.cli import cli
from gpureport.commands.work.schema import render_schema
from gpureport.compute.query import load
from gpureport.config import Config
from gpureport.values.catalog import load_catalog
from gpureport.values.tables import TABLES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COOKBOOK = (DOCS / "sql-cookbook.md").read_text()
QUESTIONS = re.findall(r"^## (\d+\..*?)$.*?^```sql\n(.*?)^```\n\n(\|.*?)\n$", COOKBOOK + "\n", re.MULTILINE | re.DOTALL)
OF_THE_MONTH = 7
"""The first questions are answered from the simulated month, which is too much work for a test; the others from the demo."""
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_the_questions_of_the_cookbook_are_numbered() -> None:
    assert [title.split(".")[0] for title, _, _ in QUESTIONS] == [str(number) for number in range(1, len(QUESTIONS) + 1)]
    assert len(QUESTIONS) == COOKBOOK.count("```sql")


def as_printed(value: object) -> str:
    """A value as the cookbook prints it: four digits, whole numbers from 1,000 on, a dash for unknown."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return "–" if value is None else str(value)


@pytest.mark.parametrize("question", QUESTIONS, ids=[title for title, _, _ in QUESTIONS])
def test_each_question_has_the_answer_that_the_cookbook_prints(demo: Path, question: tuple[str, str, str]) -> None:
    title, sql, printed = question
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines()]
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        answer = con.execute(sql)
        assert [name for name, *_ in answer.description or []] == head
        if int(title.split(".")[0]) > OF_THE_MONTH:
            assert [[as_printed(value) for value in row] for row in answer.fetchall()] == rows


def test_the_cookbook_agrees_with_the_recording(demo: Path) -> None:
    answers = {title.partition(" ")[2]: sql for title, sql, _ in QUESTIONS}
    with duckdb.connect(str(demo / "gpureport.duckdb"), read_only=True) as con:
        ((*_, unheld),) = con.execute(answers["For how long was a GPU unallocated?"]).fetchall()
        energy = con.execute(answers["How much energy did each GPU take, and at what power?"]).fetchall()[0][3]
    assert unheld == pytest.approx(480 - 406)  # train-llm-0 was there before the others came and after they left
    assert energy * 3.6e6 == pytest.approx(149_906.558)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("schema.md", render_schema(load())),
        ("figures.md", render_figures()),
        ("metrics.md", render_metrics(load_catalog())),
        ("findings.md", render_findings()),
    ],
)
def test_generated_documents_are_current(name: str, text: str) -> None:
    assert (DOCS / name).read_text() == text, f"run 'make docs' to write docs/{name} anew"


def test_every_lake_column_is_documented() -> None:
    assert all(column.doc for table in TABLES for column in table.columns)


@pytest.mark.parametrize("name", cli.list_commands(Context(cli)))
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert name == "schema" or "Example: gpureport" in result.output
    assert f"gpureport {name}" in (ROOT / "README.md").read_text()


def test_every_setting_stands_in_the_operations_page() -> None:
    page = (DOCS / "operations.md").read_text() + (DOCS / "findings.md").read_text()
    for name, field in Config.model_fields.items():
        inner = getattr(field.annotation, "model_fields", {})
        assert name in page
        assert [key for key in inner if key not in page] == []


def test_the_configuration_of_the_operations_page_is_valid_and_gives_the_defaults_that_it_says() -> None:
    block = re.search(r"^## Configuration.*?```toml\n(.*?)^```", (DOCS / "operations.md").read_text(), re.MULTILINE | re.DOTALL)
    shown = Config.model_validate(tomllib.loads(block[1] if block else ""))
    default = Config()
    of_all = {"cluster", "lake", "out", "clusters", "prometheus", "retention", "retired", "suppressions", "signals"}
    examples = of_all | {"power", "prices", "carbon", "links", "labels"}
    assert {name for name in Config.model_fields if getattr(shown, name) != getattr(default, name)} == examples
    assert shown.prometheus.model_copy(update={"url": "", "match": {}}) == default.prometheus


def heading_anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings: lower case, without punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md"), ROOT / "queries/README.md", ROOT / "data/fixtures/README.md"])


def test_all_documents_together_are_at_most_300_kilobytes() -> None:
    assert sum(len(page.read_bytes()) for page in PAGES) <= 300 * 1024


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text())
    near = [(page.parent / target if target else page, anchor) for target, anchor in links if "://" not in target]
    assert [target for target, _ in near if not target.exists()] == []
    assert [(target.name, anchor) for target, anchor in near if anchor and anchor not in heading_anchors(target)] == []


def test_names_that_documents_take_from_the_code_are_there() -> None:
    """Tables, columns and settings in backticks: one that was renamed sends a reader to look for it."""
    code = {
        word
        for folder in ("gpureport", "queries", "tests", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sql", ".csv", ".json"} and path.name not in {"loading.py", "test_docs.py"}
        for word in [path.stem, path.parent.name, *re.findall(r"\w+", path.read_text(encoding="utf-8"))]
    }
    named = {
        (page, name)
        for page in ("CONTRIBUTING.md", "queries/README.md", "docs/architecture.md", "docs/quota.md", "docs/sql-cookbook.md")
        for quoted in re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8"))
        for name in re.findall(r"\b[a-z]\w*_\w*[a-z]\b", quoted)
    }
    assert {(page, name) for page, name in named if name not in code} == set()


def test_the_benchmarks_page_has_the_table_of_make_bench_between_its_marks() -> None:
    page = (DOCS / "benchmarks.md").read_text()
    told = page.partition(BEGIN)[2].partition(END)[0]
    assert "### Everything side by side" in told
    header = next(line for line in told.splitlines() if line.startswith("|"))
    assert [cell.strip() for cell in header.strip("|").split("|")][:4] == ["what", "GPUs", "s", "CPU s"]
    parts = ("export", "facts", "of them energy", "quotas", "compute on 2 cores", "report on 2 cores", "export and compute")
    assert all(f"\n| {part}" in told for part in parts)
    against = ("curl", "a bare sum", "OpenCost's 14 PromQL queries", "a pod of 2 GiB")
    assert all(f"| {name}" in told for name in against)


def test_a_new_table_takes_the_place_of_the_one_before() -> None:
    page = f"# Head\n\n{BEGIN}\n\nold\n\n{END}\n\ntail\n"
    assert written_into(page, "new") == page.replace("old", "new")
    with pytest.raises(ValueError, match="lacks"):
        written_into("# Head\n", "new")
