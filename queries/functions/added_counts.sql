-- Counts by reason, added over maps.
--
-- parameters:
--   counts  list of maps reason → count
-- source: values that the shape of a day leaves out, by reason
create macro added_counts(counts) as map_from_entries(list_transform(
    list_sort(list_distinct(flatten(list_transform(counts, lambda each: map_keys(each))))),
    lambda reason: {
        'reason': reason,
        'count': list_sum(list_transform(counts, lambda each: coalesce(each[reason], 0)))::bigint
    }
))
