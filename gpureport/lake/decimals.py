"""Numbers as whole numbers of their last decimal place, in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpureport.runtime.compiled import Number, compiled


def scaled(values: NDArray[np.float64], factor: float, limit: float) -> NDArray[np.int64] | None:
    """values × factor, rounded to the nearest even where it is a half; None where one is not below the limit."""
    whole = np.empty(values.size, np.int64)
    return whole if _scale(values, factor, limit, whole) else None


@compiled
def _scale(values: NDArray[np.float64], factor: Number, limit: Number, whole: NDArray[np.int64]) -> Number:
    for at in range(values.size):
        rounded = np.rint(values[at] * factor)
        if not abs(rounded) < limit:
            return False
        whole[at] = np.int64(rounded)
    return True
