"""Documents without NaN and infinities, which JSON lacks: they become null, "inf" and "-inf"."""

from __future__ import annotations

import math
from typing import Any

SAFE = frozenset({int, str, bool, type(None)})


def strict(value: Any) -> Any:
    """The document with numbers that every JSON parser accepts; integral floats become ints."""
    if isinstance(value, dict):
        return {k: strict(v) for k, v in value.items()}
    if isinstance(value, list):  # of events: most are long lists of integers
        return value if SAFE.issuperset(map(type, value)) else [strict(v) for v in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value
