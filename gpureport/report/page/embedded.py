"""Parts of a page: templates, style, script and tables.

Tables are stored by column. Texts are numbers of a dictionary. Numbers have four digits, money six, shares three if enough.
The result is compressed (gzip, base64).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any

import orjson
import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpureport.report.page.tables import UNMEASURED
from gpureport.values.runtime.resources import TEMPLATES
from gpureport.values.text import formats
from gpureport.values.text.safe import PICTURES
from gpureport.values.window import rfc3339

_SCRIPTS = ("data.js", "grid.js", "charts.js", "page.js")


@cache
def script() -> str:
    """Return all scripts of the page."""
    return "\n".join((TEMPLATES / name).read_text(encoding="utf-8").strip() for name in _SCRIPTS)


@cache
def stylesheet() -> str:
    """Return the style sheet of all pages."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


@cache
def digest() -> str:
    """Return the script's digest for the content security policy: no other script runs, whatever a label contains."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()}"


@cache  # keeps its templates: compiling them takes longer than filling them, and each team has a page
def environment() -> Environment:
    """Return the template environment with its filters."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    # A change of the writing direction in a name would turn the figures after it: 12 would read 21.
    made.finalize = lambda found: found.translate(PICTURES) if isinstance(found, str) else found
    made.filters.update(
        instant=rfc3339,
        count=lambda number: f"{number:,}",
        percent=formats.percent,
        words=formats.words,
        duration=formats.duration,
    )
    return made


DIGITS = 4


@dataclass(frozen=True)
class Column:
    """A column as the page shows it.

    ``kind`` is its format: text, number, share, hours, bytes, kwh, watts, celsius, duration, money, severity, list.
    ``total`` is how a group combines it: sum, mean (weighted by the grid's weight), max, or '' for none.
    """

    name: str
    title: str
    kind: str = "text"
    total: str = ""
    doc: str = ""
    is_hidden: bool = False
    """Whether it is shown only in an opened row."""


def payload(value: Any) -> str:
    """Return a value as compressed JSON in base64, which is safe in HTML. The same value gives the same bytes."""
    return base64.b64encode(gzip.compress(orjson.dumps(value), 6, mtime=0)).decode()


def packed(columns: Sequence[Column], frame: pl.DataFrame, **more: Any) -> str:
    """Return the frame's rows in the format of the page's script."""
    fractions = frame.select(pl.selectors.float() | pl.selectors.decimal()).columns
    shown = frame.with_columns(_rounded(each.kind, each.name) for each in columns if each.name in fractions)
    return payload({**more, "rows": frame.height, "columns": [_packed(each, frame, shown[each.name]) for each in columns]})


def lower_bounds(column: Column, frame: pl.DataFrame) -> list[bool]:
    """Return for each row whether it is a lower bound: named in ``least_hours``, or without a part of the prices or energy."""
    name, there, bounds = column.name, {*frame.columns}, pl.repeat(False, frame.height, eager=True)
    if "least_hours" in there:
        bounds = frame["least_hours"].list.contains(name)
    hours = "gpu_hours" if "gpu_hours" in there else "allocated_gpu_hours"
    if name.endswith(("_cost", "budget_ratio")) and name != "budget_cost" and {hours, "priced_gpu_hours"} <= there:
        # A part of 0 has no hours; of hours without a price the part is null.
        bounds |= (frame["priced_gpu_hours"] < frame[hours] * (1 - 1e-9)) & (frame[name] != 0)
    if name.startswith(("energy_kwh", "energy_cost", "facility_kwh", "co2e_")) and {hours, "unmeasured_gpu_hours"} <= there:
        bounds |= (frame["unmeasured_gpu_hours"] > frame[hours] * UNMEASURED) & frame[name].is_not_null()
    return bounds.fill_null(False).to_list()


def _packed(column: Column, frame: pl.DataFrame, series: pl.Series) -> Mapping[str, Any]:
    least = lower_bounds(column, frame)
    entry: dict[str, Any] = {name: getattr(column, name) for name in ("name", "title", "kind", "total", "doc")}
    if column.is_hidden:
        entry["hidden"] = True
    if any(least):
        entry["least"] = [*map(int, least)]
    if series.dtype.is_numeric():
        return {**entry, "values": series.to_list()}
    texts = series.to_list() if series.dtype == pl.String else [text(value) for value in series.to_list()]
    words = sorted({*texts} - {None})
    positions: dict[str | None, int] = {word: number for number, word in enumerate(words)}
    return {**entry, "words": words, "values": [positions.get(each) for each in texts]}


def _rounded(kind: str, name: str) -> pl.Expr:
    """Round to few digits; to seven where rounding again would change the digits shown (30.9497 → 30.95), or show a part as 1."""
    numbers = pl.col(name).cast(pl.Float64)
    digits, bound, places = {"share": (3, 0.99, 4), "money": (6, 10**6, 0)}.get(kind, (DIGITS, 10**DIGITS, 0))
    few = pl.when(numbers.abs() < bound).then(numbers.round_sig_figs(digits)).otherwise(numbers.round(places))
    more = numbers.round_sig_figs(7)
    shown = {"share": 3, "duration": 0}.get(kind)
    sides = (few * (1 - 1e-9), few * (1 + 1e-9))
    below, above = (each.round_sig_figs(3) if shown is None else each.round(shown) for each in sides)
    return pl.when((below != above) | ((few == 1) & (more < 1))).then(more).otherwise(few)


def text(value: Any) -> str | None:
    """Return a value that is not a number as the page writes it; None is unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, date):
        return value.isoformat()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
