"""Courses on cards: points of what was seen, and none where nothing of them is known."""

from __future__ import annotations

import duckdb

from gpureport.report.timelines import DEVICE, courses
from gpureport.window import Window, parse_instant


def test_a_device_of_which_no_point_is_known_has_no_course() -> None:
    """GPU-a tells of its engine in the second of two hours, GPU-b of nothing that is drawn."""
    window = Window(parse_instant("2026-11-20T00:00:00Z"), parse_instant("2026-11-20T02:00:00Z"))
    with duckdb.connect() as con:
        con.execute(
            "create schema facts; create table facts.device_hour as select 'lab' as cluster, device_uuid, '' as gpu_instance_id, "
            "timestamp '2026-11-20' + hour * interval 1 hour as hour_start_at, "
            "case when device_uuid = 'GPU-a' and hour = 1 then 900.0 end as gr_engine_active_ratio_seconds, "
            "case when device_uuid = 'GPU-a' and hour = 1 then 3600.0 end as gr_engine_active_seen_seconds, "
            "null::double as sm_active_ratio_seconds, null::double as sm_active_seen_seconds, "
            "null::double as memory_used_ratio_seconds, null::double as memory_seen_seconds "
            "from (values ('GPU-a'), ('GPU-b')) as device (device_uuid), range(2) as hours (hour)"
        )
        found = courses(con, "device_hour", DEVICE, [("lab", "GPU-a", ""), ("lab", "GPU-b", "")], window)
    assert list(found) == [("lab", "GPU-a", "")]
    assert [point["usage"] for point in found["lab", "GPU-a", ""]] == [None, 25.0]
