-- Intervals with the number of their run: intervals of one key that touch or overlap are one run.
--
-- With values in the key, each run has constant values. Equal intervals have one number, in any order.
--
-- parameters:
--   intervals  name of a table or CTE that has start_at and end_at
--   keys       columns that identify a run, as a row
-- source: intervals are [start, end) everywhere
create macro numbered_runs(intervals, keys) as table
    select
        * exclude (is_new),
        count(*) filter (where is_new) over (
            partition by keys
            order by start_at, end_at
        ) as run_number
    from (
        select
            *,
            coalesce(start_at > max(end_at) over (
                partition by keys
                order by start_at, end_at
                rows between unbounded preceding and 1 preceding
            ), true) as is_new
        from query_table(intervals)
    ) as opened
