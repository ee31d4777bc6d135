-- Intervals of states from snapshots: from the first snapshot of a run to the end of validity of the last one.
--
-- parameters:
--   states     name of a CTE with one row per state: its columns, cluster, kind, run_number, and snapshot_numbers (snapshots with the state)
--   snapshots  day.state_snapshot, or a CTE with some of its rows
-- source: day.state_snapshot; runs of snapshots by snapshot_runs
create macro snapshot_intervals(states, snapshots) as table
    select
        shown.* exclude (kind, snapshot_run),
        first_snapshot.observed_at as start_at,
        first_snapshot.previous_at,
        last_snapshot.observed_at as last_at,
        last_snapshot.stands_until_at as end_at,
        last_snapshot.is_followed
    from (
        select
            * exclude (snapshot_numbers, run_number),
            unnest(snapshot_runs(snapshot_numbers)) as snapshot_run
        from query_table(states)
    ) as shown
    inner join query_table(snapshots) as first_snapshot
        using (cluster, kind)
    inner join query_table(snapshots) as last_snapshot
        using (cluster, kind)
    where
        shown.snapshot_run.first = first_snapshot.snapshot_number
        and shown.snapshot_run.last = last_snapshot.snapshot_number
