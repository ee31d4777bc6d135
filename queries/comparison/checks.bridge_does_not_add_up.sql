-- Bridges whose steps do not lead from the previous period to this one: a change is missing, or counted twice.
--
-- severity: fail
-- grain:  cluster, gpu_model, measure
-- reads:  report.gpu_hour_bridge
-- columns: cluster, gpu_model, measure, difference_gpu_hours
--   difference_gpu_hours  h, the steps less what is there after them
select
    columns('^(cluster|gpu_model|measure)$'),
    sum(if(step = 'after', -gpu_hours, gpu_hours)) as difference_gpu_hours
from report.gpu_hour_bridge
group by cluster, gpu_model, measure
having abs(difference_gpu_hours) > 1e-6
