"""Delivery of a report to its folder or to object storage, and download of a report from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from gpureport.store import Bucket, ObjectAddress, Place
from gpureport.store.storage import store_errors
from gpureport.values.errors import OutputError, first_line


@contextmanager
def out_errors(out: Path, instead: str = "give another --out") -> Iterator[None]:
    """Raise disk errors of DuckDB and Python as an OutputError of one sentence."""
    if out.is_file():
        raise OutputError(f"{out} is a file; give a folder with --out")
    try:
        yield
    except (OSError, duckdb.IOException, duckdb.FatalException, duckdb.TransactionException) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise OutputError(f"{out} cannot be written ({reason}); free space, or {instead}") from error


DATABASE = "gpureport.duckdb"
_PAGE, _SERIES, _NOTICE = "report.html", "series.json", "FILES-OF-TWO-REPORTS.txt"
_INPUT_DIGEST = ".made-of"
_OWNER_PAGES = "by/"
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
}


def deliver(out: Place, write: Callable[[Path], list[Path]]) -> list[Place]:
    """Let ``write`` make a report in a folder, and bring its files to ``out``. Return their paths there.

    On object storage the page is uploaded last, so that its readers find all other files new too.
    OutputError where the disk fails, StoreError where the storage fails. The page there is then still the previous one.
    """
    if not isinstance(out, ObjectAddress):
        with out_errors(out):
            (out / _INPUT_DIGEST).unlink(missing_ok=True)
            return [*write(out)]
    with store_errors(out):
        out.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.cache, prefix="report-") as folder:
        _download(out, Path(folder), _SERIES)  # the new report continues the index of past ones
        with out_errors(out.cache):
            written = write(Path(folder))
        names = [file.relative_to(folder).as_posix() for file in written]
        Bucket(out).delete([_INPUT_DIGEST])
        _upload(Bucket(out), Path(folder), names)
    return [out / name for name in names]


def _upload(bucket: Bucket, folder: Path, names: list[str]) -> None:
    def send(name: str) -> None:
        bucket.upload(folder / name, name, _CONTENT_TYPES.get(Path(name).suffix, "application/octet-stream"))

    bucket.each(send, [name for name in names if name != _PAGE])
    bucket.each(send, [name for name in names if name == _PAGE])
    bucket.delete(each.name for each in bucket.objects(_OWNER_PAGES) if each.name not in names)  # from a previous report


def save_input_digest(place: Place, input_digest: str) -> None:
    """Write the digest of a report's inputs beside it; ``deliver`` removes it before the next report is written."""
    if isinstance(place, ObjectAddress):
        Bucket(place).put(_INPUT_DIGEST, input_digest.encode())
        return
    with out_errors(place):
        (place / _INPUT_DIGEST).write_text(input_digest, encoding="utf-8")


def has_input_digest(place: Place, input_digest: str) -> bool:
    """Return whether a complete report at ``place`` was made from these inputs."""
    with local_report(place, _PAGE, _INPUT_DIGEST) as folder:
        is_there = all((folder / name).is_file() for name in (_PAGE, _INPUT_DIGEST)) and not (folder / _NOTICE).exists()
        return is_there and (folder / _INPUT_DIGEST).read_bytes() == input_digest.encode()


@contextmanager
def local_report(place: Place, *names: str) -> Iterator[Path]:
    """Yield a report's folder or database as a local path; for an address, a folder with the named files of the report."""
    if not isinstance(place, ObjectAddress):
        yield place
        return
    with store_errors(place):
        place.cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place.cache, prefix="report-") as folder:
        _download(place, Path(folder), *names)
        yield Path(folder)


def _download(place: ObjectAddress, folder: Path, *names: str) -> None:
    for name in names:
        if found := Bucket(place).get(name):
            with store_errors(place):
                (folder / name).write_bytes(found.data)
