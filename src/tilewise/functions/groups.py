"""`tw.grouped_matmul`, `tw.scatter_rows`: by a prepared call, torch's operator, JAX's, or `compose/groups`."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from tilewise.algebra.names import BooleanName
from tilewise.api import jax_traces, torch_follows
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.compose.groups import product as groups
from tilewise.compose.groups import rows as by_index
from tilewise.core.options import AnySemiring, Numeric
from tilewise.core.reproducible import Level, check_reproducible
from tilewise.errors import UsageError


class GroupDetails(TypedDict, total=False):
    """Keywords of `tw.grouped_matmul` on which the result's type does not depend."""

    along: Literal["rows", "k"]
    rows: Any
    out: Any
    precision: str
    kernel: str | None
    reproducible: Level


@overload
def grouped_matmul(
    x: HostArray, w: HostArray, offsets: Any, /, *, semiring: BooleanName, **how: Unpack[GroupDetails]
) -> ArrayOf[np.bool_]: ...
@overload
def grouped_matmul(
    x: ArrayOf[Number], w: ArrayOf[Number], offsets: Any, /, *, semiring: Numeric = ..., **how: Unpack[GroupDetails]
) -> ArrayOf[Number]: ...
@overload
def grouped_matmul(
    x: Kind, w: Kind, offsets: Any, /, *, semiring: AnySemiring = ..., **how: Unpack[GroupDetails]
) -> Kind: ...
@overload
def grouped_matmul(
    x: Any, w: Any, offsets: Any, /, *, semiring: AnySemiring = ..., **how: Unpack[GroupDetails]
) -> HostArray: ...
def grouped_matmul(
    x: Any,
    w: Any,
    offsets: Any,
    /,
    *,
    along: str = "rows",
    rows: Any = None,
    semiring: AnySemiring = "plus_times",
    out: Any = None,
    precision: str = "high",
    kernel: str | None = None,
    reproducible: str | None = None,
) -> Any:
    """Each group of x's rows times its own matrix: P[a:b] = x[a:b] · w[g] for every group g of rows a to b.

    x: rows × k; w: groups × k × n; arrays of one library, on the host or on a card.
    offsets: int32 or int64, the end of each group (the row after its last). The first group begins at row 0, the others
        where the one before ends; a group may be empty. On a card they are read there, in the launch itself: nothing
        waits for them, and a captured CUDA graph may find others each time. Rows behind the last group get the
        semiring's zero.
    along: "rows", or "k" for gradients of weights: x is rows × m, w is rows × n, and P[g] = x[a:b]ᵀ · w[a:b].
    rows: x's row of each row of the groups, so that x need not be permuted first: P[i] is made of x[rows[i]].
    semiring, out, precision, kernel, reproducible: as in `tw.matmul`; the last on the host alone, without gradients.

    >>> x, w = np.arange(6.0).reshape(3, 2), np.stack([np.eye(2), 10 * np.eye(2)])
    >>> tw.grouped_matmul(x, w, np.array([1, 3]))
    array([[ 0.,  1.],
           [20., 30.],
           [40., 50.]])
    """
    o = groups.GroupOptions(along, rows, semiring, out, precision, kernel)
    if check_reproducible(reproducible) is not None:
        if torch_follows(x, w, out) or jax_traces(x, w, offsets, rows):
            raise UsageError(
                f"reproducible={reproducible!r} of groups has no gradient and is not traced: use tw.matmul"
            )
        return groups.reproducible_product(x, w, offsets, o, reproducible)
    made = groups.prepared_product(x, w, offsets, o)
    if made is not None:
        return made
    if torch_follows(x, w, out):
        from tilewise.torch.grouped import grouped_matmul as followed

        return followed(x, w, offsets, *o)
    if jax_traces(x, w, offsets, rows):
        from tilewise.jax.traced import grouped_matmul as traced

        return traced(x, w, offsets, o)
    return groups.first_product(x, w, offsets, o)


@overload
def scatter_rows(y: ArrayOf[Number], rows: Any, count: int, /, *, weights: Any = None) -> ArrayOf[Number]: ...
@overload
def scatter_rows(y: Kind, rows: Any, count: int, /, *, weights: Any = None) -> Kind: ...
@overload
def scatter_rows(y: Any, rows: Any, count: int, /, *, weights: Any = None) -> HostArray: ...
def scatter_rows(y: Any, rows: Any, count: int, /, *, weights: Any = None) -> Any:
    """P[t] = Σ weights[i] · y[i] over all i with rows[i] == t, for t below `count`, always added in the order of i.

    y: a matrix; rows: int32 or int64, one for each of its rows; weights: one for each, of y's dtype or of what its
    sums are kept in (float32 for halves), or None. Rows that go nowhere are left out, a t that nothing goes to is 0.

    >>> tw.scatter_rows(np.ones((3, 2)), np.array([1, 0, 1]), 2, weights=np.array([1.0, 2.0, 3.0]))
    array([[2., 2.],
           [4., 4.]])
    """
    made = by_index.prepared_rows(y, rows, count, weights)
    if made is not None:
        return made
    if torch_follows(y, y if weights is None else weights):
        from tilewise.torch.grouped import scatter_rows as followed

        return followed(y, rows, count, weights)
    if jax_traces(y, rows, weights):
        from tilewise.jax.traced import scatter_rows as traced

        return traced(y, rows, count, weights)
    return by_index.first_rows(y, rows, count, weights)
