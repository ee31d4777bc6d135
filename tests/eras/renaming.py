"""Series by other names and in other units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eras.names import Renaming
from eras.recording import Series

Told = Sequence[Series]


def renamed(series: Told, names: Renaming) -> list[Series]:
    """Series under the era's names and in its units; what it has no name for is left out."""
    told = [each for each in series if not each.is_gpu]
    for each in series:
        if each.is_gpu and each.metric in names:
            name, factor = names[each.metric]
            told.append(replace(each, metric=name, points=scaled(each.points, factor)))
    return told


def scaled(points: Mapping[int, float], factor: float) -> dict[int, float]:
    """In the era's unit, with the six decimals that exporters print."""
    return {time: value if factor == 1 else round(value * factor, 6) for time, value in points.items()}
