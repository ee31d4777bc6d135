"""Ctrl-C: one sentence, wherever the program is."""

from __future__ import annotations

import subprocess
import sys

from .samples import FAILURE

SENTENCE = "gpureport: interrupted; nothing half-written is left, run again\n"


def test_while_the_program_is_still_being_loaded() -> None:
    """A signal as the command line's module is found: a finder of modules sends it."""
    finder = (
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gpureport.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('gpureport', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (FAILURE, SENTENCE)
