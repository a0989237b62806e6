"""The best paths from many sources, by all threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.backends.cpu.kernels.search.text import DONE, ENTRIES, search_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import num_threads, run_job
from tilewise.backends.cpu.runtime.target import host_target

Cells = tuple[Array, Array, Array]  # starts, columns, weights
ENTRY_BYTES, LINE = 16, 64  # of the heap, and of the cache
AT_ONCE = 256  # sources whose rows are made between two chances to be interrupted


@lru_cache(maxsize=128)
def _compiled(algebra: Algebra, one: Number, tracks: bool, ordered: bool) -> int:
    return compile.load(search_module(algebra, one, tracks, ordered), host_target())["search"]


def search_from(
    rows: Cells,
    sources: Array,
    algebra: Algebra,
    one: Number,
    *,
    tracks: bool,
    ordered: bool,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Array, Array | None, Array]:
    """A row of values for each source, zero where there is no path; the node before each target, −1 for none, where it
    is kept (`tracks`, and without order); and what ended each search (see `text.DONE`).

    Rows of stored cells: `starts` has one more than there are nodes. `ordered`: no weight improves on `one`.
    """
    n, kind, threads = len(rows[0]) - 1, algebra.partial.numpy, min(num_threads(), max(1, len(sources)))
    dtypes: tuple[Any, ...] = (np.int64, np.int32, kind, np.int64)
    starts, columns, weights, sources = (
        np.ascontiguousarray(x, dtype) for x, dtype in zip((*rows, sources), dtypes, strict=True)
    )
    values, ends = np.empty((len(sources), n), kind), np.full(len(sources), DONE)
    before = np.empty((len(sources), n), np.int64) if tracks or not ordered else None
    if not values.size:
        return values, before, ends
    heap = -(-(ENTRIES + ENTRY_BYTES * (n + 4)) // LINE) * LINE
    room = heap + -(-4 * n // LINE) * LINE
    space = np.empty(threads * room + LINE, np.uint8)
    first = -space.ctypes.data % LINE
    entries = (threads, n + 4)
    np.ndarray(entries, kind, space.data, first + ENTRIES, (room, ENTRY_BYTES))[...] = algebra.zero
    where = {
        "M": starts.ctypes.data, "N": columns.ctypes.data, "P": weights.ctypes.data, "n": n, "sums_at": heap,
        "workspace": space.ctypes.data + first, "workspace_bytes": room,
    }  # fmt: skip
    function, count = _compiled(algebra, one, tracks, ordered), len(sources)
    for at in range(0, count, AT_ONCE):
        where |= {"at_m": sources[at:].ctypes.data, "arg": values[at:].ctypes.data, "at_p": ends[at:].ctypes.data}
        where["at_a"] = 0 if before is None else before[at:].ctypes.data
        run_job(function, min(AT_ONCE, count - at), threads, **where)
        if progress is not None:
            progress(at // AT_ONCE + 1, -(-count // AT_ONCE))
    return values, before, ends
