-- Terms, demand and delivery of each quota in steps; nothing changes within a step.
--
-- grain:  cluster, system, resource, flavor, quota, start_at
-- reads:  day.quota_demand, day.quota_terms
-- columns: those of day.quota_demand without terms_id
select
    term.* exclude (terms_id, start_at, end_at, source),
    step.* exclude (terms_id)
from day.quota_demand as step
inner join day.quota_terms as term
    using (terms_id)
