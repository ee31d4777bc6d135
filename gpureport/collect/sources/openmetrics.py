"""OpenMetrics text with timestamps → SeriesBatches.

Label sets are parsed by prometheus-client, once per distinct series; only the cutting of a line into series, value and
time is done here, because a day has millions of lines and few series.
"""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch

_EARLIEST_SECONDS = 946_684_800.0  # 2000-01-01
_LATEST_SECONDS = 4_102_444_800.0  # 2100-01-01
_SAMPLES_AT_ONCE = 500_000


def read_openmetrics(path: Path) -> Iterator[SeriesBatch]:
    """All samples of a file (plain or .gz), whatever their order, so many at a time.

    SourceError names the file and line for what is no OpenMetrics, has no timestamp, or ends before ``# EOF``.
    """
    samples: dict[str, tuple[array[float], array[float]]] = {}
    labels: dict[str, Labels] = {}
    ended, count = False, 0
    for number, line in enumerate(_lines(path), start=1):
        if line.startswith("#"):
            ended = line.rstrip() == "# EOF"
        elif line.strip():
            _add(samples, line, path, number)
            ended, count = False, count + 1
            if count % _SAMPLES_AT_ONCE == 0:
                yield _batch(samples, labels, path)
                samples.clear()
    if not ended:
        raise SourceError(f"{path} ends without '# EOF': it was cut off; export it again, or wait until it is written")
    yield _batch(samples, labels, path)


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:  # a label may hold any other end of line
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read ({_reason(error)}); check the path, or export it again") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text ({error.reason}); OpenMetrics is; export it again") from error


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".").lower()


def _add(samples: dict[str, tuple[array[float], array[float]]], line: str, path: Path, number: int) -> None:
    has_exemplar = " # " in line
    brace = line.rfind("}", 0, line.find(" # {") if has_exemplar and " # {" in line else len(line))
    head, _, rest = (line[: brace + 1], "", line[brace + 1 :]) if brace > 0 else line.partition(" ")
    fields = (rest.split(" # ")[0] if has_exemplar else rest).split()
    if len(fields) == 1:
        raise SourceError(f"{path}, line {number}: no timestamp; write each sample as 'name{{labels}} value seconds'")
    try:
        value, seconds = map(float, fields)
    except ValueError:
        raise SourceError(f"{path}, line {number}: {line.strip()[:80]!r} is not an OpenMetrics sample; export it again") from None
    if not _EARLIEST_SECONDS <= seconds < _LATEST_SECONDS:
        raise SourceError(
            f"{path}, line {number}: the time {fields[1]} is not in 2000…2099 as seconds; "
            "OpenMetrics times are seconds, divide milliseconds by 1000"
        )
    found = samples.get(head)
    times, values = found or samples.setdefault(head, (array("d"), array("d")))
    times.append(seconds)
    values.append(value)


def _batch(samples: dict[str, tuple[array[float], array[float]]], labels: dict[str, Labels], path: Path) -> SeriesBatch:
    lengths = [len(times) for times, _ in samples.values()]
    seconds = np.concatenate([np.frombuffer(times) for times, _ in samples.values()] or [np.empty(0)])
    values = np.concatenate([np.frombuffer(values) for _, values in samples.values()] or [np.empty(0)])
    return SeriesBatch(
        labels=[labels.get(head) or labels.setdefault(head, _labels(head, path)) for head in samples],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        times_ms=np.rint(seconds * 1000).astype(np.int64),
        values=values,
    )


def _labels(head: str, path: Path) -> dict[str, str]:
    """Metric name and labels of ``name{…}``, by the library's grammar."""
    try:
        families = list(text_string_to_metric_families(f"{head} 0\n# EOF\n"))  # type: ignore[no-untyped-call]
        sample = families[0].samples[0]
    except (ValueError, IndexError) as error:
        raise SourceError(f"{path}: {head[:120]!r} is not an OpenMetrics series ({error}); export it again") from error
    return {METRIC_LABEL: sample.name, **sample.labels}
