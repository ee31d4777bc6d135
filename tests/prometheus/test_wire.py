"""What the compiled pass finds in remote read's messages is what protobuf's own library reads in them."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.sources.prometheus.remote_read import XOR_ENCODING, ChunkedReadResponse, OtherEncodingError, batch_of
from gpureport.collect.sources.prometheus.wire import DAMAGED, layout
from gpureport.values.errors import SourceError
from gpureport.values.series import Labels
from gpureport.values.window import Window, parse_instant

from .samples import rows_of
from .xor_oracle import encode

WINDOW = Window(parse_instant("2026-11-20T00:00:00Z"), parse_instant("2026-11-21T00:00:00Z"))
NAMES = st.sampled_from(["UUID", "__name__", "pod", "über", "__name", "__name__2"])
LABELS = st.dictionaries(NAMES, st.sampled_from(["", "a", "b", "ü" * 70]), max_size=6)
Series = tuple[Labels, list[bytes]]


def message(series: list[Series], encoding: int = XOR_ENCODING) -> bytes:
    found = ChunkedReadResponse(query_index=7)
    for labels, chunks in series:
        added = found.chunked_series.add()
        for name, value in labels.items():
            added.labels.add(name=name, value=value)
        for data in chunks:
            added.chunks.add(min_time_ms=-5, max_time_ms=1 << 40, type=encoding, data=data)
    return bytes(found.SerializeToString())


def chunk(count: int) -> bytes:
    return encode([(WINDOW.start_ms + 30_000 * at, at) for at in range(count)])


@settings(max_examples=200)
@given(st.lists(st.lists(st.tuples(LABELS, st.lists(st.integers(0, 300), max_size=3)), max_size=4), max_size=3))
def test_labels_and_samples_are_those_that_were_sent(messages: list[list[tuple[Labels, list[int]]]]) -> None:
    sent = [[(labels, [chunk(count) for count in counts]) for labels, counts in series] for series in messages]
    batch = batch_of([message(series) for series in sent], WINDOW, {}, "http://server")
    everything = [each for series in messages for each in series]
    assert list(batch.labels) == [labels for labels, _ in everything]
    assert np.diff(batch.offsets).tolist() == [sum(counts) for _, counts in everything]
    assert batch.values.view(np.uint64).tolist() == [at for _, counts in everything for count in counts for at in range(count)]


def test_a_label_that_the_server_adds_is_left_out_and_a_series_own_of_another_value_stays() -> None:
    sent = [({"__name__": "a", "cluster": "x"}, [chunk(1)]), ({"__name__": "a", "cluster": "y"}, [chunk(1)])]
    batch = batch_of([message(sent)], WINDOW, {"cluster": "x"}, "http://server")
    assert list(batch.labels) == [{"__name__": "a"}, {"__name__": "a", "cluster": "y"}]


def test_fields_of_a_later_version_are_stepped_over() -> None:
    later = b"\x78\x96\x01" + b"\x79" + b"8octets!" + b"\x7a\x02hi" + b"\x7d" + b"4oct"
    batch = batch_of([later + message([({"__name__": "a"}, [chunk(2)])]) + later], WINDOW, {}, "http://server")
    assert (list(batch.labels), batch.sample_count) == ([{"__name__": "a"}], 2)


def test_another_encoding_is_named() -> None:
    with pytest.raises(OtherEncodingError, match="encoding 4"):
        batch_of([message([({"__name__": "a"}, [chunk(1)])], encoding=4)], WINDOW, {}, "http://server")


@pytest.mark.parametrize("encoding", [2, 3])
def test_native_histograms_are_skipped_and_their_neighbors_are_read(encoding: int) -> None:
    found = ChunkedReadResponse.FromString(message([({"__name__": "a"}, [chunk(1), chunk(2)]), ({"__name__": "b"}, [chunk(3)])]))
    mixed = found.chunked_series[0].chunks[0]
    mixed.type, mixed.data = encoding, b"\0\1\2"
    histogram = message([({"__name__": "h"}, [chunk(4)])], encoding)
    batch = batch_of([histogram, found.SerializeToString()], WINDOW, {}, "http://server")
    expected = batch_of([message([({"__name__": "a"}, [chunk(2)]), ({"__name__": "b"}, [chunk(3)])])], WINDOW, {}, "")
    assert rows_of(batch) == rows_of(expected)


def test_text_that_is_no_utf_8_is_no_stream_of_chunks() -> None:
    sent = message([({"__name__": "abcd"}, [chunk(1)])]).replace(b"abcd", b"\xff\xff\xff\xff")
    with pytest.raises(SourceError, match="not a stream of chunks"):
        batch_of([sent], WINDOW, {}, "http://server")


@settings(max_examples=300)
@given(st.data())
def test_octets_that_protobuf_refuses_are_refused(data: st.DataObject) -> None:
    whole = message([({"__name__": "a", "pod": "b"}, [chunk(3), chunk(1)]), ({"pod": "c"}, [])])
    at, octet = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 255))
    changed = data.draw(st.sampled_from([whole[:at], whole[:at] + bytes([octet]) + whole[at + 1 :]]))
    found = layout(np.frombuffer(changed + b"\0" * 8, np.uint8), np.array([len(changed)]), XOR_ENCODING)
    try:
        read = ChunkedReadResponse.FromString(changed)
    except DecodeError:
        return  # ours does not look into what it has no use for, and a label's text is looked at later
    kinds = {each.type for series in read.chunked_series for each in series.chunks}
    if kinds <= {XOR_ENCODING} and found.fault != DAMAGED:
        assert len(found.series) == len(read.chunked_series)
        assert [changed[start:end] for start, end in found.chunks.tolist()] == [
            each.data for series in read.chunked_series for each in series.chunks
        ]
