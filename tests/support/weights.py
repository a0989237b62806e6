"""Integer weights with "no edge" among them, and their product in Python's integers, which do not wrap."""

from __future__ import annotations

import numpy as np

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.no_edge import no_edge_of

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
WEIGHED = [("min_plus", d) for d in (*SIGNED, *UNSIGNED)] + [("max_plus", d) for d in SIGNED]


def edges_of(semiring, dtype):
    return no_edge_of(tw.semirings[semiring].over(DTYPES[dtype]))


def weights(rng, shape, edges, missing, beyond=0.0):
    """A part `missing`; a part `beyond` the range, which only a card takes, and takes for no edge."""
    made = rng.integers(edges.min_weight, edges.max_weight, shape, dtype=edges.dtype.numpy, endpoint=True)
    made[rng.random(shape) < 0.05] = edges.min_weight  # the ends of the range matter most
    made[rng.random(shape) < 0.05] = edges.max_weight
    made[rng.random(shape) < beyond] = edges.max_weight + 1
    if edges.min_weight < 0:
        made[rng.random(shape) < beyond] = edges.min_weight - 1
    made[rng.random(shape) < missing] = edges.stored
    return made


def by_hand(M, N, edges, better):
    """The product and the k that won; -1 where no path is."""
    rows, cols = M.shape[0], N.shape[1]
    made = np.full((rows, cols), edges.stored, M.dtype)
    arg = np.full((rows, cols), -1)
    left, right = M.tolist(), N.T.tolist()
    for i, j in np.ndindex(rows, cols):
        sums = [
            x + y if edges.min_weight <= x <= edges.max_weight and edges.min_weight <= y <= edges.max_weight else None
            for x, y in zip(left[i], right[j], strict=True)
        ]
        best = better((total for total in sums if total is not None), default=None)
        if best is not None:
            made[i, j], arg[i, j] = best, sums.index(best)
    return made, arg
