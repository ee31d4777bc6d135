"""Ctrl-C: one sentence, wherever the program is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpureport.cli import main

from .samples import FAILURE, NOW

ENDLESS = "select count(*) from range(1000000000000) as numbers (n) where hash(n) = 1"
SENTENCE = "gpureport: interrupted; nothing half-written is left, run again\n"


def test_while_a_statement_runs(pristine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DuckDB tells of it in a way of its own."""
    assert main(["sql", "select 1", "--lake", str(pristine)], environ={}, now=NOW) == 0
    capsys.readouterr()
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    assert main(["sql", ENDLESS, "--lake", str(pristine)], environ={}, now=NOW) == FAILURE
    timer.join()
    assert capsys.readouterr().err.endswith(SENTENCE)


def test_while_the_program_is_still_being_loaded() -> None:
    """A signal as the command line's module is found: a finder of modules sends it."""
    finder = (
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gpureport.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('gpureport', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (FAILURE, SENTENCE)
