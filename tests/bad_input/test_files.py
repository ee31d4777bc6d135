"""Files that cannot be read, or hold no samples."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from .samples import GOOD, NOON, SOURCE, Refused, metrics, scrape, write


def test_a_file_that_is_not_there_is_a_source_error(refused: Refused, tmp_path: Path) -> None:
    assert "nothere.txt" in refused(SOURCE, "import", tmp_path / "nothere.txt")
    assert str(tmp_path) in refused(SOURCE, "import", tmp_path)


def test_one_bad_file_among_good_ones_imports_none(refused: Refused, tmp_path: Path) -> None:
    more = write(tmp_path / "more.txt", metrics(scrape("DEV_POWER_USAGE", 900, 1)))
    assert "nothere.txt" in refused(SOURCE, "import", more, tmp_path / "nothere.txt")


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.52, 0.54, 0.9, 0.999])
def test_a_file_cut_off_anywhere_is_a_source_error(share: float, refused: Refused, tmp_path: Path) -> None:
    text = metrics(*(scrape("DEV_POWER_USAGE", 900 + n, n) for n in range(50)))
    cut = write(tmp_path / "cut.txt", text[: int(len(text) * share)])
    assert "cut.txt" in refused(SOURCE, "import", cut)


def test_a_gzip_cut_in_half_is_a_source_error(refused: Refused, tmp_path: Path) -> None:
    text = metrics(*(scrape("DEV_POWER_USAGE", 900 + n, n * n % 97) for n in range(500)))
    packed = gzip.compress(text.encode())
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(packed[: len(packed) // 2])
    assert "cut.txt.gz" in refused(SOURCE, "import", cut)
    cut.write_bytes(text.encode())
    assert "cut.txt.gz" in refused(SOURCE, "import", cut)


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a"} 1',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a"} 1 1795176000000',
        'DCGM_FI_DEV_POWER_USAGE {UUID="GPU-a"} 1',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a"} 1 nan',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a"} watts 1795176000',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a} 1 1795176000',
        "DCGM_FI_DEV_POWER_USAGE{UUID=GPU-a} 1 1795176000",
        '{"status":"success","data":{"resultType":"matrix"}}',
        "<html><body>404 page not found</body></html>",
    ],
)
def test_a_line_that_is_no_sample_is_a_source_error(line: str, refused: Refused, tmp_path: Path) -> None:
    assert "odd.txt" in refused(SOURCE, "import", write(tmp_path / "odd.txt", metrics(*GOOD[:3], line)))


def test_bytes_that_are_no_text_are_a_source_error(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "noise.txt"
    file.write_bytes(bytes(range(256)) * 8)
    assert "noise.txt" in refused(SOURCE, "import", file)


@pytest.mark.parametrize("text", ["", "# EOF\n", "\n\n# EOF\n"])
def test_a_file_without_samples_is_a_source_error(text: str, refused: Refused, tmp_path: Path) -> None:
    assert "none.txt" in refused(SOURCE, "import", write(tmp_path / "none.txt", text))


def test_a_file_of_unknown_metrics_is_a_source_error(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "other.txt", metrics(f"node_load1 1 {NOON}", f"up 1 {NOON}"))
    assert "other.txt" in refused(SOURCE, "import", file)


def test_a_file_whose_device_values_name_no_device_is_a_source_error(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "nodevice.txt", metrics(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="n1"}} 100 {NOON}'))
    assert "UUID" in refused(SOURCE, "import", file)


def test_samples_of_the_future_are_a_source_error(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "ahead.txt", metrics(*GOOD, scrape("DEV_POWER_USAGE", 10 * 86_400, 1)))
    sentence = refused(SOURCE, "import", file)
    assert "ahead.txt" in sentence
    assert "clock" in sentence


def test_a_folder_of_replies_that_is_not_there_is_named(refused: Refused, tmp_path: Path) -> None:
    assert "nowhere is not a folder" in refused(SOURCE, "import", "--kubernetes", tmp_path / "nowhere")
