"""Raw JSON from an API server over the `kubernetes` client's transport, with timeouts, retries and the server's own messages.

The client's models are not used: a null where the schema has a list would lose the whole list, and they take four times as long.
The client reads kubeconfig files and service accounts. It is imported only when a cluster is read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import urllib3
import yaml
from urllib3.exceptions import HTTPError, LocationParseError, ReadTimeoutError

from gpureport import __version__
from gpureport.collect.sources import exchange
from gpureport.config import Kubernetes as KubernetesSettings
from gpureport.values.errors import AuthError, SourceError, UsageError

if TYPE_CHECKING:
    from kubernetes.client.api_client import ApiClient

_READ_SECONDS = 60.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOW_TO_NAME_A_CLUSTER = (
    "give --kubeconfig FILE, set KUBECONFIG, or run in a pod whose service account may list (see docs/operations.md)"
)


class NoClusterError(UsageError):
    """The configuration does not name a cluster."""


def kubeconfig(settings: KubernetesSettings, environ: Mapping[str, str]) -> str:
    """Return the kubeconfig files: the configured one, else KUBECONFIG's, else the user's own; '' where there is none."""
    if settings.kubeconfig:
        return settings.kubeconfig
    if environ.get("KUBECONFIG"):
        return environ["KUBECONFIG"]
    own = Path(environ["HOME"]) / ".kube" / "config" if environ.get("HOME") else None
    return str(own) if own and own.is_file() else ""


def is_in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (service_account / "token").is_file()


def open_client(settings: KubernetesSettings, environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> ApiClient:
    """Return a client with credentials. No request is sent, except by a credential plugin.

    NoClusterError where no cluster is configured, UsageError where a kubeconfig is invalid, AuthError where a plugin fails.
    """
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration

    configuration = Configuration()
    if path := kubeconfig(settings, environ):
        _load_kubeconfig(path, settings.context, configuration)
    elif is_in_cluster(environ, service_account):
        _load_service_account(environ, service_account, configuration)
    else:
        raise NoClusterError(f"no Kubernetes cluster to read; {HOW_TO_NAME_A_CLUSTER}")
    configuration.retries = False  # our retries distinguish a refusal from an outage and keep the message
    client = ApiClient(configuration)
    exchange.with_deadlines(client.rest_client.pool_manager)
    client.user_agent = f"gpureport/{__version__}"
    return client


def _load_kubeconfig(path: str, context: str, configuration: Any) -> None:
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import load_kube_config

    if not any(Path(each).expanduser().is_file() for each in path.split(":") if each):
        lacking = "a folder, not a file" if Path(path).is_dir() else "not there"
        raise UsageError(f"the kubeconfig {path} is {lacking}; check --kubeconfig or KUBECONFIG")
    try:
        with _logged_errors() as problems:
            load_kube_config(path, context or None, configuration, persist_config=False)
    except ConfigException as error:
        text = " ".join(str(error).split())
        raise UsageError(f"the kubeconfig {path} cannot be used ({text}); check --kubeconfig and --context") from error
    except (yaml.YAMLError, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        first = " ".join(str(error).split())[:160]
        raise UsageError(f"{path} is not a kubeconfig ({first}); check --kubeconfig or KUBECONFIG") from error
    if problems:
        raise AuthError(f"the credential plugin of {path} failed ({problems[0]}); run it by hand, or log in again")


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Collect the client's log messages when a plugin fails. Otherwise the client continues without credentials."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(" ".join(record.getMessage().split()))  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield found
    finally:
        root.removeHandler(handler)


def _load_service_account(environ: Mapping[str, str], folder: Path, configuration: Any) -> None:
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import InClusterConfigLoader

    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt"), environ=environ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise UsageError(f"the service account at {folder} cannot be used ({error}); check how it is mounted") from error


_PAGE_BYTES = 64 << 20
Decode = Callable[[exchange.Body], Any]
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip"}


class NotListedError(SourceError):
    """The server has no such list, or does not show it: the number of its objects is unknown, not 0."""


class MissingError(NotListedError):
    """404: the server does not have it."""


class ForbiddenError(NotListedError):
    """403: these credentials have no access to it."""


class OutOfScopeError(NotListedError):
    """The configuration excludes it, so it was not requested."""


class ExpiredError(SourceError):
    """410: the list of a continue token is too old. ``token`` continues with a later state of the list."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(message)
        self.token = token


class _BrokenError(Exception):
    """An invalid answer after which a retry may succeed. The message is the defect."""


@dataclass(frozen=True)
class Connection:
    """Requests to one API server. Every method raises SourceError or a subclass with one sentence."""

    client: ApiClient
    settings: KubernetesSettings
    waits: list[float] = field(default_factory=list)
    """Seconds between attempts so far."""
    _refuses: list[str] = field(default_factory=list)
    """Paths that a started server refused. After the first of them, a refusal is final."""

    @property
    def url(self) -> str:
        """Address of the server."""
        return str(self.client.configuration.host)

    def get(self, path: str, decode: Decode = orjson.loads, **query: str | int) -> Any:
        """Return the decoded JSON of a path. Temporary failures are retried."""
        retries_end_at = time.monotonic() + exchange.LONGEST_REQUEST_SECONDS
        for attempt in range(exchange.RETRIES + 1):
            try:
                return self._get_confirmed(path, query, decode)
            except _BrokenError as error:
                if attempt == exchange.RETRIES or time.monotonic() > retries_end_at:
                    raise SourceError(f"{self.url}{path}: {error}; retry later, or check the server") from error
                self.waits.append(exchange.wait_before_retry(attempt, f"{self.url}{path}: {error}"))
        raise AssertionError("the last attempt returns or raises")

    def _get_confirmed(self, path: str, query: Mapping[str, str | int], decode: Decode) -> Any:
        """Return an answer. The first refusal is final only when the started server repeats it."""
        try:
            return self._within_deadline(path, query, decode)
        except ForbiddenError as error:
            if self._refuses:
                raise
            if self._is_starting():
                raise _BrokenError(f"the server is starting and refuses requests that it allows later: {error}") from error
        try:
            return self._within_deadline(path, query, decode)
        except ForbiddenError:
            self._refuses.append(path)
            raise

    def _within_deadline(self, path: str, query: Mapping[str, str | int], decode: Decode) -> Any:
        with exchange.Deadline(exchange.ANSWER_READ_TIMEOUTS * _READ_SECONDS) as deadline:
            try:
                answer = self._get(path, query, decode)
                deadline.check()
                return answer
            except exchange.LargeError as error:
                raise SourceError(f"{self.url}{path}: {error}; check the server") from error
            except (_BrokenError, OSError) as error:
                if not deadline.is_over:
                    raise
                late = f"the answer was not whole within {deadline.seconds:g} s; check the server, and any proxy"
                raise SourceError(f"{self.url}{path}: {late}") from error

    def _get(self, path: str, query: Mapping[str, str | int], decode: Decode) -> Any:
        from kubernetes.client.exceptions import ApiException

        request = self.client.param_serialize(
            "GET", path, query_params=list(query.items()), header_params=dict(_HEADERS), auth_settings=["BearerToken"]
        )
        timeout = (exchange.CONNECT_SECONDS, _READ_SECONDS)
        try:
            response = self.client.call_api(*request, _request_timeout=timeout).response
        except ApiException as error:  # the client's error after a failed handshake
            raise SourceError(
                f"no TLS with {self.url} ({exchange.shortened(error.reason)}); check the CA and the address"
            ) from error
        except LocationParseError as error:
            raise SourceError(f"{self.url} is not the address of a server; check the kubeconfig") from error
        except HTTPError as error:
            raise _BrokenError(f"no answer ({_cause(error)})") from error
        with response:
            return self._checked(path, response, decode)

    def _checked(self, path: str, response: urllib3.BaseHTTPResponse, decode: Decode) -> Any:
        if response.status >= 300:
            raise self._refusal(path, response.status, exchange.excerpt(response))
        try:
            return exchange.decoded(exchange.read(response, _PAGE_BYTES), decode)
        except (HTTPError, OSError) as error:
            raise _BrokenError(f"the answer broke off ({_cause(error)})") from error
        except orjson.JSONDecodeError as error:
            raise _BrokenError(f"the answer is not JSON ({error})") from error

    def _is_starting(self) -> bool:
        """Whether the server refuses only because its rules are not loaded yet. ``/readyz`` is open to everyone."""
        try:
            with suppress(SourceError):
                self._within_deadline("/readyz", {}, bytes)
        except _BrokenError:
            return True
        return False

    def _refusal(self, path: str, status: int, body: bytes) -> Exception:
        text = exchange.shortened(_status(body).get("message") or body.decode("utf-8", "replace")) or "nothing"
        if status in exchange.RETRY_STATUSES:
            return _BrokenError(f"status {status}: {text}")
        if status == 401:
            return AuthError(f"{self.url} refuses these credentials (401: {text}); log in again, or check the token")
        if status == 403:
            return ForbiddenError(f"not allowed (403: {text})")
        if status == 404:
            return MissingError("the server does not have it (404)")
        if status == 410:
            return ExpiredError(f"{self.url}{path}: the list expired while it was read ({text}); run again", _token(body))
        return SourceError(f"{self.url}{path} answered {status}: {text}; is this the address of an API server?")


def _status(body: bytes) -> Mapping[str, Any]:
    """Return the Status object in which an API server reports an error."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _token(body: bytes) -> str:
    metadata = _status(body).get("metadata")
    return str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""


def _cause(error: BaseException) -> str:
    return "read timed out" if isinstance(error, ReadTimeoutError) else exchange.cause(error)
