"""Identities of many series, worked out once for those that differ in nothing but the metric's name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from gpureport.collect.shape.identity import Identity, identify
from gpureport.collect.shape.reading import Reading
from gpureport.values.catalog import Catalog
from gpureport.values.series import METRIC_LABEL, Labels

_Rest = tuple[tuple[str, str], ...]
"""Labels without the metric's name."""


def series_id(labels: Labels) -> int:
    """Hash of the sorted labels, the metric's name among them; empty ones count as missing."""
    return _number(_text(labels))


@dataclass(frozen=True)
class _Said:
    """Identity of labels without a metric's name, by kind of metric, and the text hashed around its name."""

    before: str
    after: str
    identities: dict[tuple[object, ...], Identity | None] = field(default_factory=dict)

    @classmethod
    def by(cls, rest: _Rest) -> _Said:
        before = _text({name: value for name, value in rest if name < METRIC_LABEL})
        after = _text({name: value for name, value in rest if name > METRIC_LABEL})
        return cls(f"{before}\x00" if before else "", f"\x00{after}" if after else "")


class KnownLabels:
    """Identities and hashes of a batch's series; a device's dozen of metrics share all labels but the name."""

    def __init__(self, catalog: Catalog, reading: Reading) -> None:
        self._catalog = catalog
        self._reading = reading
        self._said: dict[_Rest, _Said] = {}

    def read(self, labels: Labels) -> tuple[Identity, int] | None:
        """As ``identify`` and ``series_id`` tell it."""
        meaning = self._catalog.meaning(labels)
        if meaning is None:
            return None
        rest = _rest(labels)
        said = self._said.get(rest)  # looked up once: to hash a dozen labels takes longer than all else here
        if said is None:
            said = self._said[rest] = _Said.by(rest)
        alike = (meaning.vendor, meaning.exporter, meaning.scope, meaning.holder, meaning.names_device, meaning.is_device)
        if alike not in said.identities:
            said.identities[alike] = identify(labels, self._catalog, self._reading)
        found = said.identities[alike]
        if found is None:
            return None
        rest_says = found.device, found.holder_device, found.workload, found.provenance, found.device_labels
        number = _number(f"{said.before}{METRIC_LABEL}\x01{labels[METRIC_LABEL]}{said.after}")
        return Identity(labels, meaning, *rest_says), number


def _rest(labels: Labels) -> _Rest:
    rest = dict(labels)
    rest.pop(METRIC_LABEL, None)
    return tuple(rest.items())


def _text(labels: Labels) -> str:
    return "\x00".join(f"{name}\x01{labels[name]}" for name in sorted(labels) if labels[name] != "")


def _number(text: str) -> int:
    """Of 63 bits: few engines know a column of unsigned numbers."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
