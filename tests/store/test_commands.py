"""The commands over a lake on object storage do what they do over a folder, and say no secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from golden_case import DEMO_AT, MINUTES, NOW
from prometheus.programs import fill_blocks
from prometheus.test_run import energy

from gpureport.cli import main
from gpureport.commands.work.delivering import deliver
from gpureport.commands.work.rehearsing import DEMO_CLUSTER
from gpureport.config import load_config
from gpureport.lake import Lake, open_lake
from gpureport.store import Bucket, ObjectAddress, Place
from gpureport.values.errors import StoreError

from .changes import seen
from .servers import BUCKET, KEYS

HERE = f"s3://{BUCKET}/{uuid4().hex}"
NIGHT = datetime(2026, 11, 23, 1, 30, tzinfo=UTC)
FIXTURES = Path(__file__).parents[2] / "data" / "fixtures"
RECORDING = FIXTURES / "h200-recording" / "metrics.openmetrics.txt.gz"
STATE = FIXTURES / "k8s-1.36-recording"
FEW_FORMS = {"GPUREPORT_REPORT__ONLY": "html,duckdb"}

Environ = dict[str, str]


def shell(url: str, cache: Path) -> Environ:
    """What a shell says of the storage."""
    return {**KEYS, "GPUREPORT_OBJECT_STORE__ENDPOINT_URL": url, "XDG_CACHE_HOME": str(cache)}


def place(environ: Environ, address: str) -> Place:
    return load_config(None, environ, {"lake": address})[0].lake


@pytest.fixture(scope="module")
def filled(moto_url: str, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Environ]:
    """The recording imported and computed, and reported from elsewhere: the lake's address, the folder of the demo, which
    does the same, the environment of the report."""
    folder, lake = tmp_path_factory.mktemp("filled"), f"{HERE}/filled"
    writer, reader = (shell(moto_url, folder / name) | {"GPUREPORT_REPORT__FACTS": "true"} for name in ("writer", "reader"))
    for environ, arguments in (
        (writer, ["import", str(RECORDING), "--lake", lake, "--cluster", DEMO_CLUSTER]),
        (writer, ["compute", "--date", "2026-11-20", "--lake", lake]),
        (reader, ["report", *MINUTES, "--lake", lake, "--out", f"{HERE}/report"]),
    ):
        assert main(arguments, environ=environ, now=DEMO_AT) == 0
    fetched = {file.parent.parent.parent.name for file in folder.glob("reader/gpureport/*/**/*.parquet")}
    assert {"device_hour", "ledger_hour", "source"} <= fetched
    assert not fetched & {"device_sample", "sample", "raw_sample", "series", "owner_label"}, "a report fetches no samples"
    return lake, demo, reader


def test_lake_and_facts_are_those_of_a_folder(filled: tuple[str, Path, Environ], tmp_path: Path) -> None:
    lake, folder, environ = filled
    elsewhere = place(environ | {"XDG_CACHE_HOME": str(tmp_path)}, lake)
    assert seen(elsewhere) == seen(folder / "lake")


def test_the_report_is_that_of_a_folder(filled: tuple[str, Path, Environ]) -> None:
    _, folder, environ = filled
    own = place(environ, f"{HERE}/report")
    bucket = Bucket(own)  # type: ignore[arg-type]
    names = {each.name for each in bucket.objects()}
    made = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()} - {Path("whole")}
    assert names == {file.as_posix() for file in made if file.parts[0] != "lake"}
    for name in names - {"gpureport.duckdb"}:
        found = bucket.get(name)
        assert found is not None
        assert found.data == (folder / name).read_bytes(), name


@pytest.mark.parametrize(
    ("arguments", "fetched"),
    [
        (["sql", "select count(*) from lake.source", "-o", "csv"], {"source"}),
        (["sql", "select sum(observed_seconds) from facts.device_hour", "-o", "csv"], {"device_hour"}),
        (["diff", *MINUTES], None),
        (["doctor", "--date", "2026-11-20", "-o", "csv"], None),
        (["whatif", *MINUTES, "--add-gpus", "1"], None),
        (["prune", "--keep-samples", "1d", "--dry-run"], set()),
        (["migrate", "--dry-run"], set()),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_says_what_it_says_of_a_folder(
    filled: tuple[str, Path, Environ],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    fetched: set[str] | None,
) -> None:
    lake, folder, environ = filled
    own = environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    capfd.readouterr()
    found = []
    for where in (lake, str(folder / "lake")):
        code = main([*arguments, "--lake", where], environ=own, now=NOW)
        out, err = capfd.readouterr()
        found.append((code, *(text.replace(where, "LAKE") for text in (out, err))))
    assert found[0] == found[1]
    tables = {file.parent.parent.parent.name for file in tmp_path.glob("cache/gpureport/*/**/*.parquet")}
    assert fetched is None or tables == fetched


def test_two_reports_there_can_be_compared(filled: tuple[str, Path, Environ], capfd: pytest.CaptureFixture[str]) -> None:
    _, folder, environ = filled
    capfd.readouterr()
    found = []
    for where in (f"{HERE}/report", str(folder)):
        code = main(["diff", where, str(folder), "-o", "json"], environ=environ, now=NOW)
        found.append((code, capfd.readouterr().out))
    assert found[0] == found[1]


def test_a_report_that_cannot_go_up(filled: tuple[str, Path, Environ]) -> None:
    def write(folder: Path) -> list[Path]:
        (folder / "report.json").touch()
        return [folder / "report.json"]

    with pytest.raises(StoreError, match="has no bucket no-such-bucket; make it"):
        deliver(place(filled[2], "s3://no-such-bucket/report"), write)


def test_a_report_without_its_page_goes_up(address: ObjectAddress) -> None:
    def write(folder: Path) -> list[Path]:
        (folder / "report.json").touch()
        return [folder / "report.json"]

    assert deliver(address, write) == [address / "report.json"]
    assert [each.name for each in Bucket(address).objects()] == ["report.json"]


def test_a_state_is_imported_beside_samples(filled: tuple[str, Path, Environ], tmp_path: Path) -> None:
    _, _, environ = filled
    arguments = ["import", "--kubernetes", str(STATE), "--cluster", "lab", "--lake"]
    for lake in (f"{HERE}/state", str(tmp_path / "lake")):
        assert main([*arguments, lake], environ=environ, now=NOW) == 0
    assert seen(place(environ, f"{HERE}/state")) == seen(tmp_path / "lake")


KILLED = """
import os, signal, sys
from gpureport.cli import main
from gpureport.store import Bucket
Bucket.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_an_import_that_is_killed_before_it_is_part_of_the_lake_leaves_the_lake_as_it_was(
    filled: tuple[str, Path, Environ], tmp_path: Path
) -> None:
    _, _, environ = filled
    lake = f"{HERE}/killed"
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text(energy(0, 21))
    second.write_text(energy(0, 41))
    assert main(["import", str(first), "--lake", lake], environ=environ, now=NOW) == 0
    before = seen(place(environ, lake))
    command = [sys.executable, "-c", KILLED, "import", str(second), "--lake", lake]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert seen(place(environ, lake)) == before
    assert main(["import", str(second), "--lake", lake], environ=environ, now=NOW) == 0
    assert main(["import", str(first), str(second), "--lake", str(tmp_path / "lake")], environ={}, now=NOW) == 0
    assert seen(place(environ, lake)) == seen(tmp_path / "lake")


def test_nights_fill_it_of_two_at_once_the_second_leaves_and_one_that_would_say_the_same_is_not_made_again(
    moto_url: str, three_days: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, reports, metrics = f"{HERE}/nights", f"{HERE}/nights-report", tmp_path / "gpureport.prom"
    environ, elsewhere = (shell(moto_url, tmp_path / name) | FEW_FORMS for name in ("cache", "elsewhere"))

    def night(environ: Environ, out: str, day: int, *more: str) -> int:
        when = ["--date", f"2026-11-{day}", "--no-kubernetes"]
        arguments = ["run", "--prometheus-url", three_days, "--lake", lake, "--out", out, *when, *more]
        return main(arguments, environ=environ, now=NIGHT)

    commit, nested = Lake._commit, []

    def while_another_runs(self: Lake, *given: object) -> None:
        if not nested:
            nested.append(True)
            assert night(elsewhere, reports, 20, "--metrics-file", str(metrics)) == 0
            nested.append(seen(place(elsewhere, lake)))
        commit(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Lake, "_commit", while_another_runs)
    assert night(environ, str(tmp_path / "second"), 20) == 0
    printed = capfd.readouterr()
    assert "is active; this one ends" in printed.err
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in printed.out + printed.err
    assert not (tmp_path / "second" / "report.html").exists()
    assert seen(place(environ, lake)) == nested[1]
    assert open_lake(place(environ, lake)).partitions("facts/device_hour")
    assert "gpureport_run_coverage_ratio" in metrics.read_text()

    for is_same in (False, True):
        assert night(environ, reports, 22) == 0
        assert ("Nothing has changed" in capfd.readouterr().out) is is_same
    found = Bucket(place(environ, reports)).get("series.json")  # type: ignore[arg-type]
    assert found is not None
    assert [each["since"] for each in json.loads(found.data)] == ["2026-11-22T00:00:00Z", "2026-11-20T00:00:00Z"]


def test_blocks_in_a_bucket_are_exported(moto_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks, environ = tmp_path / "blocks", shell(moto_url, tmp_path / "cache")
    fill_blocks(blocks, energy(0, 21))
    bucket = Bucket(place(environ, f"{HERE}/blocks"))  # type: ignore[arg-type]
    for file in sorted(each for each in blocks.rglob("*") if each.is_file()):
        bucket.upload(file, file.relative_to(blocks).as_posix())
    printed = []
    for where in (str(blocks), f"{HERE}/blocks"):
        day = ["--date", "2026-11-20", "--lake", str(tmp_path / where[:2].strip("/"))]
        assert main(["export", "--blocks", where, *day], environ=environ, now=NIGHT) == 0
        printed.append(capsys.readouterr().err.partition(" of /")[0].partition(" of s3:")[0])
    assert printed[0] == printed[1]
    assert "samples of" in printed[0]
