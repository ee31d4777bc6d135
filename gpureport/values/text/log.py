"""The log on standard error, by the standard ``logging``: lines for people, or JSON objects of one run for a log store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from gpureport.values.text.safe import printable, to_json

LogFormat = Literal["text", "json"]

_BEFORE = {logging.WARNING: "warning: ", logging.ERROR: "gpureport: "}


class Lines(logging.Formatter):
    """Form of the log of a run. ``run_id`` is the same in all of its lines, and unique to it."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self.form = form
        self.command = ""
        self.run_id = uuid4().hex

    def format(self, record: logging.LogRecord) -> str:
        """One line; the reason of a command's end has its ``exit_code`` too."""
        message = record.getMessage()
        if self.form == "text":
            return printable(_BEFORE.get(record.levelno, "") + message)
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = {
            "time": at,
            "level": record.levelname.lower(),
            "run_id": self.run_id,
            "command": self.command,
            "message": message,
        }
        return to_json(entry | {name: value for name, value in vars(record).items() if name == "exit_code"})


def start_log(environ: Mapping[str, str]) -> Lines:
    """The log of a new run on standard error, in place of the log of the run before it.

    The environment decides its form before there is a configuration: for errors in that.
    """
    lines = Lines("json" if environ.get("GPUREPORT_LOG_FORMAT") == "json" else "text")
    handler, logger = logging.StreamHandler(), logging.getLogger("gpureport")
    handler.setFormatter(lines)
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    return lines
