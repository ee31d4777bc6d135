"""The tables inside the report's page, unpacked as its script does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

_PACKED = re.compile(r'<template (?:data-rows|id)="(\w+)">([^<]*)</template>')


def payloads(page: str) -> dict[str, Any]:
    """Every table and what else is packed, by name."""
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in _PACKED.findall(page)}


def unpacked(page: bytes) -> bytes:
    """The page with all that is packed in it as text behind it."""
    return page + json.dumps(payloads(page.decode()), ensure_ascii=False).encode()
