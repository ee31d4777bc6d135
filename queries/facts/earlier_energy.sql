-- The energy of each cluster's GPUs in the window before the report's; built as facts.earlier_ledger is.
--
-- grain:  cluster
-- reads:  facts.window_energy
-- params:
-- source: facts.window_energy of the window before
-- columns:
--   cluster        cluster name
--   energy_joules  J, as far as it is known
select * from facts.window_energy
