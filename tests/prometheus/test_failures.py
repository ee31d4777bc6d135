"""Whatever a server does, the operator gets one sentence of the right class, and no secret in it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpureport.collect.sources.prometheus import Matcher, Server, probe, read
from gpureport.values.errors import AuthError, SourceError, UsageError
from gpureport.values.series import METRIC_LABEL

from . import backends
from .backends import DEVICE, SAMPLES, STREAMED, WINDOW, chunked, frame
from .programs import free_port
from .replay import BUILD_INFO, Reply, Routes, failure, replaying, success
from .samples import connect, rows_of
from .xor_oracle import encode

GPU = Matcher(METRIC_LABEL, "=", "DCGM_FI_DEV_GPU_UTIL")
TOKEN = "eyJhbGciOi.very.secret"
PASSWORD = "hunter2hunter2"
REFUSED = b'{"kind":"Status","status":"Failure","message":"Forbidden"}'

# How each server answers every path, the error's class, and words of its sentence.
AT_PROBING: dict[str, tuple[Reply, type[SourceError], str]] = {
    "401": (Reply(401, b"Unauthorized", "text/plain"), AuthError, "check token, user or header"),
    "a web page": (Reply(200, b"<!DOCTYPE html><title>Sign in</title>", "text/html"), SourceError, "web page.*check the URL"),
}
SIGN_IN = {"Location": f"https://sso.example/login?state={TOKEN}"}
AT_PROBING["a redirect"] = (Reply(302, headers=SIGN_IN), SourceError, "redirects to https://sso.example/login; give the URL")
AT_READING: dict[str, tuple[Reply, type[SourceError], str]] = {
    "401": (Reply(401, b"Unauthorized", "text/plain"), AuthError, "refuses these credentials"),
    "403": (Reply(403, REFUSED), AuthError, "refuses these credentials .403: Forbidden"),
    "a web page": (Reply(200, b"\n <html>", "text/html"), SourceError, "web page"),
    "not JSON": (Reply(200, b"OK", "text/plain"), SourceError, "did not answer with JSON: OK"),
    "cut JSON": (Reply(200, b'{"status":"success","data":{"resul'), SourceError, "did not answer with JSON"),
    "another API": (Reply(200, b'{"hello": "world"}'), SourceError, "did not answer as Prometheus does"),
    "a list": (Reply(200, b"[1, 2]"), SourceError, "did not answer as Prometheus does"),
    "nothing": (Reply(200, b""), SourceError, "did not answer with JSON: nothing"),
    "an answer that breaks off": (Reply(200, b'{"status":', missing_bytes=500), SourceError, "broke off.*run again"),
    "no such path": (Reply(404, b"404 page not found", "text/plain"), SourceError, "does not serve /api/v1/query"),
    "an error": (failure(500, "internal", "disk on fire"), SourceError, "disk on fire"),
    "bad gzip": (Reply(200, b"no gzip", headers={"Content-Encoding": "gzip"}), SourceError, "run again|check"),
}


@contextmanager
def one_sentence(kind: type[SourceError], words: str) -> Iterator[None]:
    with pytest.raises(SourceError, match=words) as caught:
        yield
    text = str(caught.value)
    assert type(caught.value) is kind or (kind is SourceError and not isinstance(caught.value, AuthError))
    assert caught.value.exit_code == 5
    assert "\n" not in text
    assert len(text) < 500
    assert TOKEN not in text
    assert PASSWORD not in text


def secretly(url: str, **settings: object):  # type: ignore[no-untyped-def]
    return connect(url, http=f"{{bearer_token: {TOKEN}, http_headers: {{X-Api-Key: {{values: [{PASSWORD}]}}}}}}", **settings)


@pytest.mark.parametrize("case", AT_PROBING.values(), ids=AT_PROBING)
def test_probing_fails_with_one_sentence(case: tuple[Reply, type[SourceError], str]) -> None:
    reply, kind, words = case
    with replaying({BUILD_INFO: reply, "/api/v1/read": reply}) as server, one_sentence(kind, words):
        probe(secretly(server.url))


@pytest.mark.parametrize("case", AT_READING.values(), ids=AT_READING)
def test_reading_the_matrix_fails_with_one_sentence(case: tuple[Reply, type[SourceError], str]) -> None:
    reply, kind, words = case
    with replaying({"/api/v1/query": reply}) as server, one_sentence(kind, words):
        read(secretly(server.url), Server("Prometheus", "", "matrix"), [GPU], WINDOW)


def streamed(body: bytes, missing_bytes: int = 0, **headers: str) -> Reply:
    return Reply(200, body, STREAMED, headers, missing_bytes)


WHOLE = frame(chunked(DEVICE, [encode(SAMPLES)]))
DAMAGED: dict[str, tuple[Reply, str]] = {
    "a wrong checksum": (streamed(frame(chunked(DEVICE, [encode(SAMPLES)]), is_damaged=True)), "fails its checksum"),
    "a chunk cut short": (streamed(frame(chunked(DEVICE, [encode(SAMPLES)[:-9]]))), "ends before its last sample"),
    "a chunk without a header": (streamed(frame(chunked(DEVICE, [b"\0"]))), "shorter than its own header"),
    "a frame cut short": (streamed(WHOLE[:-9]), "middle of a frame; run again"),
    "a length without a frame": (streamed(WHOLE + b"\x85"), "middle of a frame; run again"),
    "a connection that breaks off between frames": (streamed(WHOLE, missing_bytes=100), "broke off"),
    "a frame that is no message": (streamed(frame(b"\xff\xff\xff")), "not a stream of chunks"),
    "a web page that claims to be a stream": (streamed(b"<html>" + b"\xff" * 20), "not a stream of chunks|checksum|frame"),
    "chunks that are not XOR": (
        streamed(frame(chunked(DEVICE, [b"\0\1\2"], encoding=4))),
        "encoding 4, not XOR; set prometheus.read_path to matrix",
    ),
    "samples instead of chunks": (
        Reply(200, b"", "application/x-protobuf"),
        "does not stream chunks; set prometheus.read_path to matrix",
    ),
    "bad gzip": (streamed(b"no gzip at all", **{"Content-Encoding": "gzip"}), "run again"),
}


@pytest.mark.parametrize("case", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_stream_is_an_error_and_never_fewer_samples(case: tuple[Reply, str]) -> None:
    reply, words = case
    with replaying(backends.prometheus(reply)) as server, one_sentence(SourceError, words):
        connection = secretly(server.url, read_path="remote-read")
        read(connection, probe(connection), [GPU], WINDOW)


def test_chunks_of_another_encoding_are_read_by_matrix_where_the_path_is_free() -> None:
    routes: Routes = backends.prometheus(streamed(frame(chunked(DEVICE, [b"\0\1\2"], encoding=4))))
    with replaying(routes) as server:
        connection = connect(server.url)
        reading = read(connection, probe(connection), [GPU], WINDOW)
    assert reading.read_path == "matrix"
    assert rows_of(reading.batch) == {frozenset(DEVICE.items()): SAMPLES}


LINE = b'{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","UUID":"GPU-1"},"values":[1,2],"timestamps":[1,2]}\n'
BROKEN_LINES = {
    "a cut line": Reply(200, LINE + LINE[:60]),
    "fewer values than times": Reply(200, LINE.replace(b"[1,2]}", b"[1,2,3]}")),
    "another object": Reply(200, b'{"error":"too many series"}\n'),
    "a connection that breaks off between lines": Reply(200, LINE, missing_bytes=100),
}


@pytest.mark.parametrize("reply", BROKEN_LINES.values(), ids=BROKEN_LINES)
def test_a_damaged_export_of_victoria_metrics_is_an_error(reply: Reply) -> None:
    with replaying({"/api/v1/export": reply}) as server, one_sentence(SourceError, "run again"):
        read(secretly(server.url), Server("VictoriaMetrics", "", "victoria-metrics"), [GPU], WINDOW)


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with one_sentence(SourceError, r"cannot reach http://127\.0\.0\.1:\d+ \(connection refused\); check the address"):
        probe(secretly(f"http://127.0.0.1:{free_port()}", retries=1))


def test_a_server_that_does_not_answer_is_one_sentence() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        one_sentence(SourceError, "no answer within 0.2 s; raise read_timeout_seconds"),
    ):
        probe(secretly(f"http://127.0.0.1:{listener.getsockname()[1]}", read_timeout_seconds=0.2))


def test_a_name_that_is_none_is_one_sentence() -> None:
    with one_sentence(SourceError, "cannot reach http://no-such-host.invalid"):
        probe(secretly("http://no-such-host.invalid"))


@pytest.mark.parametrize("url", ["http://", "prometheus:9090", "http://[::1", "ftp://127.0.0.1", "http://h:port", ""])
def test_an_address_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="is not the URL of a server; write it like"):
        secretly(url)


def test_a_password_in_the_address_is_used_and_not_shown() -> None:
    with replaying({BUILD_INFO: Reply(401, b"Unauthorized", "text/plain")}) as server:
        url = server.url.replace("//", f"//me:{PASSWORD}@")
        with one_sentence(AuthError, "refuses"):
            probe(connect(url))
        assert server.requests[0].headers["Authorization"] == "Basic bWU6aHVudGVyMmh1bnRlcjI="  # me:hunter2hunter2
    with one_sentence(SourceError, "cannot reach"):
        probe(connect(f"http://me:{PASSWORD}@127.0.0.1:{free_port()}"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/?token=hunter2", "http://127.0.0.1:1#hunter2", "http:?hunter2"])
def test_a_token_in_the_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(url)
    assert "hunter2" not in str(caught.value)


def test_a_password_in_a_broken_address_is_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        connect(f"http//me:{PASSWORD}@127.0.0.1:1")
    assert PASSWORD not in str(caught.value)


def test_a_refusal_whose_body_breaks_off_is_still_a_refusal() -> None:
    broken = Reply(403, b"Forb", "text/plain", missing_bytes=9)
    routes = {"/api/v1/read": broken, "/api/v1/export": Reply(503, b"", "text/plain", missing_bytes=9)}
    with replaying(routes) as server:
        with one_sentence(AuthError, "403"):
            read(secretly(server.url), Server("Prometheus", "", "remote-read"), [GPU], WINDOW)
        with one_sentence(SourceError, "503"):
            read(secretly(server.url, retries=1), Server("", "", "victoria-metrics"), [GPU], WINDOW)


def test_a_native_histogram_has_no_samples() -> None:
    histogram = {"metric": DEVICE, "histograms": [[1, {"count": "1", "sum": "1"}]]}
    with replaying({"/api/v1/query": success({"resultType": "matrix", "result": [histogram]})}) as server:
        reading = read(connect(server.url), Server("Prometheus", "", "matrix"), [GPU], WINDOW)
    assert reading.batch.sample_count == 0
