"""What a shell may do to standard output: close it, fill it, stop reading it, give it a locale of long ago."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OLD_LOCALE = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def shell(line: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A line of a shell in which ``$GPUREPORT`` is the program."""
    program = f"{sys.executable} -m gpureport"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        env={"GPUREPORT": program, **environ},
        capture_output=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("line", ["$GPUREPORT schema >&-", "$GPUREPORT schema 2>&- >/dev/null", "$GPUREPORT schema | head -1"])
def test_nobody_reads_what_is_printed(line: str) -> None:
    done = shell(line)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_said() -> None:
    done = shell("$GPUREPORT schema >/dev/full")
    assert done.returncode == 1
    sentence = "the system refused standard output (No space left on device); free space or give access, and run again"
    assert done.stderr.decode() == f"gpureport: {sentence}\n"


def test_output_is_utf_8_in_every_locale() -> None:
    old, new = shell("$GPUREPORT schema", **OLD_LOCALE), shell("$GPUREPORT schema", LC_ALL="C.UTF-8")
    assert (old.returncode, old.stderr) == (0, b"")
    assert old.stdout == new.stdout
    assert "→" in old.stdout.decode()
