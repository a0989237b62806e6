"""Lengths of shortest paths from many sources, by all threads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.backends.cpu.kernels.search.text import search_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import num_threads, run_job
from tilewise.backends.cpu.runtime.target import host_target

Array = np.ndarray[Any, np.dtype[Any]]
ENTRY_BYTES, LINE = 16, 64  # of the heap, and of the cache
AT_ONCE = 256  # sources whose rows are made between two chances to be interrupted


@lru_cache(maxsize=2)
def _compiled(tracks: bool) -> int:
    return compile.load(search_module(tracks), host_target())["search"]


def search_from(
    starts: Array, columns: Array, weights: Array, sources: Array, tracks: bool
) -> tuple[Array, Array | None]:
    """A row of lengths for each source, ∞ where there is no path, and the node before each target, −1 for none.

    Rows of stored cells: `starts` has one more than there are nodes; weights are not below 0.
    """
    n, threads = len(starts) - 1, min(num_threads(), max(1, len(sources)))
    starts, sources = (np.ascontiguousarray(x, np.int64) for x in (starts, sources))
    columns, weights = np.ascontiguousarray(columns, np.int32), np.ascontiguousarray(weights, np.float64)
    lengths = np.empty((len(sources), n))
    before = np.empty((len(sources), n), np.int64) if tracks else None
    if not lengths.size:
        return lengths, before
    heap = -(-ENTRY_BYTES * (n + 4) // LINE) * LINE
    room = heap + -(-4 * n // LINE) * LINE
    heaps = np.full(threads * room // 8 + LINE // 4, np.inf)
    first_child = heaps.ctypes.data + ENTRY_BYTES
    values = {
        "M": starts.ctypes.data, "N": columns.ctypes.data, "P": weights.ctypes.data, "n": n, "sums_at": heap,
        "workspace": -(-first_child // LINE) * LINE - ENTRY_BYTES, "workspace_bytes": room,
    }  # fmt: skip
    for first in range(0, len(sources), AT_ONCE):
        values |= {"at_m": sources[first:].ctypes.data, "arg": lengths[first:].ctypes.data}
        values["at_a"] = 0 if before is None else before[first:].ctypes.data
        run_job(_compiled(tracks), min(AT_ONCE, len(sources) - first), threads, **values)
    return lengths, before
