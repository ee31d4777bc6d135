"""Credentials as Prometheus users have them: token or password by file or variable, TLS files, promtool's HTTP client file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.errors import UsageError, first_line

_SECTIONS = ("basic_auth", "authorization", "tls_config", "http_headers")


@dataclass(frozen=True)
class Access:
    """Credentials of a connection."""

    headers: dict[str, str] = field(default_factory=dict)
    basic: tuple[str, str] | None = None
    verify: bool | str = True
    cert: tuple[str, str] | str | None = None


def access(settings: PrometheusSettings, environ: Mapping[str, str]) -> Access:
    """Read the secrets that the settings name; UsageError where one is not there."""
    shared = _from_http_config(settings.http_config_file) if settings.http_config_file else Access()
    headers = {**shared.headers, **settings.headers}
    if token := _secret(settings.bearer_token_file, settings.bearer_token_env, environ):
        headers["Authorization"] = f"Bearer {token}"
    basic = shared.basic
    if settings.username:
        basic = (settings.username, _secret(settings.password_file, settings.password_env, environ))
    verify = False if settings.insecure_skip_verify else _existing(settings.ca_file) or shared.verify
    return Access(_sendable(headers), basic, verify, _certificate(settings.cert_file, settings.key_file) or shared.cert)


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    """The headers, once it is sure that no library will refuse them with their value in its message."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise UsageError(
                f"the header {name} cannot be sent: its value is more than one line of plain ASCII; check where it is set"
            )
    return headers


def _secret(path: str, variable: str, environ: Mapping[str, str]) -> str:
    if path:
        return _read(path).strip()
    if not variable:
        return ""
    if variable not in environ:
        raise UsageError(f"the environment variable {variable}, named for a secret, is not set")
    return environ[variable].strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the configured path") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8; check the configured path") from None


def _existing(path: str) -> str:
    if path and not Path(path).is_file():
        raise UsageError(f"{path} is not there; check the configured path")
    return path


def _certificate(cert: str, key: str) -> tuple[str, str] | str | None:
    if not cert:
        return None
    return (_existing(cert), _existing(key)) if key else _existing(cert)


def _from_http_config(path: str) -> Access:
    """promtool's ``--http.config.file``."""
    try:
        loaded = yaml.safe_load(_read(path)) or {}
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {first_line(error)}") from None
    if not isinstance(loaded, dict):
        raise UsageError(f"{path} is not an HTTP client configuration; see promtool's --http.config.file")
    sections = {name: _section(loaded, name, path) for name in _SECTIONS}
    tls, basic = sections["tls_config"], sections["basic_auth"]
    verify = False if tls.get("insecure_skip_verify") is True else _existing(_word(tls, "ca_file", path)) or True
    user = _word(basic, "username", path)
    return Access(
        _headers(loaded, sections, path),
        (user, _named_secret(basic, "password", path)) if user else None,
        verify,
        _certificate(_word(tls, "cert_file", path), _word(tls, "key_file", path)),
    )


def _section(loaded: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    section = loaded.get(name) or {}
    if not isinstance(section, dict):
        raise UsageError(f"{name} of {path} is not a mapping; see promtool's --http.config.file")
    return section


def _word(section: Mapping[str, Any], name: str, path: str) -> str:
    """The text under a name, '' for none; UsageError for a list or a table, whose content is not repeated."""
    value = section.get(name)
    if isinstance(value, list | dict):
        raise UsageError(f"{name} in {path} is not one word; see promtool's --http.config.file")
    return "" if value is None else str(value)


def _named_secret(section: Mapping[str, Any], name: str, path: str) -> str:
    """The secret of a file, or the one that is written here."""
    return _secret(_word(section, f"{name}_file", path), "", {}) or _word(section, name, path)


def _headers(loaded: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], path: str) -> dict[str, str]:
    headers = {}
    for name, values in sections["http_headers"].items():
        first = values.get("values") if isinstance(values, dict) else None
        if not (isinstance(first, list) and first):
            raise UsageError(f"the header {name} in {path} has no list of values; see promtool's --http.config.file")
        headers[str(name)] = str(first[0])
    authorization = sections["authorization"]
    if token := _named_secret(authorization, "credentials", path):
        headers["Authorization"] = f"{_word(authorization, 'type', path) or 'Bearer'} {token}"
    elif token := _named_secret(loaded, "bearer_token", path):
        headers["Authorization"] = f"Bearer {token}"
    return headers
