-- Reason of each unknown figure; figures without a reason are known.
--
-- parameters:
--   reasons  pairs of a figure and its reason, null for a known figure; a map of all figures takes three times as long
-- source: queries/catalog/reason.csv
create macro unknown_reasons(reasons) as map_from_entries([entry for entry in reasons if struct_extract_at(entry, 2) is not null])
