"""An energy counter silent over midnight: each interval is counted once, on one day, by one method."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import pytest
from few_facts import compute_only
from golden_case import gpureport

MIDNIGHT = 1_795_219_200  # 2026-11-21T00:00:00Z
MINUTE = 60
DAYS = (date(2026, 11, 20), date(2026, 11, 21))
Spans = list[tuple[int, int]]
ALL: Spans = [(-30, 30)]
AROUND: Spans = [(-30, -10), (10, 30)]
"""Minutes around midnight; a scrape a minute. 300 W by the counter: 40 minutes are 720 kJ, its growth over the gap is 360 kJ."""

# Device: minutes of the counter, minutes and watts of power from another source, where the counter begins anew,
# and kJ of either day. A sample reaches three minutes into a gap.
CASES: dict[str, tuple[Spans, Spans, int, int | None, tuple[float, float]]] = {
    # The day before counts 10 minutes by power, 120 kJ; of the growth 240 kJ are left.
    "lower": (AROUND, ALL, 200, None, (480, 600)),
    "higher": (AROUND, ALL, 400, None, (600, 480)),
    # The counter's first sample is the day's: 180 kJ, of which the day before counted 120.
    "ends_at_midnight": ([(-30, -10), (0, 30)], ALL, 200, None, (480, 600)),
    # Power until 23:55, which reaches to 23:58: 8 minutes, 96 kJ; of what is left nothing tells whose it was.
    "half": (AROUND, [(-30, -5), (10, 30)], 200, None, (456, 624)),
    # Nothing tells of the gap but the growth over it, on the day that it ends.
    "silent": (AROUND, AROUND, 200, None, (360, 720)),
    # No sample fails: all of 23:59 to 00:05, 108 kJ, is the next day's, but what is before midnight is shared by none.
    "short": ([(-30, -1), (5, 30)], ALL, 200, None, (522, 558)),
    # The counter's 180 kJ after a reset are the least that was used; power tells of 240 kJ, 120 on either day.
    "reset": (AROUND, ALL, 200, 0, (480, 480)),
    # Power tells of 12 kJ on either day, 24 in all: of 180 kJ the next day counts what is left.
    "reset_in_low_power": (AROUND, ALL, 20, 0, (372, 528)),
    # The driver is loaded anew at midnight: power tells of the day's last minute, without it 18 kJ are not known.
    "reset_at_midnight": (ALL, ALL, 300, 0, (540, 540)),
    "reset_at_midnight_without_power": (ALL, [], 0, 0, (522, 540)),
    # A gap from 23:40, earlier than what is read around a day. Of its 20 to 80 minutes:
    "long": ([(-30, -20), (60, 90)], ALL, 200, None, (180 + 240, 80 * 18 - 240 + 540)),
    "long_and_silent": ([(-30, -20), (60, 90)], [(-30, -20), (60, 90)], 200, None, (180, 80 * 18 + 540)),
    # Single samples: 150 minutes' kJ are known by power but for the gap's 10 minutes: 180 kJ, 60 of them the day before.
    "single": ([(-5, -5), (5, 5)], ALL, 200, None, (360, 120 + 25 * 12 + 12)),
}


def lines(metric: str, labels: str, spans: Spans, value: Callable[[int], float]) -> list[str]:
    minutes = [minute for start, end in spans for minute in range(start, end + 1)]
    return [f"{metric}{{{labels}}} {value(minute)} {MIDNIGHT + minute * MINUTE}" for minute in minutes]


def text() -> str:
    energy, power = [], []
    for name, (counted, powered, watts, reset, _) in CASES.items():
        labels = f'UUID="GPU-{name}",gpu="0",Hostname="n-{name}"'
        begun = 100_000 if reset is None else reset

        def millijoules(minute: int, begun: int = begun) -> float:
            return (minute - begun if minute >= begun else minute + 100_000) * MINUTE * 300_000

        energy += lines("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels + ',job="counter"', counted, millijoules)
        power += lines("DCGM_FI_DEV_POWER_USAGE", labels + ',job="power"', powered, lambda _, watts=watts: watts)  # type: ignore[misc]
    return "\n".join([*energy, *power, "# EOF\n"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, float]]:
    """The kilojoules of each device on either day."""
    folder = tmp_path_factory.mktemp("midnight")
    (folder / "samples.txt").write_text(text())
    gpureport("import", folder / "samples.txt", "--cluster", "c", "--lake", folder / "lake")
    with pytest.MonkeyPatch.context() as patch:
        compute_only(patch, "facts.device_power_hour")
        gpureport("compute", "--since", DAYS[0].isoformat(), "--until", "2026-11-22", "--lake", folder / "lake")
    query = "select device_uuid, sum(measured_joules) / 1000 from read_parquet(?) group by all"
    files = [f"{folder}/lake/facts/device_power_hour/cluster=c/{day}/**/*.parquet" for day in DAYS]
    first, second = (dict(duckdb.execute(query, [each]).fetchall()) for each in files)
    return {name: (first[f"GPU-{name}"], second[f"GPU-{name}"]) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_each_interval_is_counted_once(told: dict[str, tuple[float, float]], name: str) -> None:
    *_, expected = CASES[name]
    assert told[name] == pytest.approx(expected)


def test_compute_names_the_day_before_that_an_import_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first sample of a day shows what the counter grew from the last one before it."""
    compute_only(monkeypatch, "facts.device_hour")
    lake = ["--lake", tmp_path / "lake"]
    for number, (day, spans) in enumerate(zip(DAYS, [(-30, -1), (0, 30)], strict=True)):
        energy = lines(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 'UUID="GPU-a",gpu="0"', [spans], lambda minute: (minute + 30) * 1e7
        )
        (tmp_path / f"{number}.txt").write_text("\n".join([*energy, "# EOF\n"]))
        gpureport("import", tmp_path / f"{number}.txt", "--cluster", "c", *lake)
        gpureport("compute", "--date", day.isoformat(), *lake)
    assert "c: facts of 2026-11-20 are based on samples that have changed;" in capsys.readouterr().err
    for day in DAYS:
        gpureport("compute", "--date", day.isoformat(), *lake)
    assert capsys.readouterr().err.count("are based on") == 1  # the later one's, until it is computed again
