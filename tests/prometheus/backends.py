"""Routes of servers that hold one GPU's samples, as the real ones answer."""

from __future__ import annotations

from collections.abc import Sequence

import google_crc32c

from gpureport.collect.sources.prometheus.remote_read import ChunkedReadResponse
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window, from_ms

from .replay import BUILD_INFO, Answer, Reply, Request, Routes, failure, success
from .samples import Sample, bits
from .xor_oracle import encode

START_MS = 1_795_132_800_000  # 2026-11-20T00:00:00Z
STEP_MS = 30_000
DEVICE = {METRIC_LABEL: "DCGM_FI_DEV_GPU_UTIL", "Hostname": "n1", "UUID": "GPU-1", "gpu": "0", "modelName": "NVIDIA H200"}
SAMPLES: list[Sample] = [(START_MS + n * STEP_MS, bits(float(n % 100))) for n in range(120)]
WINDOW = Window(from_ms(START_MS), from_ms(START_MS + 120 * STEP_MS))
STREAMED = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"


def matrix(times_ms: Sequence[int], **more: object) -> Reply:
    """The device's samples at these times, as an instant query of a range selector answers."""
    values = [[time_ms / 1000, str(float((time_ms - START_MS) // STEP_MS % 100))] for time_ms in times_ms]
    result = [{"metric": DEVICE, "values": values}] if values else []
    return success({"resultType": "matrix", "result": result}, **more)


def query(**more: object) -> Answer:
    """Instant queries: the left-open range of a selector, or how many samples an hour holds."""

    def answer(request: Request) -> Reply:
        text, at_ms = request.form["query"], round(float(request.form["time"]) * 1000)
        if text.startswith("max("):
            return success({"resultType": "vector", "result": [{"metric": {}, "value": [at_ms / 1000, "120"]}]}, **more)
        length_ms = int(text.rpartition("[")[2].removesuffix("ms]"))
        return matrix([time_ms for time_ms, _ in SAMPLES if at_ms - length_ms < time_ms <= at_ms], **more)

    return answer


def refusing_above(longest_ms: int, status: int, kind: str, message: str) -> Answer:
    """A server that answers no range longer than this."""

    def answer(request: Request) -> Reply:
        length_ms = int(request.form["query"].rpartition("[")[2].removesuffix("ms]"))
        return query()(request) if length_ms <= longest_ms else failure(status, kind, message)

    return answer


def frame(message: bytes, is_damaged: bool = False) -> bytes:
    """Length, checksum and message of a streamed remote read."""
    length, octets = len(message), bytearray()
    while length >= 128:
        octets.append(128 | length & 127)
        length >>= 7
    checksum = google_crc32c.value(message) ^ is_damaged
    return bytes([*octets, length]) + checksum.to_bytes(4, "big") + message


def chunked(labels: Labels, chunks: Sequence[bytes], encoding: int = 1) -> bytes:
    """The message of one series and its chunks."""
    message = ChunkedReadResponse()
    series = message.chunked_series.add()
    for name, value in labels.items():
        series.labels.add(name=name, value=value)
    for chunk in chunks:
        series.chunks.add(type=encoding, data=chunk)
    return bytes(message.SerializeToString())


def prometheus(read: Reply | None = None) -> Routes:
    """Prometheus with remote read of the device's one chunk, unless told to answer it otherwise."""
    return {
        BUILD_INFO: success({"version": "2.99.0"}),
        "/api/v1/status/config": success({"yaml": "global: {}\n"}),
        "/api/v1/series": success([DEVICE]),
        "/api/v1/query": query(),
        "/api/v1/read": read or Reply(body=frame(chunked(DEVICE, [encode(SAMPLES)])), content_type=STREAMED),
    }


def thanos(*warnings: str) -> Routes:
    """Thanos Query: no remote read, an empty version, and success with warnings when a store is down."""
    more = {"warnings": list(warnings)} if warnings else {}
    return {BUILD_INFO: success({"version": ""}), "/api/v1/series": success([DEVICE], **more), "/api/v1/query": query(**more)}
