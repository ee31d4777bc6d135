"""Remote read's protobuf messages, built at run time from their field numbers (prometheus/prompb)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gpureport.collect.sources.prometheus.matcher import Matcher

_MATCHER_TYPE = {"=": 0, "!=": 1, "=~": 2, "!~": 3}
_STREAMED_XOR_CHUNKS = 1
XOR_ENCODING = 1

_Field = descriptor_pb2.FieldDescriptorProto
_FIELDS: dict[str, list[tuple[str, int, int, bool, str]]] = {
    # message: (field, number, type, repeated, type name)
    "LabelMatcher": [
        ("type", 1, _Field.TYPE_INT32, False, ""),
        ("name", 2, _Field.TYPE_STRING, False, ""),
        ("value", 3, _Field.TYPE_STRING, False, ""),
    ],
    "Query": [
        ("start_timestamp_ms", 1, _Field.TYPE_INT64, False, ""),
        ("end_timestamp_ms", 2, _Field.TYPE_INT64, False, ""),
        ("matchers", 3, _Field.TYPE_MESSAGE, True, "LabelMatcher"),
    ],
    "ReadRequest": [
        ("queries", 1, _Field.TYPE_MESSAGE, True, "Query"),
        ("accepted_response_types", 2, _Field.TYPE_INT32, True, ""),
    ],
    "Label": [("name", 1, _Field.TYPE_STRING, False, ""), ("value", 2, _Field.TYPE_STRING, False, "")],
    "Chunk": [
        ("min_time_ms", 1, _Field.TYPE_INT64, False, ""),
        ("max_time_ms", 2, _Field.TYPE_INT64, False, ""),
        ("type", 3, _Field.TYPE_INT32, False, ""),
        ("data", 4, _Field.TYPE_BYTES, False, ""),
    ],
    "ChunkedSeries": [
        ("labels", 1, _Field.TYPE_MESSAGE, True, "Label"),
        ("chunks", 2, _Field.TYPE_MESSAGE, True, "Chunk"),
    ],
    "ChunkedReadResponse": [
        ("chunked_series", 1, _Field.TYPE_MESSAGE, True, "ChunkedSeries"),
        ("query_index", 2, _Field.TYPE_INT64, False, ""),
    ],
}
_PACKAGE = "gpureport.remote"


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="gpureport_remote.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated, type_name in fields:
            label = _Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if type_name:
                added.type_name = f".{_PACKAGE}.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_MESSAGES = _build()
ChunkedReadResponse = _MESSAGES["ChunkedReadResponse"]
ChunkedSeries = _MESSAGES["ChunkedSeries"]


def read_request(matchers: Sequence[Matcher], start_ms: int, end_ms: int) -> bytes:
    """A snappy-compressed request for XOR chunks of [start_ms, end_ms], both ends included as the protocol has it."""
    request = _MESSAGES["ReadRequest"]()
    query = request.queries.add(start_timestamp_ms=start_ms, end_timestamp_ms=end_ms)
    for matcher in matchers:
        query.matchers.add(type=_MATCHER_TYPE[matcher.operator], name=matcher.name, value=matcher.value)
    request.accepted_response_types.append(_STREAMED_XOR_CHUNKS)
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))
