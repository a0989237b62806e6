"""Closures of Dask arrays, by the phases of a blocked Floyd–Warshall: close a block, multiply it into its row and
column, then relax every other block through it. The graph is lazy; D's blocks stay on the workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.compose.graph.blocks import close_block, start_block
from tilewise.compose.graph.laws import nodes_of, one_of
from tilewise.compose.graph.rounds import algebra_for
from tilewise.dispatch.product import matmul
from tilewise.errors import DtypeError, ShapeError
from tilewise.scale.dask_blocks import DeclaredBlock


def dask_closure(W: Any, semiring: str | Semiring, sources: Any = None) -> Any:
    """The closure of a square Dask array, chunked as its rows along both axes; with `sources`, their rows of it. A
    search takes a number of rounds that a Dask graph cannot know, so those rows are cut from the whole closure; Dask
    omits the blocks of the last round that no row needs."""
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {W.shape}")
    if type(getattr(W, "_meta", None)).__name__ == "MaskedArray":
        raise DtypeError("W has masked blocks, and a closure would lose their mask: fill them first")
    chosen = nodes_of(sources, W.shape[0])
    ring = find_semiring(semiring)
    algebra = algebra_for(ring, dtype_of(W.dtype))
    sizes = W.chunks[0]
    W = W.rechunk((sizes, sizes))
    name = f"tilewise-closure-{tokenize(W, ring)}"
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(int).tolist()
    work = _Blocks(algebra)
    count = len(sizes)
    D: dict[tuple[int, int], Any] = {}
    layer: dict[Any, Any] = {}

    def put(at: tuple[Any, ...], *task: Any) -> Any:
        layer[(f"{name}-step", *at)] = task
        return (f"{name}-step", *at)

    for i, j in np.ndindex(count, count):
        declared = DeclaredBlock(f"block ({i}, {j}) of W", (sizes[i], sizes[j]), W.dtype)
        D[i, j] = put((0, i, j), work.begin, (W.name, i, j), declared, i == j)
    for k in range(count):
        D[k, k] = put((k + 1, k, k), work.close, D[k, k], starts[k])
        for j in range(count):
            if j != k:
                D[k, j] = put((k + 1, k, j), work.relax, D[k, j], D[k, k], D[k, j])
                D[j, k] = put((k + 1, j, k), work.relax, D[j, k], D[j, k], D[k, k])
        for i, j in np.ndindex(count, count):
            if k not in (i, j):
                D[i, j] = put((k + 1, i, j), work.relax, D[i, j], D[i, k], D[k, j])
    for (i, j), key in D.items():
        layer[(name, i, j)] = key
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[W])
    closed = da.Array(graph, name, chunks=(sizes, sizes), meta=np.empty((0, 0), algebra.result.numpy))
    return closed if chosen is None else closed[chosen]


class _Blocks:
    """The tasks of one block, run by a worker."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra, self.one = algebra, one_of(algebra)

    def begin(self, W: Any, declared: DeclaredBlock, diagonal: bool) -> Array:
        D = declared.check(W).astype(self.algebra.partial.numpy)
        start_block(D, self.algebra, self.one, 0 if diagonal else None)
        return D

    def close(self, D: Array, start: int) -> Array:
        made = D.copy()
        close_block(made, self.algebra, self.one, start)
        return made

    def relax(self, D: Array, left: Array, right: Array) -> Array:
        """D ⊕ left ⊗ right in new memory: other tasks read the operands."""
        made = D.copy()
        matmul(left, right, semiring=self.algebra.semiring, out=made, accumulate=True)
        return made
