"""Operands that no cache holds, as one expert's weights after another's, or new tensors in every call.

A burst on the same operands finds them near from its second run on; a kernel that waits for memory does not show it.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import numpy as np

BYTES = 3 * 2**26  # that operands of a dtype are spread over: more than the caches of most machines
FEWEST = 4  # products whose operands lie there, below which a burst on one of them is cold as it is
MOST = 4096  # of them, that are told apart


def operands(shape: tuple[int, int, int], dtype: str) -> list[tuple[Any, Any]]:
    """M and N again and again, in an order that nobody foresees; none where they are too large to be near."""
    m, k, n = shape
    memory, each = _memory(dtype), k * (m + n) + 64
    count = min(MOST, len(memory) // each)
    if count < FEWEST:
        return []
    apart = len(memory) // count
    starts = [apart * i for i in range(count)]
    random.Random(0).shuffle(starts)
    return [
        (memory[at : at + m * k].reshape(m, k), memory[at + m * k : at + k * (m + n)].reshape(k, n)) for at in starts
    ]


@lru_cache(maxsize=2)
def _memory(dtype: str) -> Any:
    number = np.float64 if dtype == "float64" else np.float32
    return np.random.default_rng(0).random(BYTES // np.dtype(number).itemsize, number)
