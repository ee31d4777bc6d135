"""Standard output and error: there, and UTF-8, whatever shell and locale a command is started from."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO

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
