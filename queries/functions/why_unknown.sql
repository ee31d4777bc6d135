-- Reason why a figure is null; null for a figure with enough data.
--
-- parameters:
--   seen_seconds    s in which the signal was known; null if never
--   elsewhere       reason if the signal is known for another scope (board_scope, instance_scope), else null
--   left_out        reason for values dropped at export, else null
--   needed_seconds  s of known signal that the figure needs
-- source: data coverage per figure (report.figure_min_coverage_ratio)
create macro why_unknown(seen_seconds, elsewhere, left_out, needed_seconds) as case
    when seen_seconds is null then coalesce(elsewhere, left_out, 'not_collected')
    when seen_seconds < needed_seconds then 'low_coverage'
end
