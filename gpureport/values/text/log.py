"""The log on standard error: lines for people, or JSON objects of one run for a log store."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from gpureport.values.text.safe import printable, to_json

LogFormat = Literal["text", "json"]

_WARNING = "warning: "


@dataclass
class Log:
    """Log of a command. ``run_id`` is the same in all lines of a run, and unique to it."""

    clock: Callable[[], datetime]
    run_id: str
    command: str = ""
    format: LogFormat = "text"

    def say(self, line: str) -> None:
        """One line; what begins with ``warning: `` has that level."""
        if line.startswith(_WARNING):
            self._write("warning", line.removeprefix(_WARNING), line)
        else:
            self._write("info", line, line)

    def warn(self, text: str) -> None:
        """Something that the operator should look at."""
        self._write("warning", text, _WARNING + text)

    def fail(self, text: str, exit_code: int) -> None:
        """Reason of the command's end, and its exit code."""
        self._write("error", text, f"gpureport: {text}", exit_code=exit_code)

    def _write(self, level: str, message: str, line: str, **more: int) -> None:
        if self.format == "json":
            at = self.clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            entry = {"time": at, "level": level, "run_id": self.run_id, "command": self.command, "message": message, **more}
            line = to_json(entry)
        else:
            line = printable(line)
        print(line, file=sys.stderr)
