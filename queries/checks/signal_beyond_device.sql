-- A signal seen for longer than its devices were: a span was counted twice.
--
-- severity: fail
-- grain:  cluster, signal, node_name
-- reads:  report.coverage
-- params:
-- source: report.coverage
-- columns:
--   cluster           cluster name
--   signal            canonical signal
--   node_name         node
--   expected_seconds  s in which the devices were seen
--   observed_seconds  s in which the signal was known
select
    cluster,
    signal,
    node_name,
    expected_seconds,
    observed_seconds
from report.coverage
where observed_seconds > expected_seconds + 0.001
