-- Sum of the amounts that are in force at a time, from each change of it until the next.
--
-- parameters:
--   intervals  name of a table or CTE that has keys, start_at, end_at (null where it goes on) and amount, and no more
--   keys       columns of which each combination has a sum of its own, as a row
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
