"""SIGTERM (from an eviction or a deadline) ends a command like Ctrl-C: one sentence, within two seconds, exit code 143."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO, TypeVar

INTERRUPTED = "interrupted; nothing half-written is left, run again"
"""Message after Ctrl-C."""


def settle_streams() -> None:
    """Make standard output and error writable UTF-8 streams. A stream that the shell closed (``>&-``) goes to the null device.

    The null device takes its descriptor, so that no library writes standard output into a lake file.
    """
    sys.stdout, sys.stderr = _settled(sys.stdout), _settled(sys.stderr)


def _settled(stream: TextIO | None) -> TextIO:
    if stream is None:
        return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
        stream.reconfigure(encoding="utf-8")
    return stream


def discard_output() -> None:
    """Redirect standard output to the null device after it became unwritable."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


TERMINATED = "terminated (SIGTERM); nothing half-written is left, run again"
EXIT_CODE = 128 + signal.SIGTERM
_LONGEST_SECONDS = 1.6
"""Time limit for cleanup after SIGTERM."""

Pool = TypeVar("Pool", bound=Executor)


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""

    exit_code = EXIT_CODE


def end_on_sigterm() -> None:
    """Raise Terminated in the main thread on SIGTERM. A process that does not exit in time is killed."""
    signal.signal(signal.SIGTERM, _on_sigterm)


def is_terminated() -> bool:
    """Whether the process received SIGTERM. Libraries may replace the Terminated exception by their own."""
    return signal.getsignal(signal.SIGTERM) is _ignored


def _on_sigterm(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, _ignored)
    threading.Thread(target=_end, daemon=True).start()
    raise Terminated


def _ignored(_number: int, _frame: object) -> None:
    """Ignore further signals: the first one already ends the process."""


def _end() -> None:
    time.sleep(_LONGEST_SECONDS)
    print(f"gpureport: {TERMINATED}", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


@contextmanager
def abandoned_when_stopped(pool: Pool) -> Iterator[Pool]:
    """Yield the pool and wait for its work, also after an error. A process that is being stopped does not wait."""
    try:
        yield pool
    except Exception:
        pool.shutdown(cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
