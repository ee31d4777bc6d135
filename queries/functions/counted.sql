-- Number with its noun for a sentence: 1 GPU, 2 GPUs.
--
-- parameters:
--   amount  whole number
--   noun    singular noun with a plural in s
-- source: evidence of findings, outlook of the runway
create macro counted(amount, noun) as format('{:,} {}{}', amount::bigint, noun, if(amount = 1, '', 's'))
