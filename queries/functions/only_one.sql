-- The one text that a list holds, however often; '' where it holds several.
--
-- parameters:
--   found  list of texts, none of them null
-- source: subjects of findings that are about several pods, nodes or GPUs
create macro only_one(found) as if(len(list_distinct(found)) = 1, found[1], '')
