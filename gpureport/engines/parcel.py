"""A task on another machine: the files that it reads go with it, the parts that it stages come back.

So a worker needs neither the lake's volume nor the right to write to it, and one that is killed leaves nothing in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from gpureport import __version__
from gpureport.engines.work import Outcome, Task, Work
from gpureport.errors import EngineError
from gpureport.lake import Change

SAME_IMAGE = "run the cluster from the image that runs gpureport"

Files = Mapping[str, pa.Buffer]
"""What files hold, by their path below some folder."""


def packed(folder: Path, files: Iterable[Path]) -> Files:
    """Files below a folder, by path."""
    return {str(file): pa.py_buffer((folder / file).read_bytes()) for file in files}


def unpack(files: Files, folder: Path) -> None:
    """Write files below a folder, each safely on disk when this returns."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def do_away(version: str, work: Work[Task, Outcome], task: Task, files: Files) -> tuple[Outcome, Files]:
    """Do a task in a folder of its own, which ends with it: its outcome, and the parts that it staged."""
    if version != __version__:
        raise EngineError(f"a worker has gpureport {__version__}, this is {version}; {SAME_IMAGE}")
    with TemporaryDirectory(prefix="gpureport-") as folder:
        change = Change(Path(folder) / "lake", Path(folder) / "staged")
        unpack(files, change.lake_path)
        outcome = work.do(task, change)
        staged = [path.relative_to(change.staging) for path in sorted(change.staging.rglob("*.parquet"))]
        return outcome, packed(change.staging, staged)
