-- Activity of a GPU at one sample: true, false, or null where no signal is known. The report's one definition of "active".
--
-- An open context alone has 6e-5 engine activity, not 0. A copy over PCIe is work without a kernel.
--
-- parameters:
--   gpu_util_ratio             share of time with a kernel running, 0..1
--   gr_engine_active_ratio     engine activity, 0..1
--   sm_active_ratio            SM activity, 0..1
--   pcie_tx_bytes_per_second   B/s device to host
--   pcie_rx_bytes_per_second   B/s host to device
-- source: idle H100 and H200 with an open context (power-attribution recordings); thresholds 0.001 and 100 MB/s
create macro is_active(
    gpu_util_ratio, gr_engine_active_ratio, sm_active_ratio, pcie_tx_bytes_per_second, pcie_rx_bytes_per_second
) as greatest(
    gpu_util_ratio > 0,
    gr_engine_active_ratio >= 0.001,
    sm_active_ratio >= 0.001,
    nullif(pcie_tx_bytes_per_second >= 1e8, false),
    nullif(pcie_rx_bytes_per_second >= 1e8, false)
)
