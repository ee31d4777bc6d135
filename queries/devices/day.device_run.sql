-- Labels of each device over time; adjacent runs with equal labels are one row.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at, end_at, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- reads:  lake.device_label
-- source: labels of the device's series (Hostname, gpu, device, modelName, GPU_I_PROFILE, driver version)
select distinct * exclude (date) replace (start_at::timestamp as start_at, end_at::timestamp as end_at)
from lake.device_label
