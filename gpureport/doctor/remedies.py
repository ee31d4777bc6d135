"""Exact lines to add, and their place: dcgm-exporter's metrics CSV and environment, ServiceMonitor, RBAC, kube-state-metrics."""

from __future__ import annotations

from collections.abc import Iterable

from gpureport.doctor.evidence import Remedy
from gpureport.values.catalog import Meaning
from gpureport.values.tables import SIGNAL_BY_NAME

DCGM = "dcgm-exporter"
_CSV = "metrics CSV of dcgm-exporter"
_ENVIRONMENT = "env of the dcgm-exporter container"
_KUBE_STATE = "arguments of kube-state-metrics"
_OWN_RULES = "rules of gpureport's ClusterRole"
_UNITS = {
    ("seconds", 1e-9): "ns",
    ("ratio", 1e-9): "ns",
    ("ratio", 0.01): "percent",
    ("bytes", 1048576.0): "MiB",
    ("joules", 0.001): "mJ",
    ("hertz", 1e6): "MHz",
    ("second", 1e6): "MB/s",
    ("second", 1.0): "bytes/s",
    ("celsius", 1.0): "degrees C",
    ("watts", 1.0): "W",
    ("joules", 1.0): "J",
    ("bytes", 1.0): "bytes",
    ("hertz", 1.0): "Hz",
    ("ratio", 1.0): "0 to 1",
    ("seconds", 1.0): "s",
}
_NODE_LABELS = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.strategy",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-1002.present",
)


def csv_row(meaning: Meaning) -> Remedy:
    """Return the row of dcgm-exporter's CSV that publishes the metric; its help text has the unit of the exporter's values."""
    signal = SIGNAL_BY_NAME[meaning.signal]
    unit = _UNITS.get((meaning.signal.rpartition("_")[2], meaning.factor))
    text = signal.doc.replace(",", ";")  # a comma would begin another column
    help_text = f"{text[0].upper()}{text[1:]}{f' (in {unit})' if unit else ''}."
    return Remedy(_CSV, (f"{meaning.metric}, {'counter' if meaning.kind == 'counter' else 'gauge'}, {help_text}",))


def published_by(meaning: Meaning) -> Remedy:
    """Return, for exporters without such a list, the metric's name and labels, and what the exporter needs for it."""
    labels = ", ".join(f'{name}="{value}"' for name, value in meaning.conditions if value != "*")
    series = f"{meaning.metric}{{{labels}}}" if labels else meaning.metric
    return Remedy(meaning.exporter, (f"{series}{f' (needs {meaning.needs})' if meaning.needs else ''}",))


def environment(**values: str) -> Remedy:
    """Return environment variables of dcgm-exporter."""
    lines = [line for name, value in values.items() for line in (f"- name: {name}", f'  value: "{value}"')]
    return Remedy(_ENVIRONMENT, tuple(lines))


NODE_NAME = Remedy(_ENVIRONMENT, ("- name: NODE_NAME", "  valueFrom:", "    fieldRef:", "      fieldPath: spec.nodeName"))
POD_RESOURCES = Remedy(
    "DaemonSet of dcgm-exporter, the kubelet's socket",
    (
        "volumeMounts:  # of the container",
        "- name: pod-resources",
        "  mountPath: /var/lib/kubelet/pod-resources",
        "  readOnly: true",
        "volumes:       # of the pod",
        "- name: pod-resources",
        "  hostPath:",
        "    path: /var/lib/kubelet/pod-resources",
    ),
)
RESOURCE_SLICES = Remedy(
    "ClusterRole of dcgm-exporter's service account",
    ("rules:", '- apiGroups: ["resource.k8s.io"]', '  resources: ["resourceslices"]', '  verbs: ["get", "list", "watch"]'),
)
GROUPS = Remedy(_OWN_RULES, ('- nonResourceURLs: ["/apis", "/version"]', '  verbs: ["get"]'))
NODE_LABELS = Remedy(_KUBE_STATE, (f"--metric-labels-allowlist=nodes=[{','.join(_NODE_LABELS)}]",))


def honor_labels(target: str) -> Remedy:
    """Return the setting of the scrape that keeps the target's own labels of pods and namespaces."""
    lines = ("spec:", "  endpoints:", "  - port: metrics  # the port that is there", "    honorLabels: true")
    return Remedy(f"ServiceMonitor of {target}", lines)


def may_list(group: str, resource: str) -> Remedy:
    """Return the rule that permits to list one kind and changes nothing; several such rules are one YAML list.

    No other verb than ``list`` is needed for a whole cluster; single objects are not fetched.
    """
    return Remedy(_OWN_RULES, (f'- apiGroups: ["{group}"]', f'  resources: ["{resource}"]', '  verbs: ["list"]'))


def allow_metrics(metrics: Iterable[str]) -> Remedy:
    """Return advice as a comment, not as a flag: a new allowlist would exclude all other metrics."""
    names = ",".join(metrics)
    return Remedy(
        _KUBE_STATE,
        (f"# {names}: not in --metric-denylist; in --metric-allowlist if that is set; pods and nodes in --resources",),
    )
