"""The best paths and the k shortest walks from many sources, by all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.arrays.address import address
from tilewise.backends.cpu.kernels.search.orders import DONE, ENTRIES
from tilewise.backends.cpu.kernels.search.text import search_module
from tilewise.backends.cpu.kernels.search.walks_text import walks_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import num_threads, run_job
from tilewise.backends.cpu.runtime.target import host_target

Cells = tuple[Array, Array, Array]  # starts, columns, weights
ENTRY_BYTES, LINE = 16, 64  # of the heap, and of the cache
EDGE, NODE = 3, 60  # approximate nanoseconds per edge and per node of a search
AGAIN = 4  # approximate number of times a node is taken from the queue
BETWEEN = 5e7  # nanoseconds of a thread's searches between two checks for Ctrl-C


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
    """A row of values for each source, zero where there is no path; the predecessor of each target (−1 for none) if
    `tracks` or not `ordered`; and the status of each search (see `orders.DONE`).

    Rows of stored cells: `starts` has one more than there are nodes. `ordered`: no weight improves on `one`."""
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
    first = -address(space) % LINE
    entries = (threads, n + 4)
    np.ndarray(entries, kind, space.data, first + ENTRIES, (room, ENTRY_BYTES))[...] = algebra.zero
    where = {
        "M": address(starts), "N": address(columns), "P": address(weights), "n": n, "sums_at": heap,
        "workspace": address(space) + first, "workspace_bytes": room,
    }  # fmt: skip
    function = _compiled(algebra, one, tracks, ordered)
    each = (EDGE * weights.size + NODE * n) * (1 if ordered else AGAIN)
    for at, some in _parts(len(sources), threads, each, progress):
        where |= {"at_m": address(sources[at:]), "arg": address(values[at:]), "at_p": address(ends[at:])}
        where["at_a"] = 0 if before is None else address(before[at:])
        run_job(function, some, threads, **where)
    return values, before, ends


def _parts(
    count: int, threads: int, each: float, progress: Callable[[int, int], None] | None
) -> Iterator[tuple[int, int]]:
    """(first source, count) of the searches that run together; one takes `each` nanoseconds."""
    size = threads * max(1, int(BETWEEN / max(each, 1)))
    for first in range(0, count, size):
        yield first, min(size, count - first)
        if progress is not None:
            progress(first // size + 1, -(-count // size))


@lru_cache(maxsize=32)
def _compiled_walks(kind: np.dtype[Any], k: int, lanes: int) -> int:
    return compile.load(walks_module(dtype_of(kind), k, lanes), host_target())["walk"]


def walks_from(
    rows: Cells | Array, sources: Array, k: int, progress: Callable[[int, int], None] | None = None
) -> Array:
    """The k least lengths of walks from each source to each node, ascending, ∞ where there are fewer. `rows`: stored
    edges, of which two nodes may have several, or a dense matrix; no weight is below 0."""
    dense = isinstance(rows, np.ndarray)
    weights = np.ascontiguousarray(rows if isinstance(rows, np.ndarray) else rows[2])
    kind, count = weights.dtype, len(sources)
    n, threads = len(rows) if dense else len(rows[0]) - 1, min(num_threads(), max(1, count))
    lanes = host_target().vector_bytes // kind.itemsize if dense else 0
    lists = np.empty((count, n, k), kind)
    if not lists.size:
        return lists
    width = -(-n // lanes) * lanes if dense else n
    if width > n:
        weights = np.pad(weights, ((0, 0), (0, width - n)), constant_values=np.inf)
    parts = (ENTRIES + ENTRY_BYTES * (n + 4), 4 * n, 8 * n, kind.itemsize * width)  # heap, places, counts, last lengths
    at = np.cumsum([0, *(-(-size // LINE) * LINE for size in parts)]).tolist()
    space = np.empty(threads * at[-1] + LINE, np.uint8)
    first = -address(space) % LINE
    np.ndarray((threads, n + 4), kind, space.data, first + ENTRIES, (at[-1], ENTRY_BYTES))[...] = np.inf
    np.ndarray((threads, width), kind, space.data, first + at[3], (at[-1], kind.itemsize))[...] = -np.inf
    starts, columns = (weights, weights) if dense else (
        np.ascontiguousarray(rows[0], np.int64), np.ascontiguousarray(rows[1], np.int32)
    )  # fmt: skip
    sources = np.ascontiguousarray(sources, np.int64)
    where = {
        "M": address(starts), "N": address(columns), "P": address(weights), "row_p": width, "n": n,
        "workspace": address(space) + first, "workspace_bytes": at[-1], "sums_at": at[1], "strip": at[2],
        "at_n": at[3],
    }  # fmt: skip
    function = _compiled_walks(kind, k, lanes)
    for begin, some in _parts(count, threads, k * (weights.size * EDGE / max(lanes, 1) + NODE * n), progress):
        where |= {"at_m": address(sources[begin:]), "arg": address(lists[begin:])}
        run_job(function, some, threads, **where)
    return lists
