-- Sum of the amounts valid at a time, from each change to the next.
--
-- parameters:
--   intervals  name of a table or CTE that has only the keys, start_at, end_at (null for an open end) and amount
--   keys       key columns, as a row; each combination has its own sum
-- source: intervals are [start, end) everywhere
create macro running_amounts(intervals, keys) as table
    select
        * exclude (growth),
        coalesce(lead(start_at) over one, 'infinity'::timestamp) as end_at,
        sum(growth) over one as amount
    from (
        select
            * exclude (growth),
            sum(growth) as growth
        from (
            select
                * exclude (start_at, end_at, amount),
                unnest([
                    { 'start_at': start_at, 'growth': amount::decimal(38, 9) },
                    { 'start_at': end_at, 'growth': -amount::decimal(38, 9) }
                ], recursive := true)
            from query_table(intervals)
        ) as changed
        where start_at is not null
        group by all
        having sum(growth) != 0
    ) as summed
    window one as (
        partition by keys
        order by start_at
    )
