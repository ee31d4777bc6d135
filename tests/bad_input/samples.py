"""Samples of a small day, commands that refuse, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
USAGE, CONFIG, FAILURE, SOURCE = 2, 2, 1, 5
DAY = "2026-11-20"
Refused = Callable[..., str]


def metrics(*lines: str) -> str:
    return "\n".join([*lines, "# EOF\n"])


def scrape(metric: str, seconds: float, value: float, uuid: str = "GPU-a", more: str = "") -> str:
    labels = f'UUID="{uuid}",Hostname="n1",namespace="ns",pod="p",container="c"{more}'
    return f"DCGM_FI_{metric}{{{labels}}} {value} {NOON + seconds:.3f}"


GOOD = [scrape("DEV_POWER_USAGE", 60 * n, 100 + n) for n in range(10)] + [
    scrape("PROF_GR_ENGINE_ACTIVE", 60 * n, n / 10) for n in range(10)
]


def assert_one_sentence(text: str) -> None:
    assert text.startswith("gpureport: "), text
    assert text.count("\n") == 1, text
    assert "Traceback" not in text


def digests(lake: Path) -> dict[str, str] | None:
    """The digest of every file by path, None where there is no lake; the empty lock file is no content."""
    if not lake.is_dir():
        return None
    files = sorted(path for path in lake.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(lake)): sha256(path.read_bytes()).hexdigest() for path in files}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
