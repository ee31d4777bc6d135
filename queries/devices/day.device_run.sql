-- Labels of each device over time; equal neighbors are one row.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at, end_at, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  lake.device_label
-- params:
-- source: labels of the device's series (Hostname, gpu, device, modelName, GPU_I_PROFILE, driver version)
-- columns:
--   cluster               cluster name
--   device_uuid           UUID of the physical GPU
--   gpu_instance_id       MIG instance; '' for the whole GPU
--   start_at              UTC, start of the span
--   end_at                UTC, its end, outside it
--   node_name             node, '' where unknown
--   gpu_index             index of the GPU on its node, '' where unknown
--   gpu_device            device name on the node, '' where unknown
--   gpu_model             model, '' where unknown
--   gpu_instance_profile  MIG profile, '' for the whole GPU
--   pci_bus_id            PCI address, '' where unknown
--   driver_version        GPU driver, '' where unknown
--   make                  nvidia, amd, intel, …; '' where unknown
select distinct
    cluster,
    device_uuid,
    gpu_instance_id,
    start_at::timestamp as start_at,
    end_at::timestamp as end_at,
    node_name,
    gpu_index,
    gpu_device,
    gpu_model,
    gpu_instance_profile,
    pci_bus_id,
    driver_version,
    make
from lake.device_label
