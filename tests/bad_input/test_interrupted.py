"""Ctrl-C and SIGTERM: one sentence, wherever the program is."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

from .samples import FAILURE

PATIENCE_SECONDS = 300
TERMINATED = "gpureport: terminated (SIGTERM); nothing half-written is left, run again\n"
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
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stderr) == (FAILURE, SENTENCE)


def test_sigterm_ends_a_night_with_one_sentence_and_the_metrics_of_a_run_that_failed(tmp_path: Path) -> None:
    """The server takes the question and never answers."""
    metrics = tmp_path / "gpureport.prom"
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = ["run", "--prometheus-url", f"http://127.0.0.1:{server.getsockname()[1]}", "--no-kubernetes"]
        command = [
            sys.executable,
            "-m",
            "gpureport",
            *arguments,
            "--lake",
            "lake",
            "--out",
            "out",
            "--metrics-file",
            str(metrics),
        ]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            server.settimeout(PATIENCE_SECONDS)
            question, _ = server.accept()
            with question:
                question.recv(1)
                process.terminate()
                printed = process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert process.returncode == 143
    assert [line for line in printed.splitlines() if line] == [TERMINATED.strip()]
    assert re.search(r"gpureport_run_exit_code\S* 143\b", metrics.read_text())
    assert not list((tmp_path / "lake").glob(".staging-*"))


def test_sigterm_ends_work_in_threads_too(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from gpureport import __main__, cli\n"
        "from gpureport.values.runtime.stopping import abandoned_when_stopped\n"
        "def work():\n"
        "    with abandoned_when_stopped(ThreadPoolExecutor(1)) as pool:\n"
        "        future = pool.submit(time.sleep, 3600)\n"
        "        print('at work', flush=True)\n"
        "        future.result()\n"
        "cli.main = work\n"
        "__main__.run()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "at work\n"
        process.terminate()
        printed = process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert (process.returncode, printed) == (143, TERMINATED)
