"""The tables inside the report's page, unpacked as its script does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

_PACKED = re.compile(r'<template (?:data-rows|id)="(\w+)">([^<]*)</template>')


def payloads(page: str) -> dict[str, Any]:
    """Every packed table and other packed value, by name."""
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in _PACKED.findall(page)}


def unpacked(page: bytes) -> bytes:
    """The page, followed by all packed data in it as text."""
    return page + json.dumps(payloads(page.decode()), ensure_ascii=False).encode()
