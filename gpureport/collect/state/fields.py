"""Access to fields of raw JSON objects. Any field may be missing, null, or of another type than in the schema."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from gpureport.values.window import to_ms

Object = dict[str, Any]
Row = dict[str, Any]


def mapping(value: Any) -> Object:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Object]:
    """Return the objects in a list; an empty list for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def listed(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return the value if it is text, else ''."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return the value if it is a 64-bit integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63 else None


def texts(value: Any) -> dict[str, str]:
    """Return the text entries of an object (labels, annotations)."""
    return {name: each for name, each in value.items() if isinstance(each, str)} if isinstance(value, dict) else {}


def selected(value: Any, prefixes: tuple[str, ...]) -> dict[str, str]:
    """Return the text entries whose names start with one of the prefixes."""
    return {name: each for name, each in texts(value).items() if name.startswith(prefixes)}


def instant(value: Any) -> int | None:
    """Convert an RFC 3339 time to milliseconds since the epoch; None for any other value."""
    return _parsed(value) if isinstance(value, str) else None


@lru_cache(65_536)
def _parsed(value: str) -> int | None:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return to_ms(found if found.tzinfo else found.replace(tzinfo=UTC))


def noted(value: Any) -> Any:
    """Return what JSON in an annotation says; None for any other value."""
    try:
        return orjson.loads(value) if isinstance(value, str) else None
    except orjson.JSONDecodeError:
        return None


def condition(conditions: Any, kind: str) -> Object:
    """Return the condition of a type, or an empty object."""
    for each in objects(conditions):
        if each.get("type") == kind:
            return each
    return {}


def taints(value: Any) -> list[str]:
    """Return taints as text: key=value:effect."""
    return [f"{text(each.get('key'))}={text(each.get('value'))}:{text(each.get('effect'))}" for each in objects(value)]


def only_node(selector: Any) -> str:
    """Return the only node that a node selector allows by name, else ''."""
    terms = objects(mapping(selector).get("nodeSelectorTerms"))
    names = [_names(objects(term.get("matchFields"))) for term in terms]
    return names[0][0] if len(names) == 1 and len(names[0]) == 1 else ""


def _names(fields: Iterable[Object]) -> list[str]:
    chosen = [each for each in fields if each.get("key") == "metadata.name" and each.get("operator") == "In"]
    return [name for each in chosen for name in listed(each.get("values")) if isinstance(name, str)]


def pci_bus_id(written: str) -> str:
    """Return a PCI address in the format of drivers, 0000:18:00.0. DCGM writes the domain with eight digits."""
    domain, colon, rest = written.strip().lower().partition(":")
    if not colon:
        return written.strip().lower()
    if ":" not in rest:  # without a domain: 18:00.0
        return f"0000:{domain}:{rest}"
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}"
