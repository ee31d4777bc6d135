"""Answers that do not end, or are far larger than they look, by the first part of the path that is asked for."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

from prometheus.backends import chunked, frame

STREAMED = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
MIB = 1 << 20
Body = Iterator[bytes]


@cache
def bomb() -> list[bytes]:
    """A quarter of a gigabyte of spaces, in 250 kB."""
    squeezed = zlib.compressobj(level=1)
    return [squeezed.compress(b" " * MIB) + squeezed.flush(zlib.Z_SYNC_FLUSH) for _ in range(256)]


def drip() -> Body:
    while True:
        yield b" "
        time.sleep(0.05)


def frames() -> Body:
    whole = frame(b"\x0a\x00" * 30_000)  # series without labels and chunks
    while True:
        yield whole


def braces() -> Body:
    """A list of empty objects: in memory twenty times as large."""
    yield b'{"status":"success","data":['
    for _ in range(60):
        yield b"{}," * (MIB // 3)
    yield b"{}]}"


def labels(path: str) -> Body:
    """Series with a label of a megabyte, framed or as a list."""
    named = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "big": "x" * MIB}
    is_list = path.endswith("/series")
    if is_list:
        yield b'{"status":"success","data":['
    whole = json.dumps(named).encode() + b"," if is_list else frame(chunked(named, []))
    while True:
        yield whole


def many(path: str) -> Body:
    """A list of series as large as one is believed: 130,000 of half a kilobyte with a dozen labels."""
    series = json.dumps({"__name__": "DCGM_FI_DEV_GPU_UTIL", **{f"label_{number}": "x" * 30 for number in range(11)}}).encode()
    yield b'{"status":"success","data":[' + series
    for _ in range(130):
        yield (b"," + series) * 1000
    yield b"]}"


@cache
def page_of(pods: int) -> bytes:
    items = [{"metadata": {"name": f"p{number}", "uid": f"TOKEN-{number}"}} for number in range(pods)]
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "TOKEN"}, "items": items}).encode()


def page(token: str, pods: int) -> bytes:
    return page_of(pods).replace(b"TOKEN", token.encode())


TOKENS = count()
ATTACKS: dict[str, tuple[dict[str, str], Callable[[str], Body]]] = {
    "bomb": ({"Content-Encoding": "deflate"}, lambda _: iter(bomb())),
    "drip": ({}, lambda _: drip()),
    "frames": ({"Content-Type": STREAMED}, lambda _: frames()),
    "varint": ({"Content-Type": STREAMED}, lambda _: iter(lambda: b"\x80" * MIB, b"")),
    "labels": ({"Content-Type": STREAMED}, labels),
    "many": ({}, many),
    "braces": ({}, lambda _: braces()),
    "nested": ({}, lambda _: iter([b"[" * (3 * MIB)])),
    "line": ({}, lambda _: iter(lambda: b'{"metric":' * 100_000, b"")),
    "circle": ({}, lambda path: iter([page("b" if path.endswith("=a") else "a", 1)])),
    # Of namespaces, which are read in a third of the time of as many pods.
    "more": ({}, lambda path: iter([page(f"token-{next(TOKENS)}", 500) if "/v1/namespaces" in path else page("", 0)])),
    "thick": ({}, lambda _: iter([page(f"token-{next(TOKENS)}", 20_000)])),
}
HEADERS_THAT_DRIP = "headers"


@contextmanager
def hostile_server() -> Iterator[str]:
    """Its address; below it ``/<attack>`` is the base of a server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            name = self.path.split("/")[1]
            with suppress(OSError):
                self._drip_headers() if name == HEADERS_THAT_DRIP else self._attack(*ATTACKS[name])

        do_POST = do_GET  # noqa: N815 (the library's name)

        def _attack(self, headers: dict[str, str], body: Callable[[str], Body]) -> None:
            self.send_response(200)
            for header, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(header, value)
            self.end_headers()
            for part in body(self.path):
                self.wfile.write(part)

        def _drip_headers(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            for part in drip():
                self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            """Not on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
