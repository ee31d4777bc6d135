"""Samples that lack labels, or come in an odd order, are taken as far as they go."""

from __future__ import annotations

from pathlib import Path

import pytest
from lake_rows import seen
from report_tables import report_tables

from gpureport.cli import main
from gpureport.collect.file_import import read_openmetrics

from .samples import DAY, GOOD, NOON, NOW, metrics, scrape, write


def test_labels_that_lack_and_clocks_that_differ_cost_no_more_than_what_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a UUID a value is nobody's and is left out aloud; without workload labels the device is there, its owner is not.

    GPU-c is used at 0, 60, …; free seven seconds later. Used holds from 0, free from 7: both for 593 s of the 607 s seen.
    """
    bare = [f'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-b"}} 100 {NOON + 60 * n}' for n in range(5)]
    nobodys = [f'DCGM_FI_DEV_POWER_USAGE{{gpu="0"}} 100 {NOON + 60 * n}' for n in range(5)]
    used = [scrape("DEV_FB_USED", 60 * n, 3000, "GPU-c") for n in range(10)]
    free = [scrape("DEV_FB_FREE", 60 * n + 7, 1000, "GPU-c") for n in range(10)]
    lake = tmp_path / "lake"
    file = write(tmp_path / "half.txt", metrics(*GOOD, *bare, *nobodys, *used, *free))
    assert main(["import", str(file), "--lake", str(lake)], environ={}, now=NOW) == 0
    printed = capsys.readouterr().err
    assert "DCGM_FI_DEV_POWER_USAGE" in printed
    assert "UUID" in printed
    assert main(["compute", "--date", DAY, "--lake", str(lake)], environ={}, now=NOW) == 0
    with report_tables(lake, DAY, now=NOW) as found:
        watts = found.rows("select device_uuid, power_watts_avg from report.device")
        assert dict(watts) == {"GPU-a": 104.5, "GPU-b": 100, "GPU-c": None}
        figures = "memory_used_ratio_avg, observed_seconds, memory_seen_seconds"
        memory = dict(found.rows(f"select device_uuid, ({figures}) from report.container_saturation"))
        assert memory.keys() == {"GPU-a", "GPU-c"}
        assert memory["GPU-c"] == (0.75, 607, 593)


@pytest.mark.parametrize("labels", ["", '{UUID="GPU-a"}', '{le="a} {\\"b"}'])
@pytest.mark.parametrize("exemplar", ["", ' # {trace_id="a"} 0.5 1'])
def test_a_native_histogram_among_the_samples_is_left_out(labels: str, exemplar: str, tmp_path: Path) -> None:
    """As in blocks and in a server's answer: it has no value of one instant."""
    value = "{count:4,sum:6,schema:0,zero_threshold:0.001,zero_count:1,positive_spans:[0:2],positive_buckets:[2,1]}"
    histogram = f"wait_seconds{labels} {value} {NOON}{exemplar}"
    file = write(tmp_path / "odd.txt", metrics(GOOD[0], histogram, *GOOD[1:]))
    assert [batch.sample_count for batch in read_openmetrics(file)] == [len(GOOD)]


def test_samples_out_of_order_and_twice_make_the_same_lake(tmp_path: Path) -> None:
    lakes = []
    for name, lines in (("sorted", GOOD), ("mixed", [*GOOD[::-1], *GOOD[5:15], *GOOD[::3]])):
        lakes.append(tmp_path / name)
        file = write(tmp_path / "metrics.txt", metrics(*lines))
        assert main(["import", str(file), "--lake", str(lakes[-1])], environ={}, now=NOW) == 0
    assert seen(lakes[0]) == seen(lakes[1])


def test_a_byte_order_mark_is_no_sample(tmp_path: Path) -> None:
    plain, marked = (tmp_path / name for name in ("plain.txt", "marked.txt"))
    plain.write_text(metrics(*GOOD), encoding="utf-8")
    marked.write_text(metrics(*GOOD), encoding="utf-8-sig")
    (found,), (expected,) = (list(read_openmetrics(each)) for each in (marked, plain))
    assert found.labels == expected.labels
