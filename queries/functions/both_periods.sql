-- Rows of the previous period and of this one, with period: before or now.
--
-- parameters:
--   before  table of the previous period: previous.<table>
--   now     the same table of this period: period.<table>
-- source: previous.x is period.x of the previous period
create macro both_periods(before, now) as table
    select
        'before' as period,
        *
    from query_table(before)
    union all by name
    select
        'now' as period,
        *
    from query_table(now)
