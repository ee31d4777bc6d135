-- Measured amount, or null above the possible maximum; an unknown maximum excludes nothing.
--
-- parameters:
--   amount  s or bytes, as measured
--   most    s or bytes, possible maximum; null where unknown
-- source: violation time is at most the time; links carry at most their capacity
create macro believed(amount, most) as if(amount > most, null, amount)
