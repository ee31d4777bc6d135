"""Clouds' managed Prometheus: requests that are signed (AWS), or bear a token of the cloud (Google, Azure).

Each cloud's library is an extra, loaded where it is named; it finds credentials where the cloud's own tools do and renews them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from gpureport.values.errors import AuthError, UsageError, first_line

_GOOGLE_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_AZURE_SCOPE = "https://prometheus.monitor.azure.com/.default"
_SECONDS = 30
"""For credentials: the services that give them are near."""


class Signed(AuthBase):
    """Signature Version 4 of AWS over host, path, query, type and body of each request."""

    def __init__(self, credentials: Any, region: str, **more: Any) -> None:
        self._auth, self._http = _library("aws", "awscrt.auth"), _library("aws", "awscrt.http")
        self._how = {"credentials_provider": credentials, "region": region, "service": "aps", **more}

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The request with its signature."""
        parts = urlsplit(request.url or "")
        query = parts.query.replace("+", "%20")  # a plus would be signed as itself, and read as a blank
        request.url = parts._replace(query=query).geturl()
        body = request.body.encode() if isinstance(request.body, str) else request.body
        headers = [("Host", parts.netloc)]
        if kind := request.headers.get("Content-Type"):
            headers.append(("Content-Type", kind))
        asked = self._http.HttpRequest(
            request.method,
            f"{parts.path or '/'}?{query}" if query else parts.path or "/",
            self._http.HttpHeaders(headers),
            BytesIO(body) if body else None,
        )
        signed = _told(
            "aws", lambda: self._auth.aws_sign_request(asked, self._auth.AwsSigningConfig(**self._how)).result(_SECONDS)
        )
        request.headers.update({name: value for name, value in signed.headers if name != "Host"})
        return request


class Token(AuthBase):
    """A token that the cloud gives, requested before each request: libraries keep it while it is valid."""

    def __init__(self, cloud: str, token: Callable[[], str]) -> None:
        self._cloud, self._token = cloud, token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The request with its token."""
        request.headers["Authorization"] = f"Bearer {_told(self._cloud, self._token)}"
        return request


def cloud_auth(cloud: str, url: str, environ: Mapping[str, str]) -> AuthBase:
    """Credentials of a cloud; UsageError where its library is missing, or AWS' region is unknown."""
    if cloud == "aws":
        found = re.search(r"\baps-workspaces\.([a-z0-9-]+)\.", url)
        region = found[1] if found else environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise UsageError(f"{url} names no region of AWS; set AWS_REGION")
        return Signed(_told(cloud, _library(cloud, "awscrt.auth").AwsCredentialsProvider.new_default_chain), region)
    if cloud == "azure":
        credential = _library(cloud, "azure.identity").DefaultAzureCredential()
        return Token(cloud, lambda: str(credential.get_token(_AZURE_SCOPE).token))
    google, transport = _library(cloud, "google.auth"), _library(cloud, "google.auth.transport.requests").Request()
    credentials, _ = _told(cloud, lambda: google.default(scopes=[_GOOGLE_SCOPE]))

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


def _told(cloud: str, ask: Callable[[], Any]) -> Any:
    """Credentials from a cloud's library; each library has errors of its own."""
    try:
        return ask()
    except Exception as error:
        raise AuthError(
            f"no credentials of {cloud} for Prometheus: {first_line(error)}; check the account or its role"
        ) from error
