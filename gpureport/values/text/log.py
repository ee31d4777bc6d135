"""The log on standard error through ``logging``: plain lines for a terminal, or JSON objects for a log store."""

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
    """Log format of a run. ``run_id`` is unique to the run and the same in all of its lines."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self.form = form
        self.command = ""
        self.run_id = uuid4().hex

    def format(self, record: logging.LogRecord) -> str:
        """Format one line. JSON lines on a command's failure have its ``exit_code``."""
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
    """Start the log of a new run on standard error, replacing the previous run's.

    The environment sets its format before the configuration is read, so that errors in the configuration have it too.
    """
    lines = Lines("json" if environ.get("GPUREPORT_LOG_FORMAT") == "json" else "text")
    handler, logger = logging.StreamHandler(), logging.getLogger("gpureport")
    handler.setFormatter(lines)
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    return lines
