"""A table inside the page: by column, texts as numbers of a dictionary, numbers at four digits, shares at three, gzip, base64."""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import orjson
import polars as pl

DIGITS = 4


@dataclass(frozen=True)
class Column:
    """A column as the page shows it.

    ``kind`` decides how it is written: text, number, share, hours, bytes, kwh, watts, celsius, duration, money, severity, list.
    ``total`` is how a group adds it up: sum, mean (weighted by the grid's weight), max, or '' for none.
    """

    name: str
    title: str
    kind: str = "text"
    total: str = ""
    doc: str = ""
    is_hidden: bool = False
    """Only shown where a row is opened."""


def payload(value: Any) -> str:
    """A value as JSON, compressed, as text that no HTML parser stumbles over; the same bytes for the same value."""
    return base64.b64encode(gzip.compress(orjson.dumps(value), 6, mtime=0)).decode()


def packed(columns: Sequence[Column], frame: pl.DataFrame, **more: Any) -> str:
    """The frame's rows as the page's tables read them."""
    return payload({**more, "rows": frame.height, "columns": [_packed(each, frame[each.name]) for each in columns]})


def _packed(column: Column, series: pl.Series) -> Mapping[str, Any]:
    told: dict[str, Any] = {
        "name": column.name,
        "title": column.title,
        "kind": column.kind,
        "total": column.total,
        "doc": column.doc,
    }
    if column.is_hidden:
        told["hidden"] = True
    if series.dtype.is_numeric() and not series.dtype.is_integer():
        numbers = series.cast(pl.Float64)
        # Of a share three digits are shown; only near 1 the fourth tells more than 99.9 % from all.
        digits, bound, places = (3, 0.99, 4) if column.kind == "share" else (DIGITS, 10**DIGITS, 0)
        return {**told, "values": numbers.round_sig_figs(digits).zip_with(numbers.abs() < bound, numbers.round(places)).to_list()}
    if series.dtype.is_integer():
        return {**told, "values": series.to_list()}
    texts = _texts(series)
    words = texts.unique().drop_nulls().sort()
    keys = pl.DataFrame({"text": words, "number": pl.Series(range(words.len()), dtype=pl.Int64)})
    found = pl.DataFrame({"text": texts}).join(keys, on="text", how="left", maintain_order="left")["number"]
    return {**told, "words": words.to_list(), "values": found.to_list()}


def _texts(series: pl.Series) -> pl.Series:
    if series.dtype == pl.String:
        return series
    return pl.Series(series.name, [text(value) for value in series.to_list()], dtype=pl.String)


def text(value: Any) -> str | None:
    """A value that is no number as the page writes it; None is unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, date):
        return value.isoformat()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
