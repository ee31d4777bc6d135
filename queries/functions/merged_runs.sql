-- Intervals that touch or overlap, as one: from the first start to the last end of each run.
--
-- parameters:
--   intervals  name of a table or CTE that has the keys, start_at and end_at
--   keys       key columns, as a pattern; each combination is merged separately
-- source: numbered_runs
create macro merged_runs(intervals, keys) as table
    select * exclude (run_number)
    from (
        select
            columns(keys),
            run_number,
            min(start_at) as start_at,
            max(end_at) as end_at
        from numbered_runs(intervals, row(*columns(keys)))
        group by all
    ) as run
