-- Source metric of each device signal on a day, and its dropped values.
--
-- A signal with only dropped values has a row with sample_count 0; a signal without values has no row.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  lake.device_signal
-- source: labels and values of the device's series, read by queries/catalog/signal.csv
-- columns: device_uuid, gpu_instance_id, signal, source_metric, exporter, node_name, start_at, end_at, series_count, sample_count,
--          dropped, other_metrics, cluster, day
--   source_metric  metric used; several are listed
--   exporter       exporter of the metric
--   start_at       UTC, first sample in the day; start of the day if a sample from the minutes before is in force
--   end_at         UTC, last sample in the day
--   series_count   label sets with the signal, copies included
--   sample_count   sample times kept
select
    * exclude (date) replace (
        start_at::timestamp as start_at,
        end_at::timestamp as end_at,
        coalesce(dropped, map_from_entries([])) as dropped,
        coalesce(other_metrics, []) as other_metrics
    ),
    date as day
from lake.device_signal
