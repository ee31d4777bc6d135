"""Grams of CO2e per kWh: one number, or a CSV time series of a grid."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from gpureport.values.errors import UsageError

HEADER = ("time", "grams_per_kwh")
_ALWAYS = "0001-01-01T00:00:00"


def intensities(basis: str, given: float | Path | None) -> list[dict[str, str | float]]:
    """Rows of basis, start_at (UTC) and grams_per_kwh, each in force until the next; none where nothing is given.

    A CSV file has the columns time (RFC 3339) and grams_per_kwh. UsageError where it cannot be read so.
    """
    if given is None:
        return []
    if not isinstance(given, Path):
        return [{"basis": basis, "start_at": _ALWAYS, "grams_per_kwh": given}]
    return [{"basis": basis, "start_at": start, "grams_per_kwh": grams} for start, grams in _read(given)]


def _read(path: Path) -> list[tuple[str, float]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != HEADER:
                raise UsageError(f"{path}: the first line must be {','.join(HEADER)}")
            found = sorted(_row(path, number, row) for number, row in enumerate(rows, start=2))
            if twice := [one for (one, _), (other, _) in pairwise(found) if one == other]:
                raise UsageError(f"{path}: {twice[0]} is there twice; give each time one number")
            return found
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check carbon in the configuration") from None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is no CSV file ({error}); check carbon in the configuration") from None


def _row(path: Path, number: int, row: dict[str, str]) -> tuple[str, float]:
    try:
        at = datetime.fromisoformat(row["time"])
        grams = float(row["grams_per_kwh"])
    except (ValueError, TypeError):
        raise UsageError(f"{path}, line {number}: {row} is not a time and a number; write 2026-11-20T00:00:00Z,380") from None
    utc = at.astimezone(UTC) if at.tzinfo else at
    if not 0 <= grams < float("inf"):
        raise UsageError(f"{path}, line {number}: {grams} grams per kWh; give 0 or more")
    return utc.replace(tzinfo=None).isoformat(), grams
