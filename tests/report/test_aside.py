"""A report in a folder that holds an earlier one: each file is the old or the new one at any moment, and none stays behind."""

from __future__ import annotations

import threading
from pathlib import Path

from lake_moments import moments

from gpureport.report import NOTICE, place, staging_folder

EARLIER = ("report.html", "by/red.html", "by/blue.html", "csv/device.csv", "csv/cost.csv", "report.json")
LATER = ("report.html", "by/blue.html", "csv/device.csv", "report.json")


def write(out: Path, names: tuple[str, ...], text: str) -> None:
    with staging_folder(out) as folder:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        assert place([folder / name for name in names], folder, out) == [out / name for name in names]


def read(out: Path) -> dict[str, str]:
    files = [path for path in out.rglob("*") if path.is_file() and ".writing" not in path.parts and path.name != NOTICE]
    return {str(path.relative_to(out)): path.read_text() for path in files}


def test_what_an_earlier_report_had_and_this_one_has_not_goes_and_what_is_somebodys_stays(tmp_path: Path) -> None:
    write(tmp_path, EARLIER, "earlier")
    (tmp_path / "csv" / "mine.csv").write_text("mine")
    write(tmp_path, LATER, "later")
    assert read(tmp_path) == {**dict.fromkeys(LATER, "later"), "csv/mine.csv": "mine"}
    write(tmp_path, ("report.html", "report.json"), "last")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["csv", "report.html", "report.json"]


def test_wherever_it_is_killed_every_file_is_whole_and_the_page_is_the_last_to_come(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, EARLIER, "earlier")
    with moments(out, tmp_path / "moments") as found:
        write(out, LATER, "later")
    for moment in found:
        files = read(moment)
        assert set(files.values()) <= {"earlier", "later"}
        assert files["report.html"] == "earlier" or {files[name] for name in LATER} == {"later"}
        assert (moment / NOTICE).exists() or len(set(files.values())) == 1
        write(moment, LATER, "later")
        assert read(moment) == dict.fromkeys(LATER, "later")
        assert not list(moment.glob(".*")) and not (moment / NOTICE).exists()
    assert not (out / NOTICE).exists()


def test_a_second_report_into_the_folder_waits_for_the_first(tmp_path: Path) -> None:
    second = threading.Thread(target=write, args=(tmp_path, LATER, "second"))
    with staging_folder(tmp_path) as folder:
        second.start()
        second.join(0.2)
        (folder / "report.html").write_text("first")
        place([folder / "report.html"], folder, tmp_path)
        assert read(tmp_path) == {"report.html": "first"}
    second.join()
    assert read(tmp_path) == dict.fromkeys(LATER, "second")
