-- Number of things with their name, as sentences have it: 1 GPU, 2 GPUs.
--
-- parameters:
--   amount  whole number of things
--   noun    name of one, whose plural ends in s
-- source: evidence of findings, outlook of the runway
create macro counted(amount, noun) as format('{} {}{}', amount::bigint, noun, if(amount = 1, '', 's'))
