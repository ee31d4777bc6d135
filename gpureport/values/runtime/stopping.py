"""SIGTERM, as an eviction or a deadline sends it, ends a command like Ctrl-C: one sentence, within two seconds, exit code 143."""

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
    """Make both of them UTF-8 text that can be written to; one that the shell closed (``>&-``) leads nowhere.

    It keeps its descriptor, so that no file of the lake is opened as what a library takes for standard output.
    """
    sys.stdout, sys.stderr = _settled(sys.stdout), _settled(sys.stderr)


def _settled(stream: TextIO | None) -> TextIO:
    if stream is None:
        return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
        stream.reconfigure(encoding="utf-8")
    return stream


def forget_output() -> None:
    """Let what is still to be written to standard output go nowhere, for there it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


TERMINATED = "terminated (SIGTERM); nothing half-written is left, run again"
EXIT_CODE = 128 + signal.SIGTERM
_LONGEST_SECONDS = 1.6
"""For what is still to be put in order."""

Pool = TypeVar("Pool", bound=Executor)


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    exit_code = EXIT_CODE


def end_on_sigterm() -> None:
    """Raise Terminated in the main thread when SIGTERM comes; what does not end by itself then is ended."""
    signal.signal(signal.SIGTERM, _on_sigterm)


def is_terminated() -> bool:
    """Whether SIGTERM came: libraries turn the exception into one of their own."""
    return signal.getsignal(signal.SIGTERM) is _ignored


def _on_sigterm(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, _ignored)
    threading.Thread(target=_end, daemon=True).start()
    raise Terminated


def _ignored(_number: int, _frame: object) -> None:
    """One is enough."""


def _end() -> None:
    time.sleep(_LONGEST_SECONDS)
    print(f"gpureport: {TERMINATED}", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


@contextmanager
def left_when_stopped(pool: Pool) -> Iterator[Pool]:
    """A pool that is waited for, also after an error; but not when the process is to end."""
    try:
        yield pool
    except Exception:
        pool.shutdown(cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
