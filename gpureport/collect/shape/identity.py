"""Identity of a series: device, workload, node and provenance, read from labels.

Exporters use different label names, listed in ``names.py``. An empty label counts as missing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from gpureport.collect.shape import names
from gpureport.collect.shape.names import first
from gpureport.collect.shape.reading import PLAIN, Reading, target
from gpureport.values.catalog import Catalog, Meaning
from gpureport.values.series import METRIC_LABEL, Labels


class DeviceKey(NamedTuple):
    """Identity of a GPU or MIG instance within its cluster."""

    device_uuid: str
    gpu_instance_id: str


class Workload(NamedTuple):
    """Workload in a series' labels; ``pod_uid`` is '' where they lack it."""

    namespace: str
    pod: str
    pod_uid: str
    container: str


class Provenance(NamedTuple):
    """Scrape target of a sample. Copies of a value differ in it or in the workload."""

    job: str
    instance: str
    replica: str


class DeviceLabels(NamedTuple):
    """Description of a device in its labels."""

    node_name: str
    gpu_index: str
    gpu_device: str
    gpu_model: str
    gpu_instance_profile: str
    pci_bus_id: str
    driver_version: str
    make: str


NO_WORKLOAD = Workload("", "", "", "")


@dataclass(frozen=True)
class Identity:
    """Content of a series' labels."""

    labels: Labels
    meaning: Meaning
    device: DeviceKey | None
    """The device whose rows have the value; None for other values."""
    holder_device: DeviceKey | None
    """The device or instance of the workload labels: under MIG the instance, also for board values."""
    workload: Workload
    provenance: Provenance
    device_labels: DeviceLabels

    @property
    def is_owned(self) -> bool:
        """Whether the labels have a workload."""
        return self.workload.pod != ""

    @property
    def node_name_rank(self) -> int:
        """Rank of the node name's source: 0 DCGM, 1 another exporter, 2 the scraped address, 3 none."""
        if not self.device_labels.node_name:
            return 3
        is_scraped = self.device_labels.node_name == names.scraped_host(self.labels)
        return 2 if is_scraped else int(self.meaning.exporter != "dcgm-exporter")


def identify(labels: Labels, catalog: Catalog, reading: Reading = PLAIN) -> Identity | None:
    """Read a series' labels. None for a metric outside of the catalog, and for a device value without a device."""
    meaning = catalog.meaning(labels)
    if meaning is None:
        return None
    raw, labels = labels, catalog.spelled(labels)
    uuid = names.device_uuid(labels, meaning) if meaning.scope != "cluster" else ""
    if meaning.names_device and not uuid:
        return None
    instance_id = names.instance_id(labels, meaning) if uuid else ""
    holder = DeviceKey(uuid, instance_id) if uuid else None
    board = meaning.scope == "board"
    return Identity(
        labels=raw,
        meaning=meaning,
        device=(DeviceKey(uuid, "") if board else holder) if meaning.is_device else None,
        holder_device=holder,
        workload=_workload(labels, meaning, reading),
        provenance=Provenance(labels.get("job", ""), labels.get("instance", ""), first(labels, names.REPLICA)),
        device_labels=_device_labels(labels, meaning, instance_id),
    )


def _workload(labels: Labels, meaning: Meaning, reading: Reading) -> Workload:
    if meaning.is_of_host:
        return NO_WORKLOAD
    if meaning.exporter == "kepler":  # in Kepler's series the labels pod and container are those of Kepler's own pod
        return Workload(labels.get("pod_namespace", ""), labels.get("pod_name", ""), labels.get("pod_id", ""), "")
    if pod := labels.get("exported_pod"):
        namespace = labels.get("exported_namespace", "")
        return Workload(namespace, pod, first(labels, names.POD_UID), names.exported_container(labels))
    pod = first(labels, names.POD)
    if not pod or (pod == labels.get("pod") and target(labels) in reading.exporters):
        return NO_WORKLOAD
    if pod not in reading.requesting and names.is_exporter(labels, pod, labels.get("job", "") in reading.honoring):
        return NO_WORKLOAD
    return Workload(first(labels, names.NAMESPACE), pod, first(labels, names.POD_UID), first(labels, names.CONTAINER))


def _model(labels: Labels, exporter: str) -> str:
    if exporter == "nvidia_gpu_exporter":
        return labels.get("name", "")
    model = first(labels, names.MODEL)
    return model.removeprefix("NVIDIA-") if exporter == "hami" else model  # HAMi: vendor, dash, the driver's name


def _device_labels(labels: Labels, meaning: Meaning, instance_id: str) -> DeviceLabels:
    if meaning.scope == "cluster":
        return DeviceLabels(names.node_name(labels), "", "", "", "", "", "", "")
    return DeviceLabels(
        node_name=names.node_name(labels),
        gpu_index=first(labels, names.INDEX),
        gpu_device=first(labels, names.DEVICE_FILE),
        gpu_model=_model(labels, meaning.exporter),
        gpu_instance_profile=names.profile(labels, instance_id),
        pci_bus_id=first(labels, names.PCI),
        driver_version=first(labels, names.DRIVER),
        make=labels.get("make") or meaning.vendor,
    )


_Rest = tuple[tuple[str, str], ...]
"""Labels without the metric name."""


def series_id(labels: Labels) -> int:
    """Return a hash of the sorted labels and the metric name. Empty labels are left out."""
    return _number(_text(labels))


@dataclass(frozen=True)
class _LabelIdentities:
    """Identities of one label set by kind of metric, and the hashed text before and after the metric name."""

    before: str
    after: str
    identities: dict[tuple[object, ...], Identity | None] = field(default_factory=dict)

    @classmethod
    def of_labels(cls, rest: _Rest) -> _LabelIdentities:
        before = _text({name: value for name, value in rest if name < METRIC_LABEL})
        after = _text({name: value for name, value in rest if name > METRIC_LABEL})
        return cls(f"{before}\x00" if before else "", f"\x00{after}" if after else "")


class KnownLabels:
    """Identities and hashes of a batch's series. A device's many metrics share all labels but the name."""

    def __init__(self, catalog: Catalog, reading: Reading) -> None:
        self._catalog = catalog
        self._reading = reading
        self._known: dict[_Rest, _LabelIdentities] = {}

    def read(self, labels: Labels) -> tuple[Identity, int] | None:
        """Return the results of ``identify`` and ``series_id``."""
        meaning = self._catalog.meaning(labels)
        if meaning is None:
            return None
        rest = _rest(labels)
        known = self._known.get(rest)  # one lookup: hashing a dozen labels takes longer than the rest
        if known is None:
            known = self._known[rest] = _LabelIdentities.of_labels(rest)
        kind = (meaning.vendor, meaning.exporter, meaning.scope, meaning.holder, meaning.names_device, meaning.is_device)
        if kind not in known.identities:
            known.identities[kind] = identify(labels, self._catalog, self._reading)
        found = known.identities[kind]
        if found is None:
            return None
        shared = found.device, found.holder_device, found.workload, found.provenance, found.device_labels
        number = _number(f"{known.before}{METRIC_LABEL}\x01{labels[METRIC_LABEL]}{known.after}")
        return Identity(labels, meaning, *shared), number


def _rest(labels: Labels) -> _Rest:
    rest = dict(labels)
    rest.pop(METRIC_LABEL, None)
    return tuple(rest.items())


def _text(labels: Labels) -> str:
    return "\x00".join(f"{name}\x01{labels[name]}" for name in sorted(labels) if labels[name] != "")


def _number(text: str) -> int:
    """Return a 63-bit hash: few engines support unsigned integers."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
