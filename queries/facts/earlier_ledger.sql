-- The ledger of the window before the report's: built with that window's times before all else, and kept while the report's is made.
--
-- grain:  cluster, device_uuid, namespace, pod, pod_uid, bucket
-- reads:  facts.window_ledger
-- params:
-- source: facts.window_ledger of the window before
-- columns:
--   cluster      cluster name
--   device_uuid  UUID of the physical GPU; '' of those that no exporter tells of
--   gpu_model    model, '' where unknown
--   namespace    holder's namespace; '' where nobody holds it
--   pod          holder's pod; '' likewise
--   pod_uid      its uid; '' where unknown
--   bucket       as in facts.window_ledger
--   gpu_hours    h of whole GPUs
select
    cluster,
    device_uuid,
    max(gpu_model) as gpu_model,
    namespace,
    pod,
    pod_uid,
    bucket,
    sum(gpu_hours) as gpu_hours
from facts.window_ledger
group by all
