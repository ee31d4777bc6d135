"""Commands in processes of their own, forked from one that has imported what a night needs: they start at once."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from gpureport.cli import main

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *("pytest", "numba", "gpureport.commands.collecting", "gpureport.commands.work.observing", "gpureport.collect.export"),
        *("gpureport.commands.nightly", "gpureport.commands.work.nightly", "gpureport.report"),
    ]
)
atexit.register(forkserver._forkserver._stop)  # type: ignore[attr-defined]  # waited for: its CPU counts as the tests'


def start(arguments: list[str], cpu: Path, now: datetime, environ: Mapping[str, str]) -> BaseProcess:
    """Start a command in a session of its own. It writes ``cpu`` at its end, and its output to ``said`` beside it."""
    process = FORKS.Process(target=_run, args=(arguments, cpu, now, dict(environ)))
    process.start()
    return process


def _run(arguments: list[str], cpu: Path, now: datetime, environ: Mapping[str, str]) -> None:
    os.setsid()
    scratch = cpu.with_name("scratch")  # what one that is killed leaves of its temporary files goes with the test
    scratch.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(scratch)
    for descriptor, file in ((1, os.devnull), (2, cpu.with_name("said"))):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    code = main(arguments, environ=environ, now=now)
    cpu.write_text(str(time.process_time()))
    sys.exit(code)
