"""Detection of the server's kind and of its path for raw samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import yaml

from gpureport.collect.sources.prometheus.connection import Connection, NoApiError
from gpureport.collect.sources.prometheus.outline import Matcher, selector
from gpureport.collect.sources.prometheus.remote_read import is_streamed, post_read
from gpureport.values.errors import AuthError, SourceError

ReadPath = Literal["remote-read", "matrix", "victoria-metrics"]
_NOTHING = Matcher("__name__", "=", "gpureport_probe_that_matches_nothing")


@dataclass(frozen=True)
class Server:
    """Properties of a server."""

    flavour: str
    version: str
    read_path: ReadPath
    external_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that remote read adds to every series."""


def probe(connection: Connection) -> Server:
    """Detect the server's version and read path. A configured read path is used without a test.

    SourceError where there is no answer, AuthError where the server requires credentials.
    """
    version = _version(connection)
    chosen = connection.settings.read_path
    path: ReadPath = _first_served(connection) if chosen == "auto" else chosen
    flavour = "VictoriaMetrics" if path == "victoria-metrics" else "Prometheus"
    labels = external_labels(connection) if path == "remote-read" else {}
    return Server(flavour, version, path, labels)


def _version(connection: Connection) -> str:
    """Return the server's version; '' where it reports none, as managed servers may."""
    try:
        data = connection.json("/api/v1/status/buildinfo").get("data") or {}
    except AuthError as error:
        if " (401" in str(error):
            raise
        return ""
    except NoApiError:
        raise
    except SourceError:
        return ""
    return str(data.get("version", ""))


def _first_served(connection: Connection) -> ReadPath:
    if _serves_remote_read(connection):
        return "remote-read"
    return "victoria-metrics" if _serves_export(connection) else "matrix"


def _serves_remote_read(connection: Connection) -> bool:
    try:
        return post_read(connection, [_NOTHING], 0, 1, is_streamed)
    except SourceError:
        return False


def _serves_export(connection: Connection) -> bool:
    try:
        params = {"match[]": selector([_NOTHING]), "start": 0, "end": 1}
        return connection.request(
            "GET", "/api/v1/export", lambda reply: "json" in reply.headers.get("Content-Type", ""), params=params
        )
    except SourceError:
        return False


def external_labels(connection: Connection) -> Mapping[str, str]:
    """Return the external labels in the server's configuration; none where it does not show it."""
    try:
        text = (connection.json("/api/v1/status/config").get("data") or {}).get("yaml", "")
        labels = ((yaml.safe_load(text) or {}).get("global") or {}).get("external_labels") or {}
    except (SourceError, yaml.YAMLError):
        return {}
    return {str(name): str(value) for name, value in labels.items()}
