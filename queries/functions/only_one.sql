-- The only text of a group, from its first and last text in order; '' if they differ.
--
-- parameters:
--   lowest   first text in order; null for an empty group
--   highest  last text in order
-- source: subjects of findings that are about several pods, nodes or GPUs
create macro only_one(lowest, highest) as if(lowest = highest, lowest, '')
