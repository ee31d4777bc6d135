"""Connection to one server: the session of prometheus-api-client with deadlines, retries and the server's own messages.

The library's retry adapter is replaced: it never retries POST, and it loses the body of the final error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import orjson
import requests
import urllib3
from prometheus_api_client import PrometheusConnect
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from gpureport.collect.sources import exchange
from gpureport.collect.sources.prometheus.access import Access, access, cloud_auth
from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.errors import AuthError, SourceError, UsageError

Answer = TypeVar("Answer")
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
    """The server refuses a query of this size. A smaller one may succeed."""


class NotServedError(SourceError):
    """The server does not have this endpoint."""


class NoApiError(SourceError):
    """There is no server at this address, or no API: any other request to it will fail too."""


class _BrokenError(Exception):
    """An invalid answer after which a retry may succeed. ``error`` is reported where it does not."""

    def __init__(self, error: SourceError, retry_after: str = "") -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_seconds = float(retry_after) if retry_after.isdecimal() else 0.0


class Connection:
    """Requests to one server. Every method raises SourceError or a subclass with one sentence."""

    def __init__(self, settings: PrometheusSettings, client: PrometheusConnect) -> None:
        self.settings, self.retries = settings, exchange.RETRIES
        self.url = settings.url.rstrip("/")
        self._http: requests.Session = client._session
        self._timeout = (exchange.CONNECT_SECONDS, settings.read_timeout_seconds)

    def json(self, path: str, form: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the decoded reply of an API path, by POST where ``form`` is given. Its status is success."""
        body = self.request(
            "POST" if form is not None else "GET", path, lambda response: exchange.read(response.raw), data=form, params=params
        )
        try:
            reply = exchange.decoded(body)
        except orjson.JSONDecodeError:
            raise self._not_json(path, body) from None
        except exchange.LargeError as error:
            raise self._too_large(path, error) from error
        if not isinstance(reply, dict) or reply.get("status") != "success":
            raise SourceError(f"{self.url}{path} did not answer as Prometheus does: {_excerpt(body)}; check the URL")
        return reply

    def request(self, method: str, path: str, read: Callable[[requests.Response], Answer], **arguments: Any) -> Answer:
        """Return the result of ``read`` for a successful reply; ``raw`` has its body. Temporary failures are retried."""
        retries_end_at = time.monotonic() + exchange.LONGEST_REQUEST_SECONDS
        for attempt in range(self.retries + 1):
            try:
                with exchange.Deadline(exchange.ANSWER_READ_TIMEOUTS * self.settings.read_timeout_seconds) as deadline:
                    return self._once(method, path, read, arguments, deadline)
            except _BrokenError as broken:
                if attempt == self.retries or time.monotonic() > retries_end_at:
                    raise broken.error from broken.__cause__
                exchange.wait_before_retry(attempt, str(broken), broken.wait_seconds)
        raise AssertionError("the last attempt returns or raises")

    def _once(
        self,
        method: str,
        path: str,
        read: Callable[[requests.Response], Answer],
        arguments: Mapping[str, Any],
        deadline: exchange.Deadline,
    ) -> Answer:
        # Verification is set per request: else a CA bundle in the environment would override the configured CA.
        # A redirect is not followed: it would turn POST into GET, and send headers with secrets to another host.
        fixed: dict[str, Any] = {"timeout": self._timeout, "verify": self._http.verify, "allow_redirects": False, "stream": True}
        try:
            with self._http.request(method, self.url + path, **fixed, **arguments) as response:
                self._check(path, response)
                answer = read(response)
                deadline.check()
                return answer
        except exchange.LargeError as error:
            raise self._too_large(path, error) from error
        except (requests.RequestException, HTTPError, OSError) as error:
            if deadline.is_over:
                raise SourceError(
                    f"{self.url}{path}: the answer was not whole within {deadline.seconds:g} s; check the server, and any proxy"
                ) from error
            refusal = self._failed(path, error)
            if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.SSLError):
                raise refusal from error
            raise _BrokenError(refusal) from error

    def _check(self, path: str, response: requests.Response) -> None:
        """Raise the error of the response's status."""
        status = response.status_code
        if status < 300:
            return
        if status < 400:
            target = response.headers.get("Location", "").partition("?")[0]
            raise NoApiError(f"{self.url}{path} redirects to {target or 'nowhere'}; give the URL behind it, or check the token")
        body = exchange.excerpt(response.raw)
        text, is_too_much = _excerpt(body), _is_too_much(status, body)
        if status in exchange.RETRY_STATUSES and not is_too_much:
            refusal = SourceError(f"{self.url}{path} answered {status}: {text}; retry later, or check the server's log")
            raise _BrokenError(refusal, response.headers.get("Retry-After", ""))
        if status in (401, 403):
            hint = "set the tenant as X-Scope-OrgID in http_headers" if "no org id" in text else "check token, user or header"
            raise AuthError(f"{self.url} refuses these credentials ({status}: {text}); {hint}")
        if is_too_much:
            raise TooMuchError(f"{self.url}{path}: {text}")
        if status in (404, 405) or "unsupported path" in text:
            raise NotServedError(
                f"{self.url} does not serve {path} ({status}); is this the base URL of a Prometheus API? "
                "It may need a prefix, as in https://host/prometheus"
            )
        raise SourceError(f"{self.url}{path} answered {status}: {text}; retry later, or check the server's log")

    def _too_large(self, path: str, error: exchange.LargeError) -> TooMuchError:
        return TooMuchError(f"{self.url}{path}: the answer is implausibly large ({error})")

    def _failed(self, path: str, error: Exception) -> SourceError:
        if isinstance(error, requests.exceptions.ReadTimeout | urllib3.exceptions.ReadTimeoutError):
            return NoApiError(
                f"{self.url}{path}: no answer within {self._timeout[1]:g} s; raise read_timeout_seconds, or request less"
            )
        if isinstance(error, requests.exceptions.SSLError):
            return NoApiError(
                f"no TLS with {self.url} ({exchange.cause(error)}); check ca_file, cert_file, key_file, or the address"
            )
        if isinstance(error, requests.RequestException):
            return NoApiError(f"cannot reach {self.url} ({exchange.cause(error)}); check the address, and that the server is up")
        return SourceError(f"{self.url}{path}: the answer broke off ({exchange.cause(error)}); run again")

    def _not_json(self, path: str, body: exchange.Body) -> SourceError:
        if body.lstrip()[:1] == b"<":
            return NoApiError(f"{self.url}{path} is a web page, not an API; check the URL, it may need a prefix or a token")
        return SourceError(f"{self.url}{path} did not answer with JSON: {_excerpt(body)}; run again, or check the URL")


class _Adapter(HTTPAdapter):
    """Transport whose connections obey their deadline, without its own retries."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        exchange.with_deadlines(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **named: Any) -> Any:
        return exchange.with_deadlines(super().proxy_manager_for(proxy, **named))


def session(credentials: Access | None = None) -> requests.Session:
    """Return a session with the credentials. A ``Deadline`` can end its requests."""
    let_in = credentials or Access()
    http = requests.Session()
    for scheme in ("http://", "https://"):
        http.mount(scheme, _Adapter())
    http.headers.update(let_in.headers)
    if let_in.basic:
        http.auth = HTTPBasicAuth(*(part.encode() for part in let_in.basic))
    http.verify = let_in.verify
    http.cert = let_in.cert
    if not let_in.verify:  # configured by the user: a warning per request would hide all other messages
        urllib3.disable_warnings(InsecureRequestWarning)
    return http


def open_connection(settings: PrometheusSettings, environ: Mapping[str, str]) -> Connection:
    """Return a connection with the configured credentials. No request is sent. UsageError for an invalid URL."""
    url, user = _address(settings.url)
    settings = settings.model_copy(update={"url": url})
    let_in = access(settings)
    let_in = replace(let_in, basic=let_in.basic or user)
    http = session(let_in)
    if settings.identity and not let_in.basic:
        http.auth = cloud_auth(settings.identity, url, environ)
    client = PrometheusConnect(url, session=http)
    http.mount(url, _Adapter())  # replaces the client's adapter
    return Connection(settings, client)


def _address(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without credentials, because it is printed, and its (user, password); None where it has none."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_url = is_url and not re.search(r"[\s\\]", url)
    except ValueError:
        is_url = False
    if not is_url:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise UsageError(f"{shown!r} is not the URL of a server; write it like http://prometheus:9090")
    if parts.query or parts.fragment:  # not quoted: it may contain a token
        raise UsageError(f"the URL of {parts.hostname} must not have a query; give a token by http_config_file")
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), user


def _is_too_much(status: int, body: bytes) -> bool:
    text = body.decode("utf-8", "replace").lower()
    return status in (400, 413, 422, 503) and any(phrase in text for phrase in _TOO_MUCH)


def _excerpt(body: exchange.Body) -> str:
    """Return the server's message: the error of a JSON reply, else its text."""
    try:
        reply = orjson.loads(body[: exchange.EXCERPT_BYTES])
        text = str(reply.get("error") or reply.get("message") or reply) if isinstance(reply, dict) else str(reply)
    except orjson.JSONDecodeError:
        text = body[: exchange.EXCERPT_BYTES].decode("utf-8", "replace")
    return exchange.shortened(text) or "nothing"
