-- Data coverage of each signal, node and day, over devices with data on the day, by cause of missing data.
--
-- revision: 1
-- grain:  cluster, node_name, day, signal, cause
-- reads:  day.signal_absence
-- columns: cluster, node_name, day, signal, cause, device_count, observed_count, device_seconds, observed_seconds, unseen_seconds,
--          lacking_seconds, expected_series_count, series_count, sample_count, left_out_count, sibling_count, peer_count, other_count,
--          exporter, source_metrics, driver_versions, gpu_models, left_out_devices, dropped
--   cause                  cause of missing data, a code; '' for none
--   device_count           devices and MIG instances with data that should have the signal
--   observed_seconds       s in which the signal was known, added over devices
--   lacking_seconds        s in which they had data and the signal had none
--   sample_count           samples kept
--   left_out_count         values left out for the cause; null for another cause
--   sibling_count          minimum of other signals of a device
--   other_count            GPUs of the cluster and exporter with the signal
--   source_metrics         source metrics
--   dropped                reason → values left out
select
    columns('^(cluster|node_name|day|signal|cause)$'),
    count(*) as device_count,
    count(*) filter (where observed_seconds > 0) as observed_count,
    round(sum(columns('^(device|observed|unseen|lacking)_seconds$')), 3) as "\0",
    sum(greatest(series_count, device_series_count))::bigint as expected_series_count,
    sum(columns('^(series|sample|left_out)_count$'))::bigint as "\0",
    min(sibling_count) as sibling_count,
    max(columns('^(peer_count|other_count|exporter)$')) as "\0",
    coalesce(list_sort(list_distinct(flatten(list(string_split(source_metric, ', ')) filter (where source_metric != '')))), []) as source_metrics,
    list(distinct driver_version order by driver_version) as driver_versions,
    list(distinct gpu_model order by gpu_model) as gpu_models,
    coalesce(
        list(device_uuid || gpu_instance_id order by device_uuid, gpu_instance_id) filter (where left_out_count > 0), []
    ) as left_out_devices,
    added_counts(coalesce(list(dropped) filter (where cardinality(dropped) > 0), [])) as dropped
from day.signal_absence
group by all
