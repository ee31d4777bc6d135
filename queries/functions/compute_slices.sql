-- Compute slices of a MIG profile: 3 of 3g.40gb, and of the compute instance 1c.3g.40gb, whose GPU instance it is part of. 1 if unknown.
--
-- parameters:
--   profile  MIG profile
-- source: NVIDIA MIG user guide (names of profiles)
create macro compute_slices(profile) as greatest(
    1, coalesce(try_cast(regexp_extract(profile, '(\d+)g\.', 1) as bigint), 1)
)
