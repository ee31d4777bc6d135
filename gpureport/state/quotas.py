"""Quota objects of any system → rows of ``quota``, uninterpreted."""

from __future__ import annotations

import json
from typing import Any

from gpureport.state.fields import Object, Row, instant, mapping, text, texts
from gpureport.state.kinds import Kind

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def quota_row(kind: Kind, api_version: str, found: Object) -> Row:
    """A quota object as it is."""
    metadata = mapping(found.get("metadata"))
    annotations = texts(metadata.get("annotations"))
    annotations.pop(_LAST_APPLIED, None)
    return {
        "system": kind.quota_system,
        "kind": kind.asked,
        "api_version": api_version,
        "namespace": text(metadata.get("namespace")),
        "name": text(metadata.get("name")),
        "uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "labels": texts(metadata.get("labels")),
        "annotations": annotations,
        "spec": _json(found.get("spec")),
        "status": _json(found.get("status")),
    }


def _json(value: Any) -> str:
    return json.dumps(mapping(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
