"""Operands that no cache holds, as one expert's weights after another's, or new tensors in every call.

A burst on the same operands finds them in the cache from its second run on, which hides that a kernel waits for memory.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import numpy as np

BYTES = 3 * 2**26  # of operands of a dtype: more than the caches of most machines
FEWEST = 4  # products in that memory; if fewer fit, a burst on one of them is cold anyway
MOST = 4096  # products, at most


def operands(shape: tuple[int, int, int], dtype: str) -> list[tuple[Any, Any]]:
    """Many pairs of M and N in random order; none where one pair is too large for a cache."""
    m, k, n = shape
    memory, each = _memory(dtype), k * (m + n) + 64
    count = min(MOST, len(memory) // each)
    if count < FEWEST:
        return []
    stride = len(memory) // count
    starts = [stride * i for i in range(count)]
    random.Random(0).shuffle(starts)
    return [
        (memory[at : at + m * k].reshape(m, k), memory[at + m * k : at + k * (m + n)].reshape(k, n)) for at in starts
    ]


@lru_cache(maxsize=2)
def _memory(dtype: str) -> Any:
    number = np.float64 if dtype == "float64" else np.float32
    return np.random.default_rng(0).random(BYTES // np.dtype(number).itemsize, number)
