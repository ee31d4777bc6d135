"""What a hostile day brings: each gives one sentence that says what to do, the right exit code, and the lake as it was.

What Prometheus may do wrong is in ``prometheus/``; this is about files, dates, disks and lakes.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from golden_case import report_rows

from gpureport.cli import main

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
USAGE, CONFIG, FAILURE, SOURCE = 2, 2, 1, 5
DAY = "2026-11-20"
Refused = Callable[..., str]


def metrics(*lines: str) -> str:
    return "\n".join([*lines, "# EOF\n"])


def scrape(metric: str, seconds: float, value: float, uuid: str = "GPU-a", more: str = "") -> str:
    labels = f'UUID="{uuid}",Hostname="n1",namespace="ns",pod="p",container="c"{more}'
    return f"DCGM_FI_{metric}{{{labels}}} {value} {NOON + seconds:.3f}"


GOOD = [scrape("DEV_POWER_USAGE", 60 * n, 100 + n) for n in range(10)] + [
    scrape("PROF_GR_ENGINE_ACTIVE", 60 * n, n / 10) for n in range(10)
]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a day of samples and facts."""
    folder = tmp_path_factory.mktemp("pristine")
    file = folder / "good.txt"
    file.write_text(metrics(*GOOD))
    for arguments in (["import", str(file), "--cluster", "lab"], ["compute", "--date", DAY]):
        assert main([*arguments, "--lake", str(folder / "lake")], environ={}, now=NOW) == 0
    return folder / "lake"


@pytest.fixture
def lake(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "lake"))


@pytest.fixture
def refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail in one sentence and leave the lake alone; the sentence."""

    def run(code: int, *arguments: str | Path, at: Path = lake, environ: dict[str, str] | None = None) -> str:
        before = digests(at)
        capsys.readouterr()
        found = main([*map(str, arguments), "--lake", str(at)], environ=environ or {}, now=NOW)
        sentence = capsys.readouterr().err
        assert_one_sentence(sentence)
        assert found == code, sentence
        assert digests(at) == before
        return sentence

    return run


def assert_one_sentence(text: str) -> None:
    assert text.startswith("gpureport: "), text
    assert text.count("\n") == 1, text
    assert "Traceback" not in text


def digests(lake: Path) -> dict[str, str] | None:
    """The digest of every file by path, None where there is no lake; the empty lock file is no content."""
    if not lake.is_dir():
        return None
    files = sorted(path for path in lake.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(lake)): sha256(path.read_bytes()).hexdigest() for path in files}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# Dates and windows


@pytest.mark.parametrize("date", ["2026-13-40", "yesterday", "20.11.2026", ""])
def test_a_date_that_is_none_is_a_usage_error(date: str, refused: Refused) -> None:
    if date:
        assert "2026-11-20" in refused(USAGE, "compute", "--date", date)
    assert "2026-11-20T23:51:40Z" in refused(USAGE, "report", "--since", date)


def test_a_day_that_has_not_begun_cannot_be_computed(refused: Refused) -> None:
    assert "--date" in refused(USAGE, "compute", "--date", "2027-01-01")


def test_a_day_that_the_lake_does_not_hold_is_named(refused: Refused, tmp_path: Path) -> None:
    assert "2026-11-18" in refused(FAILURE, "compute", "--date", "2026-11-18")
    assert "2027-11-20" in refused(FAILURE, "report", "--since", "2027-11-20", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("until", [DAY, "2026-11-19", "2026-11-19T23:59:59Z"])
def test_an_empty_window_is_a_usage_error(until: str, refused: Refused, tmp_path: Path) -> None:
    assert "empty" in refused(USAGE, "report", "--since", DAY, "--until", until, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_time_without_a_zone_is_a_usage_error(refused: Refused) -> None:
    assert "add Z" in refused(USAGE, "report", "--since", "2026-11-20T10:00:00")


def test_the_last_day_of_the_calendar_is_no_crash(refused: Refused) -> None:
    refused(USAGE, "report", "--since", "9999-12-31")


def test_days_that_were_imported_but_not_computed_are_named(refused: Refused, lake: Path, tmp_path: Path) -> None:
    shutil.rmtree(lake / "facts")
    sentence = refused(FAILURE, "report", "--since", DAY, "--out", tmp_path / "out")
    assert DAY in sentence
    assert "gpureport compute" in sentence


def test_facts_of_another_threshold_are_not_reported_as_this_one(refused: Refused, tmp_path: Path) -> None:
    config = write(tmp_path / "half.toml", "[saturation]\nmemory_threshold_ratio = 0.5\n")
    sentence = refused(FAILURE, "--config", config, "report", "--since", DAY, "--out", tmp_path / "out")
    assert DAY in sentence
    assert "compute" in sentence


# Lakes


@pytest.mark.parametrize("command", [["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]])
def test_a_lake_that_is_not_there_is_named_and_not_made(command: list[str], refused: Refused, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert str(nowhere) in refused(FAILURE, *command, at=nowhere)
    assert not nowhere.exists()


COMMANDS = [["import", "good.txt"], ["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_lake_of_a_newer_schema_is_left_alone(
    command: list[str], refused: Refused, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.txt", metrics(*GOOD))
    write(lake / "gpureport-lake.json", json.dumps({"schema_version": 99}))
    assert "upgrade gpureport" in refused(FAILURE, *command)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": null}', '{"schema_version": "x"}'])
def test_a_lake_with_a_broken_marker_is_left_alone(text: str, refused: Refused, lake: Path) -> None:
    write(lake / "gpureport-lake.json", text)
    assert "gpureport-lake.json" in refused(FAILURE, "compute", "--date", DAY)


def test_a_folder_that_is_no_lake_is_not_read_as_one(refused: Refused, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "notes.txt", "mine")
    assert "no gpureport lake" in refused(FAILURE, "compute", "--date", DAY, at=other)


def test_a_folder_with_somebodys_files_does_not_become_a_lake(refused: Refused, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "notes.txt", "mine")
    assert str(other) in refused(FAILURE, "import", write(tmp_path / "good.txt", metrics(*GOOD)), at=other)
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


def test_a_lake_that_another_process_writes_to_is_left_to_it(refused: Refused, lake: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "good.txt", metrics(*GOOD))
    with (lake / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "run again" in refused(FAILURE, "import", file, "--cluster", "lab")


def test_a_file_in_the_lakes_place_is_named(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "good.txt", metrics(*GOOD))
    assert "folder" in refused(FAILURE, "import", file, at=file)


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("device_sample", ["compute", "--date", DAY]),
        ("raw_sample", ["import", "good.txt", "--cluster", "lab"]),
        ("facts/device_hour", ["report", "--since", DAY]),
        ("device_sample", ["sql", "from lake.device_sample"]),
    ],
    ids=["compute", "import", "report", "sql"],
)
def test_a_damaged_file_of_the_lake_is_named(
    table: str, command: list[str], refused: Refused, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.txt", metrics(*GOOD))
    [damaged] = (lake / table).rglob("*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:300])
    assert "part-0000.parquet" in refused(FAILURE, *command)


def test_a_folder_that_is_no_day_is_named(refused: Refused, lake: Path) -> None:
    stray = lake / "device_sample" / "cluster=lab" / "date=garbage"
    stray.mkdir()
    write(stray / "part-0000.parquet", "")
    assert "date=garbage" in refused(FAILURE, "compute", "--date", DAY)


# Configuration


WRONG = ["lak = 'x'", "lake = ", "[saturation]\nmemory_threshold_ratio = 2", "[compute]\nthreads = 0", "saturation = 1"]


@pytest.mark.parametrize("text", WRONG)
def test_a_configuration_that_is_wrong_is_a_usage_error(text: str, refused: Refused, tmp_path: Path) -> None:
    refused(CONFIG, "--config", write(tmp_path / "wrong.toml", text), "compute", "--date", DAY)


def test_a_configuration_that_is_not_there_is_a_usage_error(refused: Refused, tmp_path: Path) -> None:
    assert "--config" in refused(CONFIG, "--config", tmp_path / "nowhere.toml", "compute", "--date", DAY)


def test_a_misspelt_environment_name_is_a_usage_error(refused: Refused) -> None:
    environ = {"GPUREPORT_SATURATION__MEMORY_TRESHOLD_RATIO": "0.8"}
    assert "saturation.memory_treshold_ratio" in refused(CONFIG, "compute", "--date", DAY, environ=environ)


def test_the_seeds_threshold_out_of_range_falls_back_with_a_warning(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"GPU_MEMORY_SATURATION_THRESHOLD": "1.5"}
    assert main(["compute", "--date", DAY, "--lake", str(lake)], environ=environ, now=NOW) == 0
    warning = capsys.readouterr().err
    assert "GPU_MEMORY_SATURATION_THRESHOLD" in warning
    assert "0.9" in warning


def test_a_memory_limit_that_is_no_size_is_a_usage_error(refused: Refused, tmp_path: Path) -> None:
    config = write(tmp_path / "wrong.toml", "[compute]\nmemory_limit = 'abc'\n")
    assert "memory_limit" in refused(CONFIG, "--config", config, "compute", "--date", DAY)


@pytest.mark.parametrize("cluster", ["a/b", "", "..", "a b"])
def test_a_cluster_name_that_is_no_folder_is_a_usage_error(cluster: str, refused: Refused, tmp_path: Path) -> None:
    refused(USAGE, "import", write(tmp_path / "good.txt", metrics(*GOOD)), "--cluster", cluster)


# SQL


@pytest.mark.parametrize("statement", ["selec 1", "select nonsense from lake.device_sample", "from lake.nothing", "select 1/"])
def test_sql_that_is_wrong_is_a_usage_error(statement: str, refused: Refused) -> None:
    assert "SQL" in refused(USAGE, "sql", statement)


@pytest.mark.parametrize(
    "statement", ["drop view lake.device_sample", "delete from lake.device_sample", "create table lake.mine (a int)"]
)
def test_sql_does_not_change_the_lake(statement: str, lake: Path) -> None:
    before = digests(lake)
    main(["sql", statement, "--lake", str(lake)], environ={}, now=NOW)
    assert digests(lake) == before


# Files


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


def test_a_metric_with_half_its_labels_is_imported_as_far_as_it_goes_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a UUID a value is nobody's and is left out aloud; without workload labels the device is there, its owner is not."""
    bare = [f'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-b"}} 100 {NOON + 60 * n}' for n in range(5)]
    nobodys = [f'DCGM_FI_DEV_POWER_USAGE{{gpu="0"}} 100 {NOON + 60 * n}' for n in range(5)]
    lake = tmp_path / "lake"
    file = write(tmp_path / "half.txt", metrics(*GOOD, *bare, *nobodys))
    assert main(["import", str(file), "--lake", str(lake)], environ={}, now=NOW) == 0
    said = capsys.readouterr().err
    assert "DCGM_FI_DEV_POWER_USAGE" in said
    assert "UUID" in said
    database = reported(lake, tmp_path)
    assert {row["device_uuid"]: row["power_watts_avg"] for row in report_rows(database, "device")} == {
        "GPU-a": 104.5,
        "GPU-b": 100,
    }
    assert {row["device_uuid"] for row in report_rows(database, "container_saturation")} == {"GPU-a"}


def reported(lake: Path, folder: Path) -> Path:
    assert main(["compute", "--date", DAY, "--lake", str(lake)], environ={}, now=NOW) == 0
    assert main(["report", "--since", DAY, "--lake", str(lake), "--out", str(folder / "out")], environ={}, now=NOW) == 0
    return folder / "out" / "gpureport.duckdb"


def test_samples_out_of_order_and_twice_make_the_same_lake(tmp_path: Path) -> None:
    lakes = []
    for name, lines in (("sorted", GOOD), ("mixed", [*GOOD[::-1], *GOOD[5:15], *GOOD[::3]])):
        lakes.append(tmp_path / name)
        file = write(tmp_path / "metrics.txt", metrics(*lines))
        assert main(["import", str(file), "--lake", str(lakes[-1])], environ={}, now=NOW) == 0
    assert digests(lakes[0]) == digests(lakes[1])


def test_exporters_whose_clocks_differ_are_put_side_by_side(tmp_path: Path) -> None:
    """Used at 0, 60, …; free seven seconds later. Used holds from 0, free from 7: both for 593 s of the 607 s seen."""
    used = [scrape("DEV_FB_USED", 60 * n, 3000) for n in range(10)]
    free = [scrape("DEV_FB_FREE", 60 * n + 7, 1000) for n in range(10)]
    file = write(tmp_path / "skewed.txt", metrics(*used, *free))
    assert main(["import", str(file), "--lake", str(tmp_path / "lake")], environ={}, now=NOW) == 0
    [row] = report_rows(reported(tmp_path / "lake", tmp_path), "container_saturation")
    assert row["memory_used_ratio_avg"] == 0.75
    assert (row["observed_seconds"], row["memory_seen_seconds"]) == (607, 593)


def test_samples_of_the_future_are_a_source_error(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "ahead.txt", metrics(*GOOD, scrape("DEV_POWER_USAGE", 10 * 86_400, 1)))
    sentence = refused(SOURCE, "import", file)
    assert "ahead.txt" in sentence
    assert "clock" in sentence


# Disks


CHILD = """
import os, resource, sys
from datetime import datetime, UTC
from gpureport.cli import main
limit, uid, *arguments = sys.argv[1:]
if warm := os.environ.pop("WARM_LAKE", ""):
    main([*arguments[:arguments.index("--lake") + 1], warm, *arguments[arguments.index("--lake") + 2:]], environ={})
    sys.stderr.flush()
    print("READY", file=sys.stderr, flush=True)
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
if int(uid):
    os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
sys.exit(main(arguments, environ={}, now=datetime(2026, 11, 21, 12, tzinfo=UTC)))
"""


def child(
    folder: Path, arguments: Sequence[str], limit: int = 0, uid: int = 0, warm: str = ""
) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "WARM_LAKE": warm}
    command = [sys.executable, "-c", CHILD, str(limit), str(uid), *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


def more_samples(folder: Path) -> Path:
    lines = [scrape("DEV_POWER_USAGE", 900 + n, n * n % 9973 / 7) for n in range(20_000)]
    return write(folder / "more.txt", metrics(*lines))


def test_a_disk_that_fills_up_during_import_leaves_the_lake_as_it_was(lake: Path, tmp_path: Path) -> None:
    more_samples(tmp_path)
    before = digests(lake)
    done = child(tmp_path, ["import", "more.txt", "--cluster", "lab", "--lake", "lake"], limit=20_000)
    assert done.returncode == FAILURE, done.stderr
    assert_one_sentence(done.stderr)
    assert "lake" in done.stderr
    assert digests(lake) == before
    assert main(["import", str(tmp_path / "more.txt"), "--cluster", "lab", "--lake", str(lake)], environ={}, now=NOW) == 0


def test_a_disk_that_fills_up_during_compute_leaves_the_lake_as_it_was(lake: Path, tmp_path: Path) -> None:
    before = digests(lake)
    done = child(tmp_path, ["compute", "--date", DAY, "--lake", "lake"], limit=2_000)
    assert done.returncode == FAILURE, done.stderr
    assert_one_sentence(done.stderr)
    assert digests(lake) == before


@pytest.mark.parametrize("limit", [20_000, 400_000])
def test_a_disk_that_fills_up_during_report_says_so(limit: int, lake: Path, tmp_path: Path) -> None:
    before = digests(lake)
    done = child(tmp_path, ["report", "--since", DAY, "--lake", "lake", "--out", "out"], limit=limit)
    assert done.returncode == FAILURE, done.stderr
    assert_one_sentence(done.stderr)
    assert "out" in done.stderr
    assert digests(lake) == before


def test_a_report_that_cannot_be_written_names_the_folder_and_not_the_lake(refused: Refused, tmp_path: Path) -> None:
    file = write(tmp_path / "taken", "")
    sentence = refused(FAILURE, "report", "--since", DAY, "--out", file)
    assert "--out" in sentence


@pytest.mark.parametrize(
    "command", [["import", "good.txt", "--cluster", "lab"], ["compute", "--date", DAY]], ids=["import", "compute"]
)
def test_a_lake_that_may_not_be_written_is_named(command: list[str], lake: Path, tmp_path: Path) -> None:
    is_root = os.geteuid() == 0
    if is_root and not open_to_others(Path(__file__)):
        pytest.skip("another user cannot read this checkout")
    write(tmp_path / "good.txt", metrics(*GOOD[:3]))
    shutil.copytree(lake, tmp_path / "warm")
    set_writable(lake, False)
    tmp_path.chmod(0o755)
    before = digests(lake)
    try:
        done = child(tmp_path, [*command, "--lake", "lake"], uid=65_534 if is_root else 0, warm="warm")
    finally:
        set_writable(lake, True)
    assert done.returncode == FAILURE, done.stderr
    sentence = done.stderr.partition("READY\n")[2]
    assert_one_sentence(sentence)
    assert "write access" in sentence
    assert digests(lake) == before


def open_to_others(path: Path) -> bool:
    """Whether any user may reach the path and the interpreter."""
    return all(parent.stat().st_mode & 0o005 == 0o005 for each in (path, Path(sys.executable)) for parent in each.parents)


def set_writable(lake: Path, is_writable: bool) -> None:
    for path in [lake, *lake.rglob("*")]:
        path.chmod((0o755 if path.is_dir() else 0o644) if is_writable else (0o555 if path.is_dir() else 0o444))
