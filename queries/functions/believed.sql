-- Amount that was measured, or null where it is more than there can have been; an unknown bound bounds nothing.
--
-- parameters:
--   amount  s or bytes, as measured
--   most    s or bytes that there can have been; null where it is unknown
-- source: violation time is at most the time; links carry at most their capacity
create macro believed(amount, most) as if(amount > most, null, amount)
