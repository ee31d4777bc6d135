-- Compute share of a partition in its device: 3/7 for 3g.40gb of an H100, 1/4 for 1g.6gb of an A30, 1/8 for one of eight CPX of an
-- MI300X, 1/2 for a tile of a Max 1550.
--
-- A compute instance counts its own slices: 1/7 for 1c.3g.71gb. An unknown profile counts as the smallest part.
--
-- parameters:
--   profile    MIG profile, or AMD's compute partition mode; none for a tile
--   gpu_model  model of the whole device
-- source: NVIDIA MIG user guide (supported profiles); AMD Instinct partitioning guide; Intel's data sheet
create macro partition_ratio(profile, gpu_model) as case lower(profile)
    when 'cpx' then 1 / if(gpu_model like '%MI300A%', 6, 8)
    when 'qpx' then 1 / 4
    when 'tpx' then 1 / 3
    when 'dpx' then 1 / 2
    else
        compute_slices(profile) / case
            when gpu_model like '%A30%' or gpu_model like '%RTX PRO 6000%' then 4
            when gpu_model like '%Max 1550%' then 2
            else 7
        end
end
