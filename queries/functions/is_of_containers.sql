-- Whether a metric reports a GPU only while a container has it. Then missing samples mean only that no container has it.
--
-- parameters:
--   metric  name as scraped, or model data sheet (counts as such a metric); several are listed
-- source: cAdvisor before 0.47; container metrics of GKE's device plugin
create macro is_of_containers(metric) as regexp_full_match(
    metric,
    '((container_accelerator_\w+|duty_cycle|memory_used|memory_total|tensorcore_utilization|memory_bandwidth_utilization|model data sheet)(, )?)+'
)
