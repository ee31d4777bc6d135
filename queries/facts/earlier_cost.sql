-- What the GPUs that were held in the window before the report's cost; built as facts.earlier_ledger is.
--
-- grain:  cluster
-- reads:  facts.window_cost
-- params:
-- source: facts.window_cost of the window before
-- columns:
--   cluster         cluster name
--   allocated_cost  GPU-hours held x the model's price, of models that have one; null without any
select * from facts.window_cost
