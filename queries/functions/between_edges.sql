-- Intervals without changes: each from one start or end of the input intervals to the next start or end of the same key.
--
-- parameters:
--   intervals  name of a table or CTE that has the keys, start_at and end_at
--   keys       key columns, and columns that depend on them alone, as a pattern; each combination is split separately
-- source: intervals are [start, end) everywhere
create macro between_edges(intervals, keys) as table
    select
        *,
        lead(start_at) over (
            partition by row(*columns(keys))
            order by start_at
        ) as end_at
    from (
        select distinct
            columns(keys),
            unnest([start_at, end_at]) as start_at
        from query_table(intervals)
    ) as edge
    qualify end_at is not null
