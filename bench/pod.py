"""A pod's memory limit by the kernel's own means: a control group, where this user may make one.

Page cache counts in a group and is given back when others need it, as in a pod. So what is told is whether all came to its
end within the limit; what a process itself held is measured beside (``measure``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_KINDS = ((_ROOT / "memory", "memory.limit_in_bytes"), (_ROOT, "memory.max"))
"""Of version 1 and version 2: where groups are made, and the file of the limit."""


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path | None]:
    """A group of so much memory, removed with the block; None where none can be made."""
    group = _made(limit_bytes)
    try:
        yield group
    finally:
        if group:
            _removed(group)


def enter(group: Path) -> None:
    """This process, and what it starts from now on, shares the group's memory."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def _made(limit_bytes: int) -> Path | None:
    for root, limit in _KINDS:
        group = root / f"gpureport-bench-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            (group / limit).write_text(str(limit_bytes))
            return group
        group.rmdir()  # a folder without the controller of memory
    return None


def _removed(group: Path) -> None:
    """A group can be removed once its processes are gone, which takes the kernel a moment."""
    for _ in range(50):
        with suppress(OSError):
            group.rmdir()
            break
        time.sleep(0.1)
