"""Small servers on real sockets that answer as real ones have been seen to, and record the requests."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import requests


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode()).items()}


@dataclass(frozen=True)
class Reply:
    """One answer; ``missing_bytes`` are announced and never sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    missing_bytes: int = 0


@dataclass(frozen=True)
class Replay:
    """A running server."""

    url: str
    requests: list[Request]

    def count(self, path: str) -> int:
        return sum(each.path == path for each in self.requests)


Answer = Callable[[Request], Reply]
Routes = Mapping[str, Reply | Answer]

NOT_FOUND = Reply(404, b"404 page not found\n", "text/plain; charset=utf-8")
BUILD_INFO = "/api/v1/status/buildinfo"


def as_json(content: object, status: int = 200, **headers: str) -> Reply:
    return Reply(status, json.dumps(content).encode(), headers=headers)


def success(data: object, **more: object) -> Reply:
    return as_json({"status": "success", "data": data, **more})


def failure(status: int, kind: str, message: str) -> Reply:
    return as_json({"status": "error", "errorType": kind, "error": message}, status)


def one_after_the_other(*replies: Reply) -> Answer:
    """The replies in turn, the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


_PASSED_ON = ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Read-Version")


def forwarding(server: str) -> Answer:
    """What another server answers."""

    def answer(request: Request) -> Reply:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        found = requests.request(request.method, server + request.target, data=request.body, headers=headers, timeout=60)
        return Reply(found.status_code, found.content, found.headers["Content-Type"])

    return answer


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is part of the test."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def replaying(routes: Routes, otherwise: Reply | Answer = NOT_FOUND) -> Iterator[Replay]:
    """A server with these routes, and another answer (Go's 404) for everything else."""
    received: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers), body)
            received.append(request)
            route = routes.get(request.path, otherwise)
            self._send(route if isinstance(route, Reply) else route(request))

        do_POST = do_GET  # noqa: N815 (the library's name)

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body) + reply.missing_bytes))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Not on the tests' output."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Replay(f"http://127.0.0.1:{server.server_address[1]}", received)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
