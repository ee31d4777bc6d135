-- Reason why a figure is null, or null where the figure is known well enough.
--
-- parameters:
--   seen_seconds    s in which the signal was known; null where it never was
--   elsewhere       reason where the signal is known of another scope (board_scope, instance_scope), else null
--   left_out        reason why values of the signal were left out at export, else null
--   needed_seconds  s in which it must be known for the figure to be shown
-- source: data coverage per figure (report.figure_min_coverage_ratio)
create macro why_unknown(seen_seconds, elsewhere, left_out, needed_seconds) as case
    when seen_seconds is null then coalesce(elsewhere, left_out, 'not_collected')
    when seen_seconds < needed_seconds then 'low_coverage'
end
