-- Width of a bin of a signal's values: a percentage point, 5 W, 1 °C. A quantile from bins is wrong by half a width at most.
--
-- parameters:
--   signal  canonical signal
-- source: fixed bins, so that those of hours, devices and clusters add up
create macro bin_width(signal) as case signal when 'power_watts' then 5 when 'gpu_temp_celsius' then 1 else 0.01 end
