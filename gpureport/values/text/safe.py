"""Escapes for untrusted text: no control character reaches a terminal, and no formula reaches a spreadsheet."""

from __future__ import annotations

import json
import re
from typing import Any

_BLANKS = "\\s\\x00-\\x20\\x7f-\\xa0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_FORMULA = f"^(?:[\\t\\r]|[{_BLANKS}]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
"""A cell that a spreadsheet may run as a formula, also after blanks or with full-width signs, which spreadsheets normalize."""
_CODES = (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Control characters other than tab and line ends, and characters that change the writing direction."""
_PICTURES = "".join(chr(0x2400 + code) if code < 32 else "\ufffd" for code in _CODES)
PICTURES = dict(zip(_CODES, _PICTURES, strict=True))
"""Unicode's pictures of these characters, or the replacement character, for ``str.translate``."""


def printable(text: str) -> str:
    """Return text for a terminal or Markdown, with control characters escaped. Line ends stay."""
    return "".join(char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text)


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON text without any control character, also those that JSON allows."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.translate({code: f"\\u{code:04x}" for code in _CODES})


def csv_cell(text: str) -> str:
    """Return text for a CSV file: an apostrophe before a formula, pictures of control characters."""
    return re.sub(_FORMULA, r"'\g<0>", text).translate(PICTURES)


def csv_cell_sql(column: str) -> str:
    """Return the SQL of ``csv_cell`` for a text column. Nearly all cells need only one check."""
    codes, suspect = "".join(map(chr, _CODES[1:])), "".join(f"\\x{{{code:x}}}" for code in _CODES)
    cleaned = f"translate(regexp_replace({column}, '{_FORMULA}', '''\\0'), chr(0) || '{codes}', '{_PICTURES}')"
    return f"if(regexp_matches({column}, '{_FORMULA}|[{suspect}]'), {cleaned}, {column})"


def quoted(value: object) -> str:
    """Return text as a SQL literal."""
    return "'" + str(value).replace("'", "''") + "'"
