"""Folders for what does not fit into memory end with their process, at the latest with the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from gpureport.values.runtime.spill import spill_folder

CHILD = """
import signal, sys
from gpureport.values.runtime.spill import spill_folder
with spill_folder() as folder:
    (folder / "spilled").write_text("much")
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_empty_and_goes_with_its_block(temporary: Path) -> None:
    with spill_folder() as folder:
        assert folder.parent == temporary
        assert list(folder.iterdir()) == []
        (folder / "spilled").write_text("much")
    assert list(temporary.iterdir()) == []


def test_the_next_one_removes_what_a_killed_process_left_and_nothing_of_one_that_lives(temporary: Path) -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, env={"TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            theirs = Path(process.stdout.readline().strip())
            (temporary / "gpureport-spill-file").touch()
            with spill_folder():
                assert (theirs / "spilled").exists()
        finally:
            process.send_signal(signal.SIGKILL)
    assert theirs.exists()
    with spill_folder() as ours:
        assert sorted(temporary.iterdir()) == sorted([ours, temporary / "gpureport-spill-file"])


def test_many_at_once_never_take_each_others_folder(temporary: Path) -> None:
    failures = []

    def use() -> None:
        for _ in range(50):
            with spill_folder() as folder:
                (folder / "spilled").write_text("much")
                if not (folder / "spilled").exists():
                    failures.append(folder)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(temporary.iterdir()) == []
