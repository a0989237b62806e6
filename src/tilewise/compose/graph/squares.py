"""A closure of defined bits: I ⊕ W is squared until all paths are in it, each product with `reproducible=`.

Blocks and searches associate a path's steps each in its own way, so the last bits of a sum of floats differ between
them. D of paths of up to 2ˢ edges is (I ⊕ W) squared s times; s is the least one with 2ˢ ≥ nodes, whatever W holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Algebra
from tilewise.compose.graph.laws import Progress, check_absorbs, is_idempotent, one_of
from tilewise.compose.graph.search import cycle_error, find_cycle
from tilewise.core.reproducible import check_defined
from tilewise.dispatch.product import matmul
from tilewise.dispatch.sparse.arrays import Rows
from tilewise.errors import UsageError


def has_exact_steps(algebra: Algebra, level: str, tracks: bool) -> bool:
    """Whether every algorithm has the same bits, those of integers and truths. Refuses what has no defined bits."""
    if tracks:
        raise UsageError(
            f"return_predecessors=True and reproducible={level!r} exclude each other: of several best paths any may be "
            "reported"
        )
    if not is_idempotent(algebra):
        raise UsageError(
            f"reproducible={level!r} has no closure over {algebra.semiring}, whose elimination adds in its own order: "
            "it has for min and max"
        )
    return not check_defined(algebra.semiring, algebra.partial, algebra.element)


def close_by_squares(W: Array, algebra: Algebra, level: str, device: str, progress: Progress | None) -> Array:
    """D in the dtype of sums; products on `device`."""
    if (W < 0).any():
        check_absorbs(algebra)
    zero, one = algebra.zero, one_of(algebra)
    how: dict[str, Any] = {"semiring": algebra.semiring, "reproducible": level, "device": device}
    D: Array = np.where(np.isnan(W), zero, W).astype(algebra.partial.numpy) + algebra.partial.numpy.type(
        0
    )  # of −0 makes +0
    np.fill_diagonal(D, algebra.add(D.diagonal(), np.full(len(D), one, D.dtype)))
    count = max(0, len(D) - 1).bit_length()
    for number in range(1, count + 1):
        before = D
        D = np.asarray(matmul(D, D, **how))
        settled = np.array_equal(before, D)  # further squares would not change it either
        if progress is not None:
            progress(count if settled else number, count)
        if settled:
            break
    if (D.diagonal() != one).any():
        raise cycle_error(find_cycle(Rows.of_dense(W, zero, nan=False), algebra))
    return D
