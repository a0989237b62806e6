"""Tiled multiplication as in the notes: a grid by ceiling division, a loop over phases, filled tiles, edges.

A wave is a rectangle of neighbouring blocks that are computed together: one strip of M and one of N hold all their
tiles, and step i of a phase is one NumPy call. Waves only bound the memory; each block computes what the kernel
`tiled_edges` does, in the same order of sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import Array
from tilewise.algebra.no_edge import no_edge_of, run_encoded
from tilewise.algebra.semiring import Algebra
from tilewise.backends.reference.ordered import canonical, ordered_product
from tilewise.core.plan import Plan

WAVE_ROWS, WAVE_COLS = 256, 512  # of P: the partial sums of a wave stay in a core's cache


def run(plan: Plan, M: Array, N: Array, P: Array) -> None:
    """Multiply every member of the stack. P is written (or, with accumulate, added onto) in place."""
    problem = plan.problem
    stack, algebra = problem.stack, problem.algebra
    product = multiply_ordered if problem.ordered else multiply

    def every(M: Array, N: Array, P: Array, _: Array | None) -> None:
        M = np.broadcast_to(M, (*stack, *M.shape[-2:]))
        N = np.broadcast_to(N, (*stack, *N.shape[-2:]))
        for member in np.ndindex(*stack):
            product(M[member], N[member], P[member], algebra, plan.tile, problem.accumulate)

    with np.errstate(all="ignore"):
        run_encoded(no_edge_of(algebra), every, M, N, P, None, algebra if problem.accumulate else None)


def multiply(M: Array, N: Array, P: Array, algebra: Algebra, tile: int, accumulate: bool) -> None:
    """One product, wave after wave."""
    rows, cols = (max(1, limit // tile) * tile for limit in (WAVE_ROWS, WAVE_COLS))
    for top in range(0, P.shape[0], rows):
        for left in range(0, P.shape[1], cols):
            here = np.s_[top : top + rows, left : left + cols]
            sums = partial_sums(M[top : top + rows], N[:, left : left + cols], algebra, tile)
            if accumulate:
                sums = algebra.add(P[here].astype(algebra.partial.numpy), sums)
            P[here] = sums.astype(algebra.result.numpy, copy=False)


def multiply_ordered(M: Array, N: Array, P: Array, algebra: Algebra, tile: int, accumulate: bool) -> None:
    """One product with the bits that `reproducible=` specifies."""
    if is_plus_times(algebra.semiring):
        sums = ordered_product(M, N, algebra.partial.numpy, P if accumulate else None)
    else:
        multiply(M, N, P, algebra, tile, accumulate)
        sums = canonical(P + P.dtype.type(0))
    P[...] = sums.astype(algebra.result.numpy, copy=False)


def partial_sums(M: Array, N: Array, algebra: Algebra, tile: int) -> Array:
    """The partial sums of one wave after its last phase, without the cells past P's edge."""
    (m, k), n = M.shape, N.shape[1]
    grid_m, grid_n = -(-m // tile), -(-n // tile)
    Pvalue = np.full((grid_m * tile, grid_n * tile), algebra.zero, algebra.partial.numpy)
    product = np.empty_like(Pvalue)
    add, mul = algebra.add, algebra.mul
    for phase in range(-(-k // tile)):
        ks = slice(phase * tile, (phase + 1) * tile)
        Mds = filled(M[:, ks], (grid_m * tile, tile), algebra.pad_m, algebra)
        Nds = filled(N[ks, :], (tile, grid_n * tile), algebra.pad_n, algebra)
        for i in range(tile):
            mul(Mds[:, i, None], Nds[None, i, :], out=product)
            add(Pvalue, product, out=Pvalue)
    return Pvalue[:m, :n]


def filled(part: Array, shape: tuple[int, int], pad: Any, algebra: Algebra) -> Array:
    """Tiles of `shape` that hold `part` where the matrix has elements and `pad` where it has none."""
    tiles = np.full(shape, pad, algebra.partial.numpy)
    tiles[: part.shape[0], : part.shape[1]] = part
    return tiles
