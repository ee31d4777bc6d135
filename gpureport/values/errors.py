"""Everything an operator can act on, as one small tree; ``cli`` prints the sentence and exits with the class's code.

GpureportError (1)
├── UsageError (2)       the command line or the configuration is wrong: change it
├── SourceError (5)      a server or file did not return a whole answer: retry later, or fix the address
│   ├── AuthError        the server refuses these credentials
│   └── PartialAnswerError   the server answered with warnings where a whole answer was demanded
├── OutputError (1)      the report's folder cannot be written
├── LakeError (1)        the lake cannot be read or written as it is
├── StoreError (1)       the object storage under lake or report does not serve
├── QueryError (1)       a SQL file breaks its own header, grain or check: a defect of gpureport
├── CoverageError (4)    the report is written, but covers less than was demanded
├── IncompleteError (4)  a report would lack figures, as doctor found
└── FindingError (3)     the report is written, and holds a finding that was to fail the run
"""

from __future__ import annotations


class GpureportError(Exception):
    """Something the operator can act on: one sentence saying what, where and what to do."""

    exit_code = 1


class UsageError(GpureportError):
    """The command line or the configuration is wrong."""

    exit_code = 2


class SourceError(GpureportError):
    """A server or a file did not return a whole answer."""

    exit_code = 5


class AuthError(SourceError):
    """The server refuses these credentials."""


class PartialAnswerError(SourceError):
    """The server answered with warnings where a whole answer was demanded."""


class LakeError(GpureportError):
    """The lake cannot be read or written as it is."""


class OutputError(GpureportError):
    """The report's folder cannot be written."""


class StoreError(GpureportError):
    """The object storage under the lake or the report does not serve."""


class QueryError(GpureportError):
    """A SQL file breaks its own header, grain or check."""


class CoverageError(GpureportError):
    """The report is written, but covers less than was demanded."""

    exit_code = 4


class IncompleteError(GpureportError):
    """A report would lack figures."""

    exit_code = 4


class FindingError(GpureportError):
    """The report is written, and holds a finding that was to fail the run."""

    exit_code = 3


def first_line(error: BaseException) -> str:
    """Message of another library, as far as it fits into a sentence: its first line, or its kind where it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
