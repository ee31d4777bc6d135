"""Raw JSON from an API server by the `kubernetes` client's transport, with timeouts, retries and the server's own words.

The client's models are left aside: one null where its schema wants a list would lose the whole list, and they take
four times as long.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import urllib3
from urllib3.exceptions import HTTPError, LocationParseError, ReadTimeoutError

from gpureport.config import Kubernetes as KubernetesSettings
from gpureport.errors import AuthError, SourceError

if TYPE_CHECKING:
    from kubernetes.client.api_client import ApiClient

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 10.0
_CHUNK_BYTES = 1 << 20
Decode = Callable[[bytes], Any]
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip"}


class NotListedError(SourceError):
    """The server has no such list, or does not show it: nothing is known of its objects, which is not that there are none."""


class MissingError(NotListedError):
    """404: the server does not have it."""


class ForbiddenError(NotListedError):
    """403: these credentials may not see it."""


class OutOfScopeError(NotListedError):
    """The configuration leaves it out, so it was not asked for."""


class ExpiredError(SourceError):
    """410: the list that a token continues is too old; ``token`` continues with a later state of it."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(message)
        self.token = token


class _BrokenError(Exception):
    """An answer that may be better the next time; the text says what was wrong."""


@dataclass(frozen=True)
class Connection:
    """Questions to one API server; every method raises SourceError's family with one sentence."""

    client: ApiClient
    settings: KubernetesSettings

    @property
    def url(self) -> str:
        """The server's address."""
        return str(self.client.configuration.host)

    def get(self, path: str, decode: Decode = orjson.loads, **query: str | int) -> Any:
        """The decoded JSON of a path; tried again where that may help."""
        for attempt in range(self.settings.retries + 1):
            try:
                return self._get(path, query, decode)
            except _BrokenError as error:
                if attempt == self.settings.retries:
                    raise SourceError(f"{self.url}{path}: {error}; retry later, or check the server") from error.__cause__
                _pause(attempt)
        raise AssertionError("the last attempt returns or raises")

    def _get(self, path: str, query: Mapping[str, str | int], decode: Decode) -> Any:
        from kubernetes.client.exceptions import ApiException

        asked = self.client.param_serialize(
            "GET", path, query_params=list(query.items()), header_params=dict(_HEADERS), auth_settings=["BearerToken"]
        )
        timeout = (self.settings.connect_timeout_seconds, self.settings.read_timeout_seconds)
        try:
            response = self.client.call_api(*asked, _request_timeout=timeout).response
        except ApiException as error:  # what the client makes of a failed handshake
            raise SourceError(f"no TLS with {self.url} ({_words(error.reason)}); check the CA and the address") from error
        except LocationParseError as error:
            raise SourceError(f"{self.url} is not the address of a server; check the kubeconfig") from error
        except HTTPError as error:
            raise _BrokenError(f"no answer ({_cause(error)})") from error
        try:
            return self._checked(path, response, self._body(response), decode)
        finally:
            response.close()

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """The whole body, decompressed; a server that drips is as good as silent."""
        deadline = time.monotonic() + self.settings.page_timeout_seconds
        parts = []
        try:
            while part := response.read1(_CHUNK_BYTES, decode_content=True):
                parts.append(part)
                if time.monotonic() > deadline:
                    raise _BrokenError(f"not whole within {self.settings.page_timeout_seconds:g} s (page_timeout_seconds)")
        except (HTTPError, OSError, zlib.error) as error:
            raise _BrokenError(f"the answer broke off ({_cause(error)})") from error
        return b"".join(parts)

    def _checked(self, path: str, response: urllib3.BaseHTTPResponse, body: bytes, decode: Decode) -> Any:
        status = response.status
        if status in _AGAIN:
            raise _BrokenError(f"status {status}: {_message(body)}")
        if status >= 300:
            raise self._refusal(path, status, body)
        try:
            return decode(body)
        except orjson.JSONDecodeError as error:
            raise _BrokenError(f"the answer is not JSON ({error})") from error

    def _refusal(self, path: str, status: int, body: bytes) -> SourceError:
        text = _message(body)
        if status == 401:
            return AuthError(f"{self.url} refuses these credentials (401: {text}); log in again, or check the token")
        if status == 403:
            return ForbiddenError(f"not allowed (403: {text})")
        if status == 404:
            return MissingError("the server does not have it (404)")
        if status == 410:
            return ExpiredError(f"{self.url}{path}: the list expired while it was read ({text}); run again", _token(body))
        return SourceError(f"{self.url}{path} answered {status}: {text}; is this the address of an API server?")


def _pause(attempt: int) -> None:
    """Full jitter, so that many jobs do not come back together."""
    time.sleep(random.uniform(0, min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)))


def _status(body: bytes) -> Mapping[str, Any]:
    """The Status object in which an API server says what is wrong."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _token(body: bytes) -> str:
    metadata = _status(body).get("metadata")
    return str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""


def _message(body: bytes) -> str:
    return _words(_status(body).get("message") or body.decode("utf-8", "replace")) or "nothing"


def _words(text: Any) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= 300 else f"{words[:150]} … {words[-150:]}"


def _cause(error: BaseException) -> str:
    """The innermost reason, without object addresses."""
    if isinstance(error, ReadTimeoutError):
        return "read timed out"
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return _words(error)[:160] or type(error).__name__
