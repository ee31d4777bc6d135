"""What the labels of many series say, worked out once for those that differ in nothing but the metric's name."""

from __future__ import annotations

import hashlib

from gpureport.catalog import Catalog
from gpureport.series import METRIC_LABEL, Labels
from gpureport.shape.identity import Identity, identify
from gpureport.shape.reading import Reading

_Rest = tuple[tuple[str, str], ...]
"""Labels without the metric's name."""


def series_id(labels: Labels) -> int:
    """64-bit hash of the sorted labels, the metric's name among them; empty ones count as missing."""
    return _number(_text(labels))


class KnownLabels:
    """Identities and hashes of a batch's series; a device's dozen of metrics share all labels but the name."""

    def __init__(self, catalog: Catalog, reading: Reading) -> None:
        self._catalog = catalog
        self._reading = reading
        self._identities: dict[tuple[object, ...], Identity | None] = {}
        self._texts: dict[_Rest, tuple[str, str]] = {}

    def read(self, labels: Labels) -> tuple[Identity, int] | None:
        """As ``identify`` and ``series_id`` tell it."""
        meaning = self._catalog.meaning(labels)
        if meaning is None:
            return None
        rest = _rest(labels)
        alike = (rest, meaning.vendor, meaning.exporter, meaning.scope, meaning.names_device, meaning.is_device)
        if alike not in self._identities:
            self._identities[alike] = identify(labels, self._catalog, self._reading)
        found = self._identities[alike]
        if found is None:
            return None
        rest_says = found.device, found.holder_device, found.workload, found.provenance, found.device_labels
        return Identity(labels, meaning, *rest_says), self._series_id(labels[METRIC_LABEL], rest)

    def _series_id(self, name: str, rest: _Rest) -> int:
        if rest not in self._texts:
            before = _text({key: value for key, value in rest if key < METRIC_LABEL})
            after = _text({key: value for key, value in rest if key > METRIC_LABEL})
            self._texts[rest] = (f"{before}\x00" if before else "", f"\x00{after}" if after else "")
        before, after = self._texts[rest]
        return _number(f"{before}{METRIC_LABEL}\x01{name}{after}")


def _rest(labels: Labels) -> _Rest:
    rest = dict(labels)
    rest.pop(METRIC_LABEL, None)
    return tuple(rest.items())


def _text(labels: Labels) -> str:
    return "\x00".join(f"{name}\x01{labels[name]}" for name in sorted(labels) if labels[name] != "")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
