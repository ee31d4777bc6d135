"""Labels as dcgm-exporter 4.5.3-4.8.2 and the scrape write them, in their order."""

from __future__ import annotations

from gpureport.simulate.hardware import DRIVER_VERSION
from gpureport.simulate.inventory import Node, Row
from gpureport.simulate.workload import Pod

EXPORTER_JOB = "nvidia-dcgm-exporter"
DRA_DRIVER = "gpu.nvidia.com"
CLAIM_REQUEST = "gpu"


def device_labels(node: Node, row: Row) -> dict[str, str]:
    """Labels of every series of a GPU or MIG instance."""
    gpu = row.gpu
    labels = {"gpu": str(gpu.index), "UUID": gpu.uuid, "pci_bus_id": gpu.pci_bus_id, "device": f"nvidia{gpu.index}"}
    labels["modelName"] = gpu.model.name
    if row.instance:
        labels |= {"GPU_I_PROFILE": row.instance.name, "GPU_I_ID": row.gpu_instance_id}
    return labels | {"Hostname": node.name, "DCGM_FI_DRIVER_VERSION": DRIVER_VERSION}


def workload_labels(pod: Pod, row: Row) -> dict[str, str]:
    """Labels of the pod that holds it; this exporter does not know the uid of a pod served by DRA."""
    labels = {"container": pod.kind.container, "namespace": pod.namespace, "pod": pod.name}
    if pod.node.is_dra:
        return labels | {
            "dra_claim_name": claim_name(pod),
            "dra_claim_namespace": pod.namespace,
            "dra_driver_name": DRA_DRIVER,
            "dra_pool_name": pod.node.name,
            "dra_device_name": f"gpu-{row.gpu.index}",
        }
    return labels | {"pod_uid": pod.uid} | ({"vgpu": pod.slot.vgpu} if pod.slot.is_shared else {})


def claim_name(pod: Pod) -> str:
    """The claim that the controller made from the pod's template."""
    return f"{pod.name}-gpus-{pod.uid[:5]}"


def scrape_labels(instance: str, job: str = EXPORTER_JOB) -> dict[str, str]:
    """Labels that the scrape adds."""
    return {"instance": instance, "job": job}


def instance_label(node: Node, epoch: int) -> str:
    """The exporter's address, a new one after each of its restarts."""
    return f"10.{64 + node.index // 250}.{node.index % 250}.{7 + epoch % 240}:9400"
