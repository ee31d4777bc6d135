"""The documents that are generated: schema, figures, metrics, findings, and the index of the queries."""

from __future__ import annotations

import re


def anchor(heading: str) -> str:
    """The name in a link to a heading, as forges make it: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
