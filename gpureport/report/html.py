"""report.html: one file, no request leaves it, readable without JavaScript. Templates lay out what is prepared here."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import duckdb
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from gpureport import formats
from gpureport.figures import FIGURES, REASONS
from gpureport.report.amount import Amount, amount
from gpureport.report.answer import spelled
from gpureport.report.drill_down import drill_down
from gpureport.report.figures import GROUP_ORDER, LEADING, LONG_TEXT, MOST_FIRST, ROW_LABELS, TABLES, group_of, is_on_page
from gpureport.report.first_screen import FirstScreen
from gpureport.report.glossary import GLOSSARY
from gpureport.report.ground import Places
from gpureport.report.header import Header
from gpureport.report.panels import Panel, panels
from gpureport.report.results import REASONS_COLUMN, Result
from gpureport.report.room import rows_shown
from gpureport.resources import TEMPLATES
from gpureport.window import rfc3339

_TEXT = ("String", "List", "Boolean", "Date")
"""Kinds of columns that stand and sort as text; days and times too, which are written so that they can."""
_QUANTITY = re.compile(r"((?:(?:&gt;|&lt;|≥) )?[\d,.]+ (?:%|h|GPU-h|device-hours|[kMG]?Wh))(?!\w)")
_SCRIPTS = ("vendor/panzoom.min.js.LICENSE", "vendor/panzoom.min.js", "zoom.js", "report.js")


@dataclass(frozen=True)
class Heading:
    """A column as the page shows it."""

    name: str
    title: str
    unit: str
    doc: str
    is_key: bool
    is_number: bool
    is_long: bool


@dataclass(frozen=True)
class Note:
    """Why figures of a table are unknown: a letter that stands at the dash, the reason's code, a sentence."""

    mark: str
    code: str
    sentence: str


@dataclass(frozen=True)
class Definition:
    """What a column means; ``formula`` is '' for what is no figure."""

    name: str
    doc: str
    formula: str


@dataclass(frozen=True)
class Cell:
    """A cell's text, and its long form where it was cut; ``note`` where the figure is unknown.

    ``share`` (0..100) draws a bar under a percentage; ``rank`` is what rows are sorted by where the text does not tell;
    ``place`` is where in the page it leads to, '' for nowhere.
    """

    text: str
    whole: str
    note: Note | None
    share: float | None
    rank: str
    place: str


@dataclass(frozen=True)
class Section:
    """One table with all that is said about it."""

    name: str
    title: str
    sentence: str
    groups: Sequence[tuple[str, int]]
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    row_count: int
    hidden: Sequence[str]
    definitions: Sequence[Definition]
    notes: Sequence[Note]
    sql: str
    source: str


def write_html(
    con: duckdb.DuckDBPyConnection,
    results: Sequence[Result],
    header: Header,
    first: FirstScreen,
    path: Path,
    owners: Sequence[tuple[str, str]] = (),
    second: Sequence[Panel] | None = None,
) -> Path:
    """Write the page; courses over time are read from the facts of the open database.

    ``owners`` are names and files of the pages of their own, relative to this one; ``second`` the second screen's panels, where
    they are not those of the whole report.
    """
    tables = {result.name: result for result in results}
    ordered = [tables[name] for name in (*TABLES, *sorted(set(tables) - set(TABLES))) if name in tables]
    drill = drill_down(con, tables, header.window)
    script = _script()
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            header=header,
            first=first,
            panels=panels(tables) if second is None else second,
            owners=owners,
            glossary=GLOSSARY,
            drill=drill,
            sections=_sections(ordered, drill.places),
            style=(TEMPLATES / "style.css").read_text(encoding="utf-8"),
            script=script,
            script_digest=_digest(script),
        )
    )
    path.write_text(page, encoding="utf-8")
    return path


def _script() -> str:
    """Everything that runs in the page, with the licence of what is not ours."""
    licence, library, zoom, tables = ((TEMPLATES / name).read_text(encoding="utf-8").strip() for name in _SCRIPTS)
    return f"/*\n{licence}\n*/\n{library}\n{zoom}\n{tables}\n"


def _digest(script: str) -> str:
    """The script as a content security policy names it: no other runs, whatever a label brings into the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@cache  # with its templates: to compile them takes longer than to fill them, and owners have pages of their own
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        percent=formats.percent,
        spelled=spelled,
        duration=formats.duration,
        words=formats.words,
        instant=rfc3339,
        gpu_hours_of_seconds=lambda seconds: formats.gpu_hours(seconds / 3600),
        count=lambda number: f"{number:,}",
        sentence=_sentence,
        unbroken=_unbroken,
        plainly=_plainly,
    )
    return environment


def _plainly(setting: Any) -> Any:
    """A setting as people write it."""
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return f"{setting:,.15g}" if isinstance(setting, float) else setting


def _unbroken(text: str) -> Markup:
    """The text with its quantities in one piece each, however narrow the page."""
    return Markup(_QUANTITY.sub(r'<span class="quantity">\1</span>', str(escape(text))))


def _sections(results: Sequence[Result], places: Places) -> list[Section]:
    """The tables, each with as many rows as the page has room for."""
    room = rows_shown([(result.rows.height, len(_headings(result))) for result in results])
    return [section(result, places, count) for result, count in zip(results, room, strict=True)]


def section(result: Result, places: Places, count: int) -> Section:
    """A table as the page shows it, with at most so many rows."""
    headings = _headings(result)
    title, sentence = TABLES.get(result.name, (formats.words(result.name).capitalize(), ""))
    notes = _notes(result)
    rows = [_row(result, headings, notes, places, number) for number in _first_on_page(result, count)]
    return Section(
        name=result.name,
        title=title,
        sentence=sentence,
        groups=_groups(headings),
        headings=headings,
        rows=rows,
        row_count=result.rows.height,
        hidden=_hidden(result),
        definitions=[Definition(name, doc, _formula(name)) for name, doc in result.query.columns.items()],
        notes=list(notes.values()),
        sql=result.query.sql.strip(),
        source=result.query.source,
    )


def _hidden(result: Result) -> list[str]:
    """Columns that are in the files only; the reasons of unknown figures stand at their dashes."""
    maps = result.maps.keys() - {REASONS_COLUMN}
    return [name for name in result.query.columns if not is_on_page(name) or name in maps]


def _first_on_page(result: Result, count: int) -> list[int]:
    """Numbers of the rows that the page shows: all, or those that stand first in its order of importance."""
    numbers = list(range(result.rows.height))
    if result.name in MOST_FIRST:
        weights = result.rows[MOST_FIRST[result.name]].fill_null(0).to_list()
        numbers.sort(key=lambda number: -weights[number])
    return numbers[:count]


def _notes(result: Result) -> dict[str, Note]:
    """The reasons that occur in a table, by code, lettered in the order of their codes."""
    codes = sorted({reason for reasons in result.reasons for reason in reasons.values()})
    marks = dict(zip(codes, ascii_lowercase, strict=False))
    return {code: Note(marks.get(code, "*"), code, _sentence(code)) for code in codes}


def _sentence(reason: str) -> str:
    return REASONS.get(reason, formats.words(reason))


def _formula(name: str) -> str:
    return FIGURES[name].formula if name in FIGURES else ""


def _headings(result: Result) -> list[Heading]:
    """The row's name, what the table is read for, the other keys, then the figures group by group in the query's order."""
    shown = [name for name in result.rows.columns if is_on_page(name) and not _says_nothing(result, name)]
    label = next((name for name in ROW_LABELS if name in shown), "")
    leading = [name for name in LEADING.get(result.name, ()) if name in shown]
    keys = sorted((name for name in shown if name in result.query.grain), key=lambda name: name != label)
    rest = [name for name in shown if name not in (*keys, *leading)]
    figures = (*keys[1:], *sorted(rest, key=lambda name: GROUP_ORDER.index(group_of(name))))
    kinds = result.rows.schema  # Polars makes it anew each time that it is asked for
    return [_heading(result, name, is_number=not str(kinds[name]).startswith(_TEXT)) for name in (*keys[:1], *leading, *figures)]


def _says_nothing(result: Result, name: str) -> bool:
    """Whether a key column is '' in every row, or the one cluster that the page's head names."""
    if name not in result.query.grain or result.rows.height == 0:
        return False
    found = result.rows[name].unique().to_list()
    return found == [""] or (name == "cluster" and len(found) == 1)


def _heading(result: Result, name: str, is_number: bool) -> Heading:
    is_key = name in result.query.grain
    return Heading(
        name, formats.title(name), formats.unit(name), result.query.columns[name], is_key, is_number, name in LONG_TEXT
    )


def _groups(headings: Sequence[Heading]) -> list[tuple[str, int]]:
    """Title and width of each group of columns; the first column stands alone, because it stays in sight."""
    titles = ["" if heading.is_key else group_of(heading.name) for heading in headings[1:]]
    return [("", 1), *((title, len(list(found))) for title, found in groupby(titles))]


def _row(result: Result, headings: Sequence[Heading], notes: Mapping[str, Note], places: Places, number: int) -> list[Cell]:
    values = result.rows.row(number, named=True)
    return [
        _cell(heading, values[heading.name], notes.get(result.reason(number, heading.name)), places.of(heading.name, values))
        for heading in headings
    ]


def _cell(heading: Heading, found: Any, note: Note | None, place: str) -> Cell:
    is_share = heading.unit == "%" and isinstance(found, float) and 0 < found <= 1
    text = formats.value(heading.name, found)
    share = round(found * 100, 1) if is_share else None
    told = amount(text, found)
    rank = told.rank if isinstance(told, Amount) else ""
    return Cell(formats.shortened(heading.name, text), text, note, share, rank, place)
