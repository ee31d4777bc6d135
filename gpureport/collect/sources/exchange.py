"""HTTP requests to slow, broken or hostile servers: a deadline, bounded memory, and retries for longer than a restart takes.

Both clients (requests and the Kubernetes client) use urllib3, so one reader and one deadline are enough for both.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

_LOG = logging.getLogger(__name__)
Body = bytes | bytearray
CONNECT_SECONDS = 10.0
RETRIES = 9
"""Retries. Nine take a minute, in which a server may restart."""
RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes after which a retry may succeed."""
ANSWER_READ_TIMEOUTS = 5
"""Deadline of a complete answer, in multiples of the read timeout."""
LONGEST_REQUEST_SECONDS = 150.0
"""No further attempt starts after this many seconds of failures."""
LONGEST_WAIT_SECONDS = 20.0
_FIRST_WAIT_SECONDS = 0.25
_LOGGED_ATTEMPT = 3  # after two seconds: a single failure is not worth a log line
_PART_BYTES = 1 << 18
_BODY_BYTES = 64 << 20
_DECODED_BYTES = 256 << 20
EXCERPT_BYTES = 1 << 16


class LargeError(Exception):
    """An answer is larger than any valid one."""


class Deadline:
    """Time limit of a block in seconds. Then all of its connections are closed, even if data still arrives slowly."""

    _of_thread = threading.local()

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = threading.Lock()
        self._descriptors: list[int] = []
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._end)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        Deadline._of_thread.current = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        Deadline._of_thread.current = None
        self._timer.cancel()
        self._timer.join()
        for descriptor in self._descriptors:
            os.close(descriptor)

    def check(self) -> None:
        """Raise OSError after the deadline: a truncated body may look complete."""
        if self.is_over:
            raise OSError("the deadline is over")

    @staticmethod
    def watch(connection: socket.socket | None) -> None:
        """Close a connection at this thread's deadline. A duplicated descriptor stays valid when TLS takes over the socket."""
        current = getattr(Deadline._of_thread, "current", None)
        if current is None or connection is None:
            return
        with current._lock:
            current._descriptors.append(os.dup(connection.fileno()))
            if current.is_over:
                current._shut()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            self._shut()

    def _shut(self) -> None:
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
                copy.shutdown(socket.SHUT_RDWR)


class _HTTP(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        connection = super()._new_conn()
        Deadline.watch(connection)
        return connection

    def request(self, *arguments: Any, **named: Any) -> None:
        Deadline.watch(self.sock)  # a connection that is used again
        super().request(*arguments, **named)


class _HTTPS(_HTTP, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _HTTP


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _HTTPS


def with_deadlines(manager: PoolManager) -> PoolManager:
    """Return the manager with connections that obey the thread's ``Deadline``. A SOCKS proxy manager is unchanged."""
    if type(manager) in (PoolManager, ProxyManager):
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
    return manager


def body_parts(response: BaseHTTPResponse, most_bytes: int = _BODY_BYTES) -> Iterator[bytes]:
    """Yield the decompressed body in parts. LargeError beyond ``most_bytes``."""
    left = most_bytes
    while part := response.read1(_PART_BYTES, decode_content=True):
        left -= len(part)
        if left < 0:
            raise LargeError(f"more than {most_bytes >> 20} MiB")
        yield part


def read(response: BaseHTTPResponse, most_bytes: int = _BODY_BYTES) -> bytearray:
    """Return the decompressed body. LargeError beyond ``most_bytes``."""
    body = bytearray()
    for part in body_parts(response, most_bytes):
        body += part
    return body


def excerpt(response: BaseHTTPResponse) -> bytes:
    """Return the start of an error response's body, as far as it can be read."""
    body = b""
    with contextlib.suppress(HTTPError, OSError, LargeError):
        for part in body_parts(response):
            body += part
            if len(body) >= EXCERPT_BYTES:
                break
    return body[:EXCERPT_BYTES]


def decoded(body: Body, decode: Callable[[Body], Any] = orjson.loads) -> Any:
    """Parse JSON. LargeError where its objects would need too much memory, estimated from the count of its punctuation."""
    weight = len(body) + 64 * sum(map(body.count, (b",", b":", b"[", b"{")))
    if weight > _DECODED_BYTES:
        raise LargeError(f"{len(body) >> 20} MiB of JSON, which would take about {weight >> 20} MiB of memory")
    return decode(body)


def wait_before_retry(attempt: int, failure: str, requested_seconds: float = 0.0) -> float:
    """Wait before the next attempt and return the seconds. Nine waits take a minute; random lengths spread the jobs' retries."""
    if attempt == _LOGGED_ATTEMPT:
        _LOG.warning(f"trying again, for up to two minutes: {failure}")
    longest = min(LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
    seconds: float = max(min(requested_seconds, LONGEST_WAIT_SECONDS), random.uniform(0.85, 1.0) * longest)
    time.sleep(seconds)
    return seconds


def shortened(text: Any) -> str:
    """Return a server's message on one line. A long one keeps its start and end."""
    line = " ".join(str(text).split())
    return line if len(line) <= 300 else f"{line[:150]} … {line[-150:]}"


def cause(error: BaseException) -> str:
    """Return the innermost reason of an error, without object addresses."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "the handshake failed").lower().replace("_", " ")
        return ": ".join(filter(None, [reason, getattr(error, "verify_message", "")]))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return shortened(error)[:160] or type(error).__name__
