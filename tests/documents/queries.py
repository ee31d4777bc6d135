"""The table of subjects in ``queries/README.md``, from the headers of the SQL files; the rest of the page is written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpureport.compute.query import SUBJECTS, Query
from gpureport.values.runtime.resources import QUERIES

from .markdown import markdown_table

_TABLE = re.compile(r"(?<=<!-- subjects -->\n).*(?=<!-- end -->)", re.DOTALL)


def render_index(queries: Mapping[str, Query]) -> str:
    """The page with its table of subjects as the queries are now."""
    files = [query for query in queries.values() if query.life != "previous"]
    rows = [(f"[{name}]({name})", *_entry(name, files)) for name in SUBJECTS]
    table = markdown_table(("subject", "files", "reads from", "tables that later subjects read"), rows, is_code=False)
    page = (QUERIES / "README.md").read_text(encoding="utf-8")
    return _TABLE.sub(lambda _: f"\n{table}\n", page)


def _entry(subject: str, files: list[Query]) -> tuple[str, str, str]:
    own = {query.table for query in files if query.subject == subject}
    home = {query.table: query.subject for query in files}
    read = {table.replace("previous.", "period.") for query in files if query.subject == subject for table in query.reads}
    reads = {home.get(table, "lake") for table in read} - {subject}
    elsewhere = {table for query in files if query.subject != subject for table in query.reads}
    ordered = [name for name in ("lake", *SUBJECTS) if name in reads]
    return str(len(own)), ", ".join(ordered), ", ".join(f"`{table}`" for table in sorted(own & elsewhere))
