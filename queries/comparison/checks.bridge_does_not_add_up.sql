-- Bridges whose steps do not lead from the previous period to this one: a change is missing, or counts twice.
--
-- severity: fail
-- grain:  cluster, gpu_model, measure
-- reads:  report.gpu_hour_bridge
-- columns: cluster, gpu_model, measure, difference_gpu_hours
--   difference_gpu_hours  h, sum of the steps minus the amount after them
select
    columns('^(cluster|gpu_model|measure)$'),
    sum(if(step = 'after', -gpu_hours, gpu_hours)) as difference_gpu_hours
from report.gpu_hour_bridge
group by cluster, gpu_model, measure
having abs(difference_gpu_hours) > 1e-6
