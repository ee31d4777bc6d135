"""Label names of device, workload and node in each exporter; the first existing name is used.

dcgm-exporter of all eras (label renamed in 655, ``--use-old-namespace``), nvidia_gpu_exporter, AMD device-metrics-exporter, Intel
XPUM and xpumd, GKE's device plugin, cAdvisor, HAMi, Kepler.
"""

from __future__ import annotations

import re

from gpureport.values.catalog import Meaning
from gpureport.values.series import Labels

UUID = ("UUID", "uuid", "gpu_uuid", "device_uuid", "deviceuuid", "vdie_id", "acc_id", "accelerator_id", "hw_id")
DEVICE_LABELS = (*UUID, "serial_number")
"""Labels that can identify a device, in order of preference."""
INSTANCE_ID = ("GPU_I_ID", "gpu_instance_id", "sub_dev")
COMPUTE_INSTANCE_ID = "GPU_CI_ID"
# Names that a scrape never adds come first. With one of them, pod, namespace and container may be the exporter's own.
UNSCRAPED_POD = ("podname", "podName", "kube_pod", "pod_name")
POD = (*UNSCRAPED_POD, "pod")
NAMESPACE = ("podnamespace", "kube_namespace", "pod_namespace", "exported_namespace", "namespace")
CONTAINER = ("ctrname", "containerName", "kube_container", "container_name", "exported_container", "container")
POD_UID = ("exported_pod_uid", "pod_uid", "uid", "pod_uuid", "pod_id")
HOST = ("Hostname", "hostname", "host_name", "node", "node_name", "nodename", "nodeid", "k8s_node_name")
REPLICA = ("prometheus_replica", "replica", "__replica__")
INDEX = ("gpu", "index", "gpu_id", "device_index", "gpu_number", "deviceidx")
DEVICE_FILE = ("device", "dev_file")
MODEL = (
    "modelName",
    "model_name",
    "card_series",
    "card_model",
    "gpu_model",
    "gpu_name",
    "hw_model",
    "dev_name",
    "model",
    "device_type",
    "devicetype",
    "instance_type",
)
PROFILE = ("GPU_I_PROFILE", "profile", "gpu_compute_partition_type")
PCI = ("pci_bus_id", "pci_bdf")
DRIVER = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "driver_version")

_NO_UUID = "00000000-0000-0000-0000-000000000000"
_NO_LABEL = {f"<<<{reason}>>>" for reason in ("NULL", "NOT_FOUND", "NOT_SUPPORTED", "NOT_PERM")} | {"N/A", "[N/A]", _NO_UUID}
"""Texts of DCGM, nvidia-smi and AMD's exporter for a missing value. None of them is a Kubernetes name."""
_NO_INSTANCE = 2_147_483_632
"""Smallest blank of 32 bits. For a GPU without instances NVML prints the largest number."""
_NVIDIA_UUID = re.compile(r"(?:GPU-)?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)
_EXPORTER = re.compile(
    r"(dcgm|[gn]pu|metrics?|xpumd?|xpu-manager)[-_]?exporter((-[a-z0-9]+)?-[a-z0-9]{5})?$|^(intel-)?xpum(d|anager)?(-|$)|^kepler(-|$)"
)
_GENERATED = re.compile(r"-([a-z0-9]{8,10}-)?[bcdfghjklmnpqrstvwxz2456789]{5}")  # suffix of a DaemonSet's or Deployment's pod
_COMPUTE_INSTANCE = re.compile(r"^\d+c\.(?=\d+g\.)")
_PORT = re.compile(r":[a-z0-9-]+$")


def first(labels: Labels, candidates: tuple[str, ...]) -> str:
    """Return the first of these labels that is not empty; '' where there is none."""
    for name in candidates:  # a loop, not a generator: it runs for every series
        if (value := labels.get(name)) and value not in _NO_LABEL:
            return value
    return ""


def device_uuid(labels: Labels, meaning: Meaning) -> str:
    """Return the device's identifier; for NVIDIA as the driver prints it, with prefix and in lower case."""
    uuid = first(labels, UUID)
    if meaning.vendor == "amd":  # each AMD partition has its own UUID and the serial number of its card
        serial = first(labels, ("serial_number",))
        if not _partition_mode(labels):
            return uuid or serial or _card_of_node(labels)
        return serial or (uuid if instance_id(labels, meaning) == "" else "") or _card_of_node(labels) or uuid
    if meaning.vendor == "aws" and not uuid:  # a Neuron core has only a number on its instance
        return f"{labels.get('instance_id') or node_name(labels)}/{labels['neuroncore']}"
    if meaning.vendor in ("nvidia", "") and (found := _NVIDIA_UUID.fullmatch(uuid)):
        return f"GPU-{found[1].lower()}"
    return uuid


def _partition_mode(labels: Labels) -> str:
    """Return the mode of AMD's card: spx for one partition, '' for a card without. A later partition may show "none"."""
    mode, part = labels.get("gpu_compute_partition_type", "").lower(), labels.get("gpu_partition_id", "")
    return "" if mode in ("", "na", "n/a") or (mode == "none" and part not in tuple("1234567")) else mode


def _card_of_node(labels: Labels) -> str:
    """Return node and number of a card's first partition: AMD's serial number is empty in a VM (device-metrics-exporter)."""
    card, part = labels.get("gpu_id", ""), labels.get("gpu_partition_id", "")
    first_part = int(card) - int(part) if card.isdecimal() and part.isdecimal() and len(card + part) < 20 else -1
    return f"{node_name(labels)}/{card if first_part < 0 else first_part}" if card else ""


def instance_id(labels: Labels, meaning: Meaning) -> str:
    """Return the part: MIG GPU instance (``1/0``: one of several), AMD partition, Intel tile; '' for the whole device."""
    if meaning.vendor == "amd":
        return "" if _partition_mode(labels) in ("", "spx") else labels.get("gpu_partition_id", "")
    instance, inner = first(labels, INSTANCE_ID), labels.get(COMPUTE_INSTANCE_ID)
    if instance.isdecimal() and float(instance) >= _NO_INSTANCE:
        return ""
    return f"{instance}/{inner}" if instance and inner and _COMPUTE_INSTANCE.match(first(labels, PROFILE)) else instance


def profile(labels: Labels, instance_id: str) -> str:
    """Return a partition's profile. A compute instance without its own id (1c.3g.40gb) has the profile of its GPU instance."""
    found = first(labels, PROFILE) if instance_id else ""
    return found if "/" in instance_id else _COMPUTE_INSTANCE.sub("", found)


def node_name(labels: Labels) -> str:
    """Return the node name. Where it is the exporter pod's name (its pod lacks NODE_NAME), the scrape's label is used."""
    host = first(labels, HOST)
    if host and host in (labels.get("pod"), labels.get("exporter_pod")):
        return labels.get("node") or host
    return host or scraped_host(labels)


def scraped_host(labels: Labels) -> str:
    """Return the scraped host without the port. A federated series has its original target, not the other Prometheus."""
    return _PORT.sub("", labels.get("exported_instance") or labels.get("instance", ""))


def exported_container(labels: Labels) -> str:
    """Return the workload's container for ``exported_pod``. A target without a container does not rename the label."""
    own = labels.get("container", "")
    return labels.get("exported_container") or ("" if _EXPORTER.search(own) else own)


def is_exporter(labels: Labels, pod: str, is_honored: bool = False) -> bool:
    """Whether the pod is the exporter's own: target labels that replaced the exporter's labels (dcgm-exporter 27, 85, 144).

    Where a job's labels are honored, a name like the job's does not mean that.
    """
    container = first(labels, CONTAINER)
    if _EXPORTER.search(pod) or _EXPORTER.search(container) or pod in (labels.get("Hostname"), labels.get("hostname")):
        return True
    # A PodMonitor's job is its namespace and name. A name with another suffix than a generated one is a workload's.
    names = labels.get("service"), labels.get("job", "").rpartition("/")[2]
    return not is_honored and any(name and pod.startswith(name) and _GENERATED.fullmatch(pod, len(name)) for name in names)
