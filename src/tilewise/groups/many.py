"""Lists of unrelated products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewise import api
from tilewise.algebra.semiring import Semiring


def matmul_many(
    pairs: Iterable[tuple[Any, Any]], /, *, semiring: str | Semiring = "plus_times", precision: str = "high"
) -> list[Any]:
    """The product of every pair, of any shapes, as `tw.matmul` makes it.

    Pairs whose operands are one after the other the same matrices of a stack are better off as a stack, and those of
    one matrix's rows with `tw.grouped_matmul`: each is one launch.

    >>> tw.matmul_many([(np.eye(2), np.ones((2, 1))), (np.ones((1, 3)), np.eye(3))])
    [array([[1.],
           [1.]]), array([[1., 1., 1.]])]
    """
    return [api.matmul(M, N, semiring=semiring, precision=precision) for M, N in pairs]
