"""What charts say under the pointer: the numbers of the place, in words, without a script."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gpureport.report.charts import ledger_bar, timeline
from gpureport.report.course_charts import supply
from gpureport.report.ledger import BUCKETS, Balance
from gpureport.report.tips import STRETCHES_MAX, ranges

MONDAY = datetime(2026, 3, 2)


def course(*shares: float | None) -> list[dict[str, object]]:
    """A point an hour."""
    return [{"at": f"{(MONDAY + timedelta(hours=hour)).isoformat()}Z", "usage": share} for hour, share in enumerate(shares)]


def test_a_stretch_of_a_course_tells_its_lowest_and_highest_and_what_is_not_known() -> None:
    first, last = ranges(course(10.0, None, 30.0), {"usage": "engine active"})
    assert first["tip"] == "2 Mar 00:00 to 2 Mar 01:00: engine active 10.0 %"
    # The drawing ends at the last point, which holds for an hour: it is told with the one before.
    assert last["tip"] == "2 Mar 01:00 to 2 Mar 03:00: engine active 30.0 % where known"
    assert ranges(course(None, None), {"usage": "engine active"})[0]["tip"].endswith("engine active unknown")
    assert ranges(course(10.0, 25.04), {"usage": "x"})[0]["tip"].endswith("00:00 to 2 Mar 02:00: x 10.0 to 25.0 %")


@given(st.integers(2, 400))
def test_stretches_are_few_and_leave_nothing_out(count: int) -> None:
    points = course(*map(float, range(count)))
    found = ranges(points, {"usage": "x"})
    assert len(found) <= STRETCHES_MAX
    assert [each["since"] for each in found[1:]] == [each["until"] for each in found[:-1]]
    assert (found[0]["since"], found[-1]["until"]) == (points[0]["at"], points[-1]["at"])


def test_a_bar_says_which_bucket_it_is_and_how_much() -> None:
    hours = {bucket.name: {"effective": 6.0, "free": 2.0}.get(bucket.name, 0.0) for bucket in BUCKETS}
    drawn = ledger_bar(Balance("H100 <b>", 1, 8.0, 0.0, hours))
    assert drawn.count("<title>") == 2
    assert "<title>H100 &lt;b&gt;, effective: 6 GPU-h (75.0 %)</title>" in drawn
    assert "aria-label" not in drawn and "role=" not in drawn.replace("role-", "")


def test_a_course_tells_each_hour_and_that_one_was_not_seen() -> None:
    seen = {
        "usable_gpu_hours": 8.0,
        "held_gpu_hours": 6.0,
        "active_gpu_hours": 4.0,
        "effective_gpu_hours": 1.5,
        "unnamed_gpu_hours": 0.0,
    }
    rows = [{"hour_start_at": MONDAY + timedelta(hours=hour), **seen} for hour in (0, 2)]
    drawn = supply(rows, {MONDAY: 3.0})
    assert "<title>2 Mar 00:00: GPUs 8 usable, 6 held, 4 active, 1.5 effective, 3 waited for</title>" in drawn
    assert "<title>2 Mar 01:00: not seen</title>" in drawn
    assert "<title>2 Mar 02:00: GPUs 8 usable, 6 held, 4 active, 1.5 effective</title>" in drawn


def test_a_course_without_sm_activity_does_not_say_that_nothing_was_effective() -> None:
    seen = {"usable_gpu_hours": 8.0, "held_gpu_hours": 6.0, "active_gpu_hours": 4.0, "unnamed_gpu_hours": 0.0}
    rows = [{"hour_start_at": MONDAY + timedelta(hours=hour), **seen, "effective_gpu_hours": None} for hour in (0, 1)]
    other = {"hour_start_at": MONDAY, **seen, "effective_gpu_hours": 1.5}  # another model's first hour
    drawn = supply([*rows, other], {})
    assert "<title>2 Mar 00:00: GPUs 16 usable, 12 held, 8 active, 1.5 effective</title>" in drawn
    assert "<title>2 Mar 01:00: GPUs 8 usable, 6 held, 4 active, effective unknown</title>" in drawn


def _areas(drawn: str, colour: str) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """From where to where a colour's areas reach, across and down."""
    (path,) = re.findall(rf'd="([^"]+)"[^>]*var\(--{colour}\)', drawn)
    corners = [re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", area) for area in path.split("Z") if area]
    axes = [[list(map(float, axis)) for axis in zip(*each, strict=True)] for each in corners]
    return [((min(across), max(across)), (min(down), max(down))) for across, down in axes]


def test_a_step_is_drawn_to_its_end_also_where_nothing_is_known_of_the_next() -> None:
    seen = {"usable_gpu_hours": 8.0, "held_gpu_hours": 6.0, "active_gpu_hours": 4.0, "unnamed_gpu_hours": 0.0}
    effective = [2.0, None, 2.0, None]  # of four hours on a chart 1,000 wide: two areas, each 250 wide
    rows = [
        {"hour_start_at": MONDAY + timedelta(hours=hour), **seen, "effective_gpu_hours": known}
        for hour, known in enumerate(effective)
    ]
    drawn = supply(rows, {})
    assert _areas(drawn, "effective") == [((0, 250), (180, 240)), ((500, 750), (180, 240))]  # 2 of 8 GPUs, from the foot up
    assert _areas(drawn, "idle") == [((0, 1000), (60, 240))]


def test_a_cards_course_tells_all_its_signals() -> None:
    points = [{**point, "sm": None, "memory": 50.0} for point in course(10.0, 20.0)]
    assert "engine active 10.0 to 20.0 %, SMs active unknown, memory held 50.0 %</title>" in timeline(points)
