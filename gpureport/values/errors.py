"""Errors that an operator can act on, as one tree. ``cli`` prints the sentence and exits with the class's code.

GpureportError (1)
├── UsageError (2)       the command line or the configuration is wrong: change it
├── SourceError (5)      a server or file did not return a whole answer: retry later, or fix the address
│   └── AuthError        the server refuses these credentials
├── OutputError (1)      the report's folder cannot be written
├── LakeError (1)        the lake cannot be read or written
├── StoreError (1)       the object storage of the lake or report fails
├── QueryError (1)       a SQL file violates its header, grain or check: a defect of gpureport
├── CoverageError (4)    the report is written, but its coverage is below the required one
├── IncompleteError (4)  a report would lack figures, as doctor found
└── FindingError (3)     the report is written, and has a finding that fails the run
"""

from __future__ import annotations


class GpureportError(Exception):
    """An error that the operator can act on. Its one sentence says what failed, where, and what to do."""

    exit_code = 1


class UsageError(GpureportError):
    """The command line or the configuration is wrong."""

    exit_code = 2


class SourceError(GpureportError):
    """A server or a file did not return a complete answer."""

    exit_code = 5


class AuthError(SourceError):
    """The server refuses these credentials."""


class LakeError(GpureportError):
    """The lake cannot be read or written."""


class OutputError(GpureportError):
    """The report's folder cannot be written."""


class StoreError(GpureportError):
    """The object storage of the lake or the report fails."""


class QueryError(GpureportError):
    """A SQL file violates its header, grain or check."""


class CoverageError(GpureportError):
    """The report is written, but its coverage is below the required one."""

    exit_code = 4


class IncompleteError(GpureportError):
    """A report would lack figures."""

    exit_code = 4


class FindingError(GpureportError):
    """The report is written, and has a finding that fails the run."""

    exit_code = 3


def first_line(error: BaseException) -> str:
    """Return the first line of another library's message, or the error's class name where the message is empty."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
