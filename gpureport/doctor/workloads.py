"""Workload and host labels on device series: the named workloads, the form of the names, and what that hides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpureport.collect.shape import names
from gpureport.collect.shape.identity import Identity, identify
from gpureport.collect.shape.reading import read_labels
from gpureport.doctor import remedies
from gpureport.doctor.evidence import Carried, Evidence, Finding, KubeState, is_accelerator, listed
from gpureport.values.catalog import Catalog
from gpureport.values.series import Labels

POD_SERIES = ["kube_pod_info", "kube_pod_container_resource_requests", "kube_pod_resourceclaim_info"]
"""Series that show whether a pod can hold a device: its address, its requests, its claims."""
SAMPLED_HOSTS = 25
SAMPLED_SERIES = 5_000


def leading_metrics(carried: Sequence[Carried]) -> list[str]:
    """Return for each exporter the metric that most devices have; among equals, the first by name."""
    counts: dict[str, Counter[str]] = {}
    for each in carried:
        counts.setdefault(each.exporter, Counter())[each.metric] += each.device_count
    return [min(found, key=lambda metric: (-found[metric], metric)) for found in counts.values()]


def chosen_hosts(carried: Iterable[Carried]) -> list[tuple[str, str]]:
    """Return host labels and hosts: at least one of each model, with and without MIG; others spread evenly over the names."""
    kinds: dict[tuple[str, bool], tuple[str, str]] = {}
    hosts: set[tuple[str, str]] = set()
    for each in sorted(carried, key=lambda each: each.host):
        kinds.setdefault((each.model, each.is_mig), (each.host_label, each.host))
        hosts.add((each.host_label, each.host))
    step = max(1, -(-len(hosts) // SAMPLED_HOSTS))
    return sorted({*sorted(hosts)[::step], *kinds.values()})


def named_pods(labels: Iterable[Labels]) -> list[str]:
    """Return the names of pods on device series."""
    return sorted({pod for each in labels for pod in (names.first(each, names.POD), each.get("exported_pod")) if pod})


SILENT = ("nvidia_gpu_exporter", "xpumd", "kepler", "opentelemetry-dcgm", "neuron-monitor")
"""Exporters that never name the workload on a device's series; all others can."""
HOLDER_TABLES = ("container.*", "container_saturation.*", "container_power.*")
_SHARED_RESOURCE = "nvidia_com_gpu_shared"


@dataclass(frozen=True)
class IdentifiedSeries:
    """Label sets of device series, interpreted as in an export."""

    identities: tuple[Identity, ...]

    @cached_property
    def by_exporter(self) -> Mapping[str, Sequence[Identity]]:
        """Exporter → its series."""
        found: dict[str, list[Identity]] = defaultdict(list)
        for each in self.identities:
            found[each.meaning.exporter].append(each)
        return found

    @cached_property
    def owned(self) -> Sequence[Identity]:
        """Series that name a workload."""
        return [each for each in self.identities if each.is_owned]

    def has(self, label: str) -> bool:
        """Return whether any series has the label with a value."""
        return any(each.labels.get(label) for each in self.identities)


def identify_series(labels: Sequence[Labels], catalog: Catalog, pods: Sequence[Labels] = ()) -> IdentifiedSeries:
    """Interpret the label sets, together with those of pods; label sets that name no device are left out."""
    reading = read_labels([*labels, *pods])
    read = (identify(each, catalog, reading) for each in labels)
    return IdentifiedSeries(tuple(each for each in read if each is not None))


def workload_findings(evidence: Evidence, catalog: Catalog) -> list[Finding]:
    """Return findings on the holders of devices; none without device series."""
    seen = identify_series(evidence.labels, catalog, evidence.pods)
    if not seen.identities:
        return []
    refuted = _refuted(seen, evidence.pods)
    found = [*_names(seen, evidence.kube, refuted), *_target_labels(seen), *_uids(seen, evidence.kube)]
    return [*found, *_sharing(seen, evidence), *_claims(seen, evidence.kube), *_alternating(seen, evidence)]


def _refuted(seen: IdentifiedSeries, pods: Sequence[Labels]) -> dict[tuple[str, str], str]:
    """Return the named pods that cannot hold a device, each with the evidence."""
    address = {_pod_of(each): each.get("pod_ip") for each in pods if each.get("pod_ip") != each.get("host_ip")}
    known = {_pod_of(each) for each in pods if each.get("resource")}
    requesting = {_pod_of(each) for each in pods if is_accelerator(each.get("resource", "")) or each.get("claim_name")}
    found = {}
    for each in seen.owned:
        pod = each.workload.namespace, each.workload.pod
        if pod not in requesting and address.get(pod) and address[pod] == names.scraped_host(each.labels):
            found[pod] = "its address is scraped"
        elif pod in known - requesting:
            found[pod] = "requests no accelerator"
    return found


def _pod_of(labels: Labels) -> tuple[str, str]:
    return (labels.get("exported_namespace") or labels.get("namespace", ""), labels.get("exported_pod") or labels.get("pod", ""))


def _names(seen: IdentifiedSeries, kube: KubeState, refuted: Mapping[tuple[str, str], str]) -> list[Finding]:
    silent = [exporter for exporter in seen.by_exporter if exporter in SILENT]
    findings = [
        Finding("exporter_without_pods", "note", exporter, "names no workloads by design; use another source")
        for exporter in silent
    ]
    if refuted:
        text = ", ".join(f"{namespace}/{pod} ({why})" for (namespace, pod), why in sorted(refuted.items()))
        findings.append(Finding("refuted_holders", "note", "holders", f"labels name pods that cannot hold a GPU: {text}"))
    pods = {(each.workload.namespace, each.workload.pod) for each in seen.owned} - refuted.keys()
    if pods:
        return [*findings, Finding("pod_labels", "ok", "holders", f"named pods on the examined devices: {len(pods)}")]
    if kube.series.get("kube_pod_info") and not kube.requests:
        text = "no workload is named, and no pod requests an accelerator: nothing to check"
        return [*findings, Finding("pod_labels", "note", "holders", text)]
    return [*findings, _no_names(seen, kube)]


def _no_names(seen: IdentifiedSeries, kube: KubeState) -> Finding:
    request_count = sum(kube.requests.values())
    text = "no series names a workload" + (f", though containers request accelerators ({request_count})" if request_count else "")
    add = []
    if remedies.DCGM in seen.by_exporter:
        add = [remedies.environment(DCGM_EXPORTER_KUBERNETES="true"), remedies.POD_RESOURCES]
        if _SHARED_RESOURCE in kube.requests:  # the exporter matches it only if it is named (dcgm-exporter 151)
            add.append(remedies.environment(NVIDIA_RESOURCE_NAMES="nvidia.com/gpu.shared"))
    return Finding("pod_labels", "missing", "holders", text, HOLDER_TABLES, tuple(add))


def _target_labels(seen: IdentifiedSeries) -> list[Finding]:
    """Find jobs with workloads in exported_pod, or with the exporter's own pod in pod and no workload there."""
    honored = {each.provenance.job for each in seen.owned if not each.labels.get("exported_pod")}
    jobs = {each.provenance.job for each in seen.identities if _is_relabelled(each)} - honored
    text = (
        "pod labels are the exporter's own and the workload is in exported_pod; read correctly here, but not by other dashboards"
    )
    return [
        Finding("target_labels_win", "note", job or "a job without a name", text, (), (remedies.honor_labels("the exporter"),))
        for job in sorted(jobs)
    ]


def _is_relabelled(each: Identity) -> bool:
    """Return whether target labels replaced the exporter's. With its own labels, a series without a workload has no pod."""
    pod = names.first(each.labels, names.POD)
    return bool(each.labels.get("exported_pod")) or (not each.is_owned and bool(pod) and names.is_exporter(each.labels, pod))


def _uids(seen: IdentifiedSeries, kube: KubeState) -> list[Finding]:
    without = [each for each in seen.owned if not each.workload.pod_uid and each.meaning.exporter == remedies.DCGM]
    if not without:
        return []
    has_info = bool(kube.series.get("kube_pod_info"))
    joined = "; found by name and time in kube_pod_info" if has_info else "; pods with the same name cannot be distinguished"
    add = (remedies.environment(DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID="true"),)
    return [Finding("pod_uid", "note", "holders", f"workloads are named without the pod's uid{joined}", (), add)]


def _sharing(seen: IdentifiedSeries, evidence: Evidence) -> list[Finding]:
    """Find nodes with more allocatable GPUs than devices: time slicing and MPS share a GPU (gpu-operator 684)."""
    if seen.has("vgpu"):
        return []
    nodes = [node for node, count in _nvidia_devices(evidence).items() if 0 < count < _allocatable_gpus(evidence.kube, node)]
    if not nodes:
        return []
    text = f"more GPUs are allocatable than exist on {listed(sorted(nodes))}: labels name only one of several holders"
    add = (remedies.environment(KUBERNETES_VIRTUAL_GPUS="true"),)
    return [Finding("shared_one_owner", "partial", "holders", text, HOLDER_TABLES, add)]


def _allocatable_gpus(kube: KubeState, node: str) -> int:
    resources = kube.allocatable.get(node, {})
    return resources.get("nvidia_com_gpu", 0) + resources.get(_SHARED_RESOURCE, 0)


def _nvidia_devices(evidence: Evidence) -> dict[str, int]:
    """Return node → whole GPUs that dcgm-exporter reports there."""
    most: dict[str, dict[str, int]] = defaultdict(dict)
    for each in evidence.carried:
        if each.exporter == remedies.DCGM and not each.is_mig:
            node = each.host if each.host in evidence.kube.nodes else each.node
            most[node][each.model] = max(most[node].get(each.model, 0), each.device_count)
    return {node: sum(counts.values()) for node, counts in most.items()}


def _claims(seen: IdentifiedSeries, kube: KubeState) -> list[Finding]:
    if not kube.series.get("kube_pod_resourceclaim_info") or seen.has("dra_claim_name"):
        return []
    if remedies.DCGM not in seen.by_exporter:
        return []
    enable = (remedies.environment(KUBERNETES_ENABLE_DRA="true"), remedies.RESOURCE_SLICES)
    if seen.has("vgpu"):
        text = "in virtual-GPU mode the exporter does not read claims; switch that mode off where claims are used"
        off = remedies.environment(KUBERNETES_VIRTUAL_GPUS="false")
        return [Finding("virtual_gpus_hide_claims", "partial", "holders", text, HOLDER_TABLES, (off, *enable))]
    text = "pods have resource claims, but no device series carries dra_* labels"
    return [Finding("claim_labels", "partial", "holders", text, HOLDER_TABLES, enable)]


def _alternating(seen: IdentifiedSeries, evidence: Evidence) -> list[Finding]:
    if not evidence.alternating_devices or seen.has("vgpu"):
        return []
    text = f"devices with labels of A, then B, then A again: {evidence.alternating_devices}; shared without virtual-GPU mode"
    add = (remedies.environment(KUBERNETES_VIRTUAL_GPUS="true"),)
    return [Finding("alternating_owner", "note", "holders", text, (), add)]


def replica_findings(labels: Iterable[Labels], catalog: Catalog) -> list[Finding]:
    """Return findings on devices with two copies of series; they count once, but cost the server twice."""
    seen = identify_series(list(labels), catalog)
    replicas = {each.provenance.replica for each in seen.identities} - {""}
    jobs: dict[tuple[object, str], set[str]] = defaultdict(set)
    for each in seen.identities:
        jobs[each.holder_device, each.meaning.metric].add(each.provenance.job)
    several = sorted({job for found in jobs.values() if len(found) > 1 for job in found})
    findings = []
    if len(replicas) > 1:
        findings.append(
            Finding("replicas", "note", "scrape", f"replicas {', '.join(sorted(replicas))}; each device is counted once")
        )
    if several:
        text = f"jobs {', '.join(several)} scrape the same devices; each device is counted once"
        findings.append(Finding("replicas", "note", "scrape", text))
    return findings
