-- Reason of each figure that is unknown; figures without a reason are known.
--
-- parameters:
--   reasons  map of reason by figure, null where the figure is known
-- source: queries/catalog/reason.csv
create macro unknown_reasons(reasons) as map_from_entries([entry for entry in map_entries(reasons) if entry.value is not null])
