"""One list reply of an API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpureport.state.fields import Object, mapping, objects, text, whole


@dataclass(frozen=True)
class Page:
    """Objects of one kind as they came, and what the reply says of the rest of the list."""

    kind: str
    api_version: str
    items: list[Object]
    continue_token: str = ""
    remaining_count: int = 0
    is_start: bool = True
    """The list begins here, perhaps again: what came of it before does not count."""
    is_consistent: bool = True
    """All of the list is of one moment."""

    @property
    def group(self) -> str:
        """API group, '' for the core."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


def as_page(reply: Any, is_start: bool = True) -> Page | None:
    """The reply as a page, also where null stands for no items; None for what is no list."""
    found = mapping(reply)
    kind = text(found.get("kind"))
    if not kind.endswith("List") or "items" not in found:
        return None
    metadata = mapping(found.get("metadata"))
    return Page(
        kind=kind.removesuffix("List"),
        api_version=text(found.get("apiVersion")),
        items=objects(found["items"]),
        continue_token=text(metadata.get("continue")),
        remaining_count=whole(metadata.get("remainingItemCount")) or 0,
        is_start=is_start,
    )
