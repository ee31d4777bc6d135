-- The one text of a group, by the first and the last of its texts; '' where they differ.
--
-- parameters:
--   lowest   the smallest of the texts; null where there are none
--   highest  the largest of them
-- source: subjects of findings that are about several pods, nodes or GPUs
create macro only_one(lowest, highest) as if(lowest = highest, lowest, '')
