-- Kepler's power series of pods. They name no GPU, so they may be stored apart from the GPUs' samples.
--
-- grain:  cluster, series_id
-- reads:  lake.series
-- source: kepler_pod_gpu_watts with state running
select distinct columns('^(cluster|series_id|namespace|pod|pod_uid)$')
from lake.series
where signal = 'kepler_active_watts' and pod != ''
