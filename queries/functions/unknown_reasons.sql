-- Reason of each figure that is unknown; figures without a reason are known.
--
-- parameters:
--   reasons  pairs of a figure and its reason, null where the figure is known; to make a map of all of them takes three times as long
-- source: queries/catalog/reason.csv
create macro unknown_reasons(reasons) as map_from_entries([entry for entry in reasons if struct_extract_at(entry, 2) is not null])
