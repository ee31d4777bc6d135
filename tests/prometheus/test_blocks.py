"""Blocks give the lake that their server gives, whichever generation wrote them; what cannot be read is refused by name."""

from __future__ import annotations

import json
import shutil
import struct
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import requests

from bench.server import remote_write
from gpureport.cli import main
from gpureport.collect.export import Exported, ExportSettings
from gpureport.collect.export.blocks import export_blocks
from gpureport.collect.file_import import read_openmetrics
from gpureport.collect.sources.blocks import Index, tombstones
from gpureport.config import Prometheus
from gpureport.lake import open_lake
from gpureport.values.catalog import load_catalog
from gpureport.values.errors import SourceError

from .conftest import RECORDING
from .programs import fill_blocks, program, prometheus
from .samples import text_of
from .test_paths import DAY, SOURCE, TABLES, assert_same_rows, exported_lake

DELETED = 'DCGM_FI_DEV_POWER_USAGE{gpu="0"}'


def exported(blocks: Path, lake: Path, day: date = DAY, **match: str) -> Exported:
    settings = ExportSettings(Prometheus(match=match), {}, load_catalog(), "lab", keep_raw=True, samples_per_group=1)
    return export_blocks(settings, blocks, lake, day)


@pytest.mark.parametrize("is_sent", [True, False], ids=["blocks that it wrote", "blocks with tombstones"])
@pytest.mark.parametrize("binary", ["PROMETHEUS_BIN", "PROMETHEUS3_BIN"])
def test_a_servers_snapshot_gives_the_lake_that_the_server_gives(
    binary: str, is_sent: bool, blocks: Path, tmp_path: Path
) -> None:
    folder, flags = tmp_path / "server", ("--web.enable-admin-api", "--web.enable-remote-write-receiver")
    with prometheus(program(binary), None if is_sent else blocks, folder, *flags) as url:
        if is_sent:
            remote_write(list(read_openmetrics(RECORDING)), f"{url}/api/v1/write")
        admin = f"{url}/api/v1/admin/tsdb"
        since = {"match[]": DELETED, "start": "2026-11-20T23:52:00Z", "end": "2026-11-20T23:54:00Z"}
        requests.post(f"{admin}/delete_series", params=since, timeout=60).raise_for_status()
        exported_lake(url, "remote-read", tmp_path / "by-server")
        name = requests.post(f"{admin}/snapshot", timeout=60).json()["data"]["name"]
    snapshot = folder / "data" / "snapshots" / name
    assert exported(snapshot, tmp_path / "by-blocks").sample_count > 0
    assert any(tombstones(each) for each in snapshot.glob("*/tombstones")) is not is_sent
    assert_same_rows(tmp_path / "by-blocks", tmp_path / "by-server", {**TABLES, **SOURCE, "series": "*"})


@pytest.mark.parametrize("binary", ["PROMETHEUS_BIN", "PROMETHEUS3_BIN"])
def test_of_two_blocks_with_the_same_times_the_later_one_has_the_value(binary: str, tmp_path: Path) -> None:
    """As after a back-fill of corrected values: 100 W from 12:00 to 12:50, and 200 W from 12:25 on."""
    labels, noon_ms = {"__name__": "DCGM_FI_DEV_POWER_USAGE", "UUID": "GPU-1", "Hostname": "n1"}, 1_795_176_000_000
    texts = [
        text_of([(labels, [(noon_ms + step * 30_000, watts) for step in range(start, start + 100)])])
        for watts, start in (("100", 0), ("200", 50))
    ]
    fill_blocks(tmp_path / "blocks", *texts)
    with prometheus(program(binary), tmp_path / "blocks", tmp_path / "server") as url:
        exported_lake(url, "remote-read", tmp_path / "by-server")
    exported(tmp_path / "blocks", tmp_path / "by-blocks")
    assert_same_rows(tmp_path / "by-blocks", tmp_path / "by-server", {"device_sample": "*", "raw_sample": "*"})


def with_meta(blocks: Path, copy: Path, **thanos: object) -> Path:
    """A copy of blocks that say of themselves what a sidecar adds."""
    shutil.copytree(blocks, copy)
    for path in copy.glob("*/meta.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "thanos": thanos}))
    return copy


def test_downsampled_blocks_are_refused(blocks: Path, tmp_path: Path) -> None:
    place = with_meta(blocks, tmp_path / "blocks", downsample={"resolution": 300_000})
    with pytest.raises(SourceError, match=r"block \w+ of .* is downsampled to 300 s: it has no raw samples"):
        exported(place, tmp_path / "lake")
    shutil.copytree(blocks, place, dirs_exist_ok=True)  # the same names: now of full resolution
    assert exported(place, tmp_path / "lake").sample_count > 0


def test_blocks_of_another_cluster_are_left_out(blocks: Path, tmp_path: Path) -> None:
    place = with_meta(blocks, tmp_path / "blocks", labels={"cluster": "east"})
    assert exported(place, tmp_path / "lake", cluster="east").sample_count > 0
    with pytest.raises(SourceError, match=f"has no series of the catalog for {DAY}, cluster=west; check"):
        exported(place, tmp_path / "other", cluster="west")


@pytest.mark.parametrize(
    "text",
    [
        "[prometheus]\ncluster_label = 'region'",
        "[[clusters]]\nname = 'east'\nprometheus.match.region = 'east'\n[[clusters]]\nname = 'west'",
    ],
    ids=["by label", "listed"],
)
def test_blocks_of_several_clusters_are_read_for_the_one_that_is_named(
    text: str, blocks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the others are no part of it, nor is any of a cluster that nobody named."""
    alone = exported(blocks, tmp_path / "alone")
    place = with_meta(blocks, tmp_path / "blocks", labels={"region": "east"})
    for path in with_meta(blocks, tmp_path / "others", labels={"region": "west"}).iterdir():
        path.rename(place / f"{path.name}-west")
    (tmp_path / "several.toml").write_text(text)
    arguments = ["--config", str(tmp_path / "several.toml"), "export", "--blocks", str(place), "--date", str(DAY)]
    now = datetime(2026, 11, 23, tzinfo=UTC)
    assert main([*arguments, "--lake", str(tmp_path / "lake")], environ={}, now=now) == 2
    assert "--cluster" in capsys.readouterr().err
    assert main([*arguments, "--lake", str(tmp_path / "lake"), "--cluster", "east"], environ={}, now=now) == 0
    [held] = open_lake(tmp_path / "lake").partitions("source")
    assert held.cluster == "east"
    assert f"{alone.sample_count:,} samples of {alone.series_count:,} series" in capsys.readouterr().err


def test_a_shard_of_mimirs_compactor_and_the_block_that_it_was_made_of_hold_the_same_series(blocks: Path, tmp_path: Path) -> None:
    shard = with_meta(blocks, tmp_path / "blocks", labels={"__org_id__": "lab", "__compactor_shard_id__": "1_of_1"})
    for path in blocks.glob("*/meta.json"):
        shutil.copytree(path.parent, shard / f"{path.parent.name}-source")
    both, alone = exported(shard, tmp_path / "both"), exported(blocks, tmp_path / "alone")
    assert (both.series_count, both.sample_count) == (alone.series_count, alone.sample_count)


def test_a_folder_without_blocks_and_a_damaged_block_are_named(blocks: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no blocks; name the folder that has them"):
        exported(tmp_path, tmp_path / "lake")
    place = tmp_path / "blocks"
    shutil.copytree(blocks, place)
    for path in place.glob("*/chunks/*"):
        path.write_bytes(path.read_bytes()[:64])
    with pytest.raises(SourceError, match=r"block \w+ of .* is damaged"):
        exported(place, tmp_path / "lake")
    assert not list((tmp_path / "lake").rglob("*.parquet"))


def test_tombstones_that_are_cut_off_are_named(blocks: Path, tmp_path: Path) -> None:
    """A deleted range is three numbers: series, first and last time. Here the last one is cut off before the checksum."""
    place = tmp_path / "blocks"
    shutil.copytree(blocks, place)
    for meta in place.glob("*/meta.json"):
        meta.with_name("tombstones").write_bytes(b"\x01\x30\xba\x30\x01" + b"\x05\x02" + bytes(4))
    with pytest.raises(SourceError, match=r"block \w+ of .* is damaged"):
        exported(place, tmp_path / "lake")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ('{"version": 1}', "01/meta.json is damaged .'minTime'.; remove the block"),
        ('{"version": 1, "minTime": 0, "maxTime": 1, "thanos": {"labels": ["lab"]}}', "is damaged"),
        ('{"version": 1, "minTime": "soon", "maxTime": 1}', "is damaged"),
        ('{"version": 2}', "has version 2"),
        ("[]", "is damaged"),
        ('{"version": 1, "minTime": 0, "maxTime": 1, "thanos": null}', "has no series"),
    ],
)
def test_a_block_that_does_not_say_what_it_is_of_is_named(tmp_path: Path, meta: str, message: str) -> None:
    (tmp_path / "01").mkdir()
    (tmp_path / "01" / "meta.json").write_text(meta)
    with pytest.raises(SourceError, match=message):
        exported(tmp_path, tmp_path / "lake")


def test_version_1_of_an_index_names_symbols_by_their_place(tmp_path: Path) -> None:
    """Of Prometheus before 2.3, by hand: one series {__name__="up"} with one chunk at 1000..2000, from the format's page."""
    name = b"\x08__name__" + b"\x02up"
    symbols = struct.pack(">II", len(name) + 4, 2) + name + b"\0\0\0\0"
    at = 5 + 8
    series = bytes([1, at, at + 9, 1, *varint(2 * 1000), *varint(1000), *varint(8)])
    series_at = 5 + len(symbols)
    body = symbols + bytes([len(series)]) + series + b"\0\0\0\0"
    postings_at = 5 + len(body)
    body += struct.pack(">III", 8, 1, series_at) + b"\0\0\0\0"
    table_at = 5 + len(body)
    entry = b"\x02" + name + bytes([postings_at])
    body += struct.pack(">II", len(entry) + 4, 1) + entry + b"\0\0\0\0"
    path = tmp_path / "index"
    path.write_bytes(b"\xba\xaa\xd7\x00\x01" + body + struct.pack(">6Q", 5, series_at, 0, 0, 0, table_at) + b"\0\0\0\0")
    [found] = Index(path).series_of("__name__", {"up"})
    assert (found.labels, [tuple(chunk) for chunk in found.chunks]) == ({"__name__": "up"}, [(1000, 2000, 0, 8)])


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7]) if number > 0x7F else bytes([number])
