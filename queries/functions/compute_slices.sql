-- Compute slices of a MIG profile: 3 for 3g.40gb, 1 for its compute instance 1c.3g.40gb; 1 if unknown.
--
-- parameters:
--   profile  MIG profile
-- source: NVIDIA MIG user guide (names of profiles)
create macro compute_slices(profile) as coalesce(
    try_cast(regexp_extract(profile, '(\d+)[cg]\.', 1) as bigint), 1
)
