-- Numbers of compared and of different objects per snapshot, and each different object.
--
-- parameters:
--   beside  name of a CTE: cluster, compared, object, resource, observed_at, reported_units, counted_units
-- source: the API server beside what is counted here
create macro agreement(beside) as table
    select
        cluster,
        compared,
        coalesce(columns('^(object|resource)$'), '') as "\0",
        observed_at,
        date_trunc('hour', observed_at) as hour_start_at,
        count(*) as compared_count,
        count(*) filter (where reported_units is distinct from counted_units) as differing_count,
        if(grouping(object) = 0, any_value(reported_units), null)::double as reported_units,
        if(grouping(object) = 0, any_value(counted_units), null)::double as counted_units
    from query_table(beside)
    group by grouping sets ((cluster, compared, observed_at), (cluster, compared, observed_at, object, resource))
    having grouping(object) = 1 or differing_count > 0
