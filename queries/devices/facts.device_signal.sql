-- Source metric of each device signal on a day, and what was left out of it.
--
-- A signal with only dropped values has a row too, with sample_count 0; a signal without any value has none.
--
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  lake.device_signal
-- source: labels and values of the device's series, read by queries/catalog/signal.csv
-- columns: device_uuid, gpu_instance_id, signal, source_metric, exporter, node_name, start_at, end_at, series_count, sample_count,
--          dropped, other_metrics, cluster, day
--   source_metric  metric that served; several are listed
--   exporter       exporter that prints it
--   start_at       UTC, first sample that came in the day; the day's start where one came in the minutes before
--   end_at         UTC, last sample that came in the day
--   series_count   label sets that carried it, copies among them
--   sample_count   instants that were kept
select
    * exclude (date) replace (
        start_at::timestamp as start_at,
        end_at::timestamp as end_at,
        coalesce(dropped, map_from_entries([])) as dropped,
        coalesce(other_metrics, []) as other_metrics
    ),
    date as day
from lake.device_signal
