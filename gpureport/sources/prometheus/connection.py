"""One connection to a server: prometheus-api-client's, with timeouts, retries and the server's own words everywhere.

Its retry adapter is replaced: it never retries POST and loses the body of the error that it gave up on.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
import requests
import urllib3
from prometheus_api_client import PrometheusConnect
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import InsecureRequestWarning
from urllib3.util.retry import Retry

from gpureport.config import Prometheus as PrometheusSettings
from gpureport.errors import AuthError, SourceError, UsageError
from gpureport.sources.prometheus.access import access

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 10.0
_TOO_MUCH = (
    "too many samples",
    "exceeded sample limit",
    "query timed out",
    "exceeded maximum resolution",
    "time range cannot exceed",
    "err-mimir-max",
    "the query time range exceeds the limit",
    "cannot select more than",
    "exceeds -search.max",
)


class TooMuchError(SourceError):
    """The server will not answer a question of this size; a smaller one may pass."""


class NotServedError(SourceError):
    """The server does not have this endpoint."""


class NoApiError(SourceError):
    """Nothing answers at this address, or something that is no API: no other question to it will fare better."""


class Connection:
    """Requests to one server; every method raises SourceError's family with one sentence."""

    def __init__(self, settings: PrometheusSettings, client: PrometheusConnect) -> None:
        self.settings = settings
        self.url = settings.url.rstrip("/")
        self._http: requests.Session = client._session
        self._timeout = (settings.connect_timeout_seconds, settings.read_timeout_seconds)

    def json(self, path: str, form: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The decoded reply of an API path, asked by POST where a form is given; status success is assured."""
        with self.request("POST" if form is not None else "GET", path, data=form, params=params) as response:
            body = response.content
        try:
            reply = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise self._not_json(path, response, body) from None
        if not isinstance(reply, dict) or reply.get("status") != "success":
            raise SourceError(f"{self.url}{path} did not answer as Prometheus does: {_excerpt(body)}; check the URL")
        return reply

    @contextmanager
    def request(self, method: str, path: str, **arguments: Any) -> Iterator[requests.Response]:
        """A successful reply, whole if the caller reads it within the block; tried again where that may help."""
        for attempt in range(self.settings.retries + 1):
            is_last = attempt == self.settings.retries
            try:
                response = self._send(method, path, arguments)
            except requests.RequestException as error:
                if is_last or isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.SSLError):
                    raise self._failed(path, error) from error
                _pause(attempt)
                continue
            if response.status_code in _AGAIN and not is_last and not _is_too_much(response):
                _pause(attempt, response.headers.get("Retry-After"))
                response.close()
                continue
            self._check(path, response)
            yield from self._guarded(path, response)
            return

    def _send(self, method: str, path: str, arguments: Mapping[str, Any]) -> requests.Response:
        # Said for each request, or a bundle named in the environment would go before the configured CA.
        # A redirect is not followed: it would make POST a GET, and take headers with secrets to another host.
        fixed: dict[str, Any] = {"timeout": self._timeout, "verify": self._http.verify, "allow_redirects": False}
        return self._http.request(method, self.url + path, **fixed, **arguments)

    def _guarded(self, path: str, response: requests.Response) -> Iterator[requests.Response]:
        try:
            yield response
        except requests.RequestException as error:
            raise self._broken_off(path, error) from error
        finally:
            response.close()

    def _check(self, path: str, response: requests.Response) -> None:
        """Raise what the status says."""
        status = response.status_code
        if status < 300:
            return
        if status < 400:
            target = response.headers.get("Location", "").partition("?")[0]
            raise NoApiError(f"{self.url}{path} redirects to {target or 'nowhere'}; give the URL behind it, or check the token")
        text = _excerpt(_body(response))
        if status in (401, 403):
            hint = "set the tenant with --header 'X-Scope-OrgID: …'" if "no org id" in text else "check token, user or header"
            raise AuthError(f"{self.url} refuses these credentials ({status}: {text}); {hint}")
        if _is_too_much(response):
            raise TooMuchError(f"{self.url}{path}: {text}")
        if status in (404, 405) or "unsupported path" in text:
            raise NotServedError(
                f"{self.url} does not serve {path} ({status}); is this the base URL of a Prometheus API? "
                "It may need a prefix, as in https://host/prometheus"
            )
        raise SourceError(f"{self.url}{path} answered {status}: {text}; retry later, or check the server's log")

    def _broken_off(self, path: str, error: requests.RequestException) -> SourceError:
        return SourceError(f"{self.url}{path}: the answer broke off ({_cause(error)}); run again")

    def _failed(self, path: str, error: requests.RequestException) -> SourceError:
        if isinstance(error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError):
            return self._broken_off(path, error)
        if isinstance(error, requests.exceptions.ReadTimeout):
            return NoApiError(
                f"{self.url}{path}: no answer within {self._timeout[1]:g} s; raise read_timeout_seconds, or ask for less"
            )
        if isinstance(error, requests.exceptions.SSLError):
            return NoApiError(f"no TLS with {self.url} ({_cause(error)}); check ca_file, cert_file, key_file, or the address")
        return NoApiError(f"cannot reach {self.url} ({_cause(error)}); check the address, and that the server is up")

    def _not_json(self, path: str, response: requests.Response, body: bytes) -> SourceError:
        if body.lstrip()[:1] == b"<":
            return NoApiError(f"{self.url}{path} is a web page, not an API; check the URL, it may need a prefix or a token")
        return SourceError(f"{self.url}{path} did not answer with JSON: {_excerpt(body)}; run again, or check the URL")


def open_connection(settings: PrometheusSettings, environ: Mapping[str, str]) -> Connection:
    """A connection with the configured credentials; nothing is sent yet. UsageError where the URL is none."""
    url, user = _address(settings.url)
    settings = settings.model_copy(update={"url": url})
    let_in = access(settings, environ)
    http = requests.Session()
    http.headers.update(let_in.headers)
    if basic := let_in.basic or user:
        http.auth = HTTPBasicAuth(*(part.encode() for part in basic))
    http.verify = let_in.verify
    http.cert = let_in.cert
    if not let_in.verify:  # chosen in the settings: a warning for every request would bury what else is said
        urllib3.disable_warnings(InsecureRequestWarning)
    client = PrometheusConnect(url, session=http, retry=Retry(0, read=False))
    return Connection(settings, client)


def _address(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without the user and password that it may carry, for it is printed; and those."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise UsageError(f"{url.rpartition('@')[2]!r} is not the URL of a server; write it like http://prometheus:9090")
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), user


def _body(response: requests.Response) -> bytes:
    """What came of a refusal's body."""
    try:
        return response.content
    except (requests.RequestException, RuntimeError):  # the latter on a second look at a body that broke off
        return b""


def _is_too_much(response: requests.Response) -> bool:
    if response.status_code not in (400, 413, 422, 503):
        return False
    text = _body(response).decode("utf-8", "replace").lower()
    return any(phrase in text for phrase in _TOO_MUCH)


def _pause(attempt: int, retry_after: str | None = None) -> None:
    """Full jitter, so that many jobs do not come back together; longer where the server asks for it."""
    longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
    asked = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    time.sleep(max(min(asked, _LONGEST_WAIT_SECONDS), random.uniform(0, longest)))


def _excerpt(body: bytes) -> str:
    """The server's own words: the error of a JSON reply, else its text; of long ones the beginning and the end."""
    try:
        reply = orjson.loads(body)
        text = str(reply.get("error") or reply.get("message") or reply) if isinstance(reply, dict) else str(reply)
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace")
    text = " ".join(text.split()) or "nothing"
    return text if len(text) <= 300 else f"{text[:150]} … {text[-150:]}"


def _cause(error: BaseException) -> str:
    """The innermost reason, without object addresses."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "the handshake failed").lower().replace("_", " ")
        return ": ".join(filter(None, [reason, getattr(error, "verify_message", "")]))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return " ".join(str(error).split())[:160] or type(error).__name__
