-- Sums of several amounts valid at a time, from each start or end to the next; 0 where none is valid.
--
-- parameters:
--   intervals  name of a table or CTE that has the keys, start_at, end_at and amounts
--   keys       key columns, as a pattern; each combination has its own sums
-- source: intervals are [start, end) everywhere
create macro running_sums(intervals, keys) as table
    select
        columns(keys),
        start_at,
        lead(start_at) over one as end_at,
        -- The sum of fractions may be 1e-16 instead of 0.
        coalesce(round(sum(columns(lambda name: name not in ('start_at', 'key') and not regexp_matches(name, keys))) over one, 9) + 0, 0)
    from (
        select
            *,
            row(*columns(keys)) as key
        from (
            select
                columns(keys),
                start_at,
                sum(sign * columns(lambda name: name not in ('start_at', 'sign') and not regexp_matches(name, keys)))
            from (
                select
                    * exclude (start_at, end_at),
                    unnest([{ 'start_at': start_at, 'sign': 1 }, { 'start_at': end_at, 'sign': -1 }], recursive := true)
                from query_table(intervals)
            ) as changed
            group by all
        ) as summed
    ) as keyed
    window one as (
        partition by key
        order by start_at
    )
