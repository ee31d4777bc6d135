"""Templates, style and script of the pages."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpureport.values.runtime.resources import TEMPLATES
from gpureport.values.text import formats
from gpureport.values.window import rfc3339

_SCRIPTS = ("data.js", "grid.js", "charts.js", "page.js")


@cache
def script() -> str:
    """Everything that runs in the page."""
    return "\n".join((TEMPLATES / name).read_text(encoding="utf-8").strip() for name in _SCRIPTS)


@cache
def stylesheet() -> str:
    """The style of all pages."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


@cache
def digest() -> str:
    """The script as a content security policy names it: no other runs, whatever a label brings into the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()}"


@cache  # with its templates: compiling them takes longer than filling them, and teams have pages of their own
def environment() -> Environment:
    """The templates with the filters that they use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    made.filters.update(
        instant=rfc3339,
        count=lambda number: f"{number:,}",
        percent=formats.percent,
        words=formats.words,
        duration=formats.duration,
    )
    return made
