"""The names and units of each era and exporter: DCGM's field list, dcgm-exporter's CSV files, others' documentation."""

from __future__ import annotations

from collections.abc import Mapping

MIB = 1048576.0
CAPACITY_MIB = 143_770
LATER_DRIVER = "580.167.08"
Renaming = Mapping[str, tuple[str, float]]
"""Old name → the era's name, and what the old value is multiplied by."""

OLD_NAMESPACE: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("dcgm_power_usage", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("dcgm_total_energy_consumption", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("dcgm_gpu_utilization", 1),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("dcgm_mem_copy_utilization", 1),
    "DCGM_FI_DEV_FB_USED": ("dcgm_fb_used", 1),
    "DCGM_FI_DEV_FB_FREE": ("dcgm_fb_free", 1),
    "DCGM_FI_DEV_SM_CLOCK": ("dcgm_sm_clock", 1),
    "DCGM_FI_DEV_MEM_CLOCK": ("dcgm_memory_clock", 1),
    "DCGM_FI_DEV_GPU_TEMP": ("dcgm_gpu_temp", 1),
    "DCGM_FI_DEV_XID_ERRORS": ("dcgm_xid_errors", 1),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("dcgm_pcie_replay_counter", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("dcgm_fi_prof_gr_engine_active", 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("dcgm_fi_prof_pipe_tensor_active", 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dcgm_fi_prof_dram_active", 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("dcgm_fi_prof_pcie_tx_bytes", 1),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("dcgm_fi_prof_pcie_rx_bytes", 1),
}

OLD_LABELS = {"UUID": "uuid", "pod": "pod_name", "namespace": "pod_namespace", "container": "container_name"}

DCGM_4_7: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("DCGM_FI_DEV_BOARD_POWER_WATTS", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3),
    "DCGM_FI_DEV_GPU_UTIL": ("DCGM_FI_DEV_GPU_UTIL_RATIO", 1e-2),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1e-2),
    "DCGM_FI_DEV_FB_USED": ("DCGM_FI_DEV_FB_USED_BYTES", MIB),
    "DCGM_FI_DEV_FB_FREE": ("DCGM_FI_DEV_FB_FREE_BYTES", MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("DCGM_FI_DEV_FB_RESERVED_BYTES", MIB),
    "DCGM_FI_DEV_SM_CLOCK": ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_GPU_TEMP": ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1),
    "DCGM_FI_DEV_XID_ERRORS": ("DCGM_FI_DEV_XID_ERROR", 1),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1),
    "DCGM_FI_PROF_SM_ACTIVE": ("DCGM_FI_PROF_SM_UTIL_RATIO", 1),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1),
    "DCGM_FI_DEV_POWER_VIOLATION": ("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": ("DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": ("DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", 1e-9),
}

NVIDIA_SMI: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("nvidia_smi_power_draw_watts", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("nvidia_smi_energy_joules_total", 1e-3),
    "DCGM_FI_DEV_GPU_UTIL": ("nvidia_smi_utilization_gpu_ratio", 1e-2),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("nvidia_smi_utilization_memory_ratio", 1e-2),
    "DCGM_FI_DEV_FB_USED": ("nvidia_smi_memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE": ("nvidia_smi_memory_free_bytes", MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("nvidia_smi_memory_reserved_bytes", MIB),
    "DCGM_FI_DEV_SM_CLOCK": ("nvidia_smi_clocks_current_sm_clock_hz", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("nvidia_smi_clocks_current_memory_clock_hz", 1e6),
    "DCGM_FI_DEV_GPU_TEMP": ("nvidia_smi_temperature_gpu", 1),
}

NVIDIA_SMI_FLAGS = {
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}

AMD: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("amd_gpu_package_power", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("amd_gpu_energy_consumed", 1000),
    "DCGM_FI_DEV_GPU_UTIL": ("amd_gpu_gfx_activity", 1),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("amd_gpu_umc_activity", 1),
    "DCGM_FI_DEV_FB_USED": ("amd_gpu_used_vram", 1),
    "DCGM_FI_DEV_FB_FREE": ("amd_gpu_free_vram", 1),
    "DCGM_FI_DEV_GPU_TEMP": ("amd_gpu_junction_temperature", 1),
}

BOARD_METRICS = (
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
)

INSTANCE_METRICS = (
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
)
