-- Whether a metric shows a GPU only while a container has it, so that silence says no more than that none has.
--
-- parameters:
--   metric  name as scraped, or model data sheet, which shows as much as it; several are listed
-- source: cAdvisor before 0.47; container metrics of GKE's device plugin
create macro is_of_containers(metric) as regexp_full_match(
    metric,
    '((container_accelerator_\w+|duty_cycle|memory_used|memory_total|tensorcore_utilization|memory_bandwidth_utilization|model data sheet)(, )?)+'
)
