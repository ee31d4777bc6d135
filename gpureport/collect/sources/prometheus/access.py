"""Credentials for Prometheus, in the format of promtool's HTTP client file.

For a cloud's managed Prometheus, requests are signed (AWS) or have a token (Google, Azure). Each cloud's library is an extra,
loaded when configured. It finds and renews credentials in the same places as the cloud's own tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml
from requests.auth import AuthBase

from gpureport.config import Prometheus as PrometheusSettings
from gpureport.config.section import existing
from gpureport.values.errors import AuthError, UsageError, first_line

_GOOGLE_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_AZURE_SCOPE = "https://prometheus.monitor.azure.com/.default"
_SECONDS = 30
"""Time limit for credentials. The services that issue them are close."""


class Signed(AuthBase):
    """AWS Signature Version 4 over host, path, query, type and body of each request."""

    def __init__(self, credentials: Any, region: str, **more: Any) -> None:
        self._auth, self._http = _library("aws", "awscrt.auth"), _library("aws", "awscrt.http")
        self._how = {"credentials_provider": credentials, "region": region, "service": "aps", **more}

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Return the request with its signature."""
        parts = urlsplit(request.url or "")
        query = parts.query.replace("+", "%20")  # a plus would be signed literally but read as a blank
        request.url = parts._replace(query=query).geturl()
        body = request.body.encode() if isinstance(request.body, str) else request.body
        headers = [("Host", parts.netloc)]
        if kind := request.headers.get("Content-Type"):
            headers.append(("Content-Type", kind))
        unsigned = self._http.HttpRequest(
            request.method,
            f"{parts.path or '/'}?{query}" if query else parts.path or "/",
            self._http.HttpHeaders(headers),
            BytesIO(body) if body else None,
        )
        signed = _from_cloud(
            "aws", lambda: self._auth.aws_sign_request(unsigned, self._auth.AwsSigningConfig(**self._how)).result(_SECONDS)
        )
        request.headers.update({name: value for name, value in signed.headers if name != "Host"})
        return request


class Token(AuthBase):
    """A token that the cloud issues. It is requested before each request; libraries cache it while it is valid."""

    def __init__(self, cloud: str, token: Callable[[], str]) -> None:
        self._cloud, self._token = cloud, token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Return the request with its token."""
        request.headers["Authorization"] = f"Bearer {_from_cloud(self._cloud, self._token)}"
        return request


def cloud_auth(cloud: str, url: str, environ: Mapping[str, str]) -> AuthBase:
    """Return the credentials of a cloud. UsageError where its library is missing or the AWS region is unknown."""
    if cloud == "aws":
        found = re.search(r"\baps-workspaces\.([a-z0-9-]+)\.", url)
        region = found[1] if found else environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise UsageError(f"{url} names no region of AWS; set AWS_REGION")
        return Signed(_from_cloud(cloud, _library(cloud, "awscrt.auth").AwsCredentialsProvider.new_default_chain), region)
    if cloud == "azure":
        credential = _library(cloud, "azure.identity").DefaultAzureCredential()
        return Token(cloud, lambda: str(credential.get_token(_AZURE_SCOPE).token))
    google, transport = _library(cloud, "google.auth"), _library(cloud, "google.auth.transport.requests").Request()
    credentials, _ = _from_cloud(cloud, lambda: google.default(scopes=[_GOOGLE_SCOPE]))

    def token() -> str:
        if not credentials.valid:
            credentials.refresh(transport)
        return str(credentials.token)

    return Token(cloud, token)


def _library(cloud: str, name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f'prometheus.identity = "{cloud}" needs a library: pip install "gpureport[{cloud}]"') from None


def _from_cloud(cloud: str, get: Callable[[], Any]) -> Any:
    """Return credentials from a cloud's library. Any of its errors becomes an AuthError."""
    try:
        return get()
    except Exception as error:
        raise AuthError(
            f"no credentials of {cloud} for Prometheus: {first_line(error)}; check the account or its role"
        ) from error


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECTIONS = ("basic_auth", "authorization", "tls_config", "http_headers")


@dataclass(frozen=True)
class Access:
    """Credentials, TLS settings and headers of a connection."""

    headers: dict[str, str] = field(default_factory=dict)
    basic: tuple[str, str] | None = None
    verify: bool | str = True
    cert: tuple[str, str] | str | None = None


def access(settings: PrometheusSettings) -> Access:
    """Read the secrets of the HTTP client file. UsageError where one is missing."""
    found = http_access(settings.http_config_file)
    if settings.identity and (found.basic or "Authorization" in found.headers):
        raise UsageError(f"prometheus.identity replaces a token or a user; {settings.http_config_file} names one: drop either")
    return found


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers if all are valid. A library's error message would contain the value of an invalid one."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable() and _HEADER.fullmatch(name)):
            raise UsageError(
                f"the header {name} cannot be sent: its value is more than one line of plain ASCII; check where it is set"
            )
    return headers


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the configured path") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8; check the configured path") from None


def http_access(path: str) -> Access:
    """Read promtool's ``--http.config.file``. An empty path means no credentials."""
    if not path:
        return Access()
    try:
        loaded = yaml.safe_load(_read(path)) or {}
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {first_line(error)}") from None
    if not isinstance(loaded, dict):
        raise UsageError(f"{path} is not an HTTP client configuration; see promtool's --http.config.file")
    sections = {name: _section(loaded, name, path) for name in _SECTIONS}
    tls, basic = sections["tls_config"], sections["basic_auth"]
    verify = tls.get("insecure_skip_verify") is not True and (existing(f"ca_file in {path}", _word(tls, "ca_file", path)) or True)
    cert, key = (existing(f"{name} in {path}", _word(tls, name, path)) for name in ("cert_file", "key_file"))
    user = _word(basic, "username", path)
    return Access(
        _sendable(_headers(loaded, sections, path)),
        (user, _named_secret(basic, "password", path)) if user else None,
        verify,
        (cert, key) if cert and key else cert or None,
    )


def _section(loaded: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    section = loaded.get(name) or {}
    if not isinstance(section, dict):
        raise UsageError(f"{name} of {path} is not a mapping; see promtool's --http.config.file")
    return section


def _word(section: Mapping[str, Any], name: str, path: str) -> str:
    """Return the text of a field, '' for none. UsageError for a list or table, without its content."""
    value = section.get(name)
    if isinstance(value, list | dict):
        raise UsageError(f"{name} in {path} is not one word; see promtool's --http.config.file")
    return "" if value is None else str(value)


def _named_secret(section: Mapping[str, Any], name: str, path: str) -> str:
    """Return the secret in the named file, else the inline secret."""
    file = _word(section, f"{name}_file", path)
    return _read(file).strip() if file else _word(section, name, path)


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
