-- The findings of the window before the report's; built as facts.earlier_ledger is.
--
-- grain:  code, cluster, namespace, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  facts.window_finding
-- params:
-- source: facts.window_finding of the window before
-- columns:
--   code             which finding; docs/operations.md lists them
--   cluster          cluster name
--   namespace        namespace of the workload; '' where it is about a node or GPU
--   pod              its pod; '' likewise
--   pod_uid          its uid; '' likewise, and where unknown
--   container        its container; '' where it is about all of the pod, or about a node or GPU
--   node_name        node; several are listed; '' where it is about more
--   device_uuid      UUID of the physical GPU; '' where it is about several
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   detail           what more tells it from others of its code; '' mostly
--   severity         info, warning or critical, where it is not the code's; else null
--   evidence         the numbers, as a sentence
--   gpu_hours        h of whole GPUs at stake; null where that cannot be told
select
    code,
    cluster,
    namespace,
    pod,
    pod_uid,
    container,
    node_name,
    device_uuid,
    gpu_instance_id,
    detail,
    severity,
    evidence,
    gpu_hours
from facts.window_finding
