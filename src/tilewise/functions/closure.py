"""`tw.closure`: by torch's operator where torch follows W, else by `compose/graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from tilewise.algebra.names import BooleanName
from tilewise.algebra.structured import Structured
from tilewise.api import jax_traces, torch_follows
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.compose.graph import closure as graph
from tilewise.compose.graph.laws import Progress
from tilewise.core.options import AnySemiring, Numeric
from tilewise.core.reproducible import Level, check_reproducible
from tilewise.errors import UsageError


class ClosureDetails(TypedDict, total=False):
    """Keywords of `tw.closure` on which the result's type does not depend."""

    progress: Progress | None
    device: str
    sources: Any
    reproducible: Level


@overload
def closure(
    W: HostArray,
    /,
    *,
    semiring: BooleanName,
    return_predecessors: Literal[False] = False,
    **how: Unpack[ClosureDetails],
) -> ArrayOf[np.bool_]: ...
@overload
def closure(
    W: ArrayOf[Number], /, *, semiring: Numeric = ..., return_predecessors: Literal[False] = False,
    **how: Unpack[ClosureDetails],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def closure(
    W: ArrayOf[Number], /, *, return_predecessors: Literal[True], semiring: Numeric = ..., **how: Unpack[ClosureDetails]
) -> tuple[ArrayOf[Number], ArrayOf[np.int64]]: ...
@overload
def closure(W: Sequence[Kind], /, *, semiring: Structured, **how: Unpack[ClosureDetails]) -> tuple[Kind, ...]: ...
@overload
def closure(
    W: Kind, /, *, semiring: AnySemiring = ..., return_predecessors: Literal[False] = False,
    **how: Unpack[ClosureDetails],
) -> Kind: ...  # fmt: skip
@overload
def closure(
    W: Kind, /, *, return_predecessors: Literal[True], semiring: AnySemiring = ..., **how: Unpack[ClosureDetails]
) -> tuple[Kind, Kind]: ...
@overload
def closure(
    W: Any, /, *, semiring: AnySemiring = ..., return_predecessors: Literal[False] = False,
    **how: Unpack[ClosureDetails],
) -> HostArray: ...  # fmt: skip
def closure(
    W: Any,
    /,
    *,
    semiring: AnySemiring | Structured = "min_plus",
    return_predecessors: bool = False,
    progress: Progress | None = None,
    device: str = "auto",
    sources: Any = None,
    reproducible: str | None = None,
) -> Any:
    """The sum (the best, for min and max) over all paths between every two nodes: D = I ⊕ W ⊕ W⊗W ⊕ …

    W: a square matrix of weights from row to column, or a stack of them; the semiring's zero (∞ for min_plus, the
    dtype's largest value for integers, False for lor_land) means there is no edge. NaN counts as no edge.
    semiring: min_plus gives shortest paths, max_min widest, min_max those with the lowest top, lor_land reachability;
        plus_times and logaddexp_plus sums over all paths, min_count how many are shortest, k_best(k) the k shortest.
    return_predecessors: also the node before each target on its path, −1 for none; `tw.path` rebuilds paths from them.
    progress: called with (blocks done, blocks in all) after each block, the blocks of all graphs of a stack counted.
    device: "auto" works where W is; "cuda" or "cuda:1" takes a host array to a card and back.
    sources: numbers of nodes, or one: only their rows of D, in that order, by a search over the edges alone (of a Dask
        array, and where add(x, x) is not x: taken from the whole closure). An improving cycle that they do not reach is
        then not looked for.
    reproducible: as in `tw.matmul`, for min and max: I ⊕ W is squared, in the dtype of sums, until all paths are in it.

    Sparse graphs in which no weight improves on an empty path (none is below 0, for min_plus) are searched from every
    node where that is expected to be faster than tiles; W may be a scipy.sparse matrix, whose cells that are not stored
    are no edges. A cycle that gets better every time it is walked (a negative one, for min_plus) raises `CycleError`
    and is named; so does a sum over all paths that has no limit.

    >>> W = np.array([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]])
    >>> tw.closure(W)
    array([[0., 4., 6.],
           [4., 0., 2.],
           [6., 2., 0.]])
    """
    followed = torch_follows(W, W)
    if check_reproducible(reproducible) is not None and (followed or jax_traces(W, sources)):
        raise UsageError(f"reproducible={reproducible!r} of a closure has no gradient and is not traced: leave it out")
    if jax_traces(W, sources):
        from tilewise.jax.traced import closure as traced_closure

        if device not in ("auto", "cpu") or progress is not None:
            raise UsageError("device= and progress= have no meaning inside jax.jit and kin: leave them out")
        return traced_closure(W, semiring, return_predecessors, sources)
    if not followed:
        return graph.closure(
            W, semiring=semiring, return_predecessors=return_predecessors, progress=progress, device=device,
            sources=sources, reproducible=reproducible,
        )  # fmt: skip
    from tilewise.torch.differentiable_closure import closure as followed_closure

    if device not in ("auto", W.device.type, str(W.device)) or progress is not None:
        raise UsageError("device= and progress= take no part in what torch follows: pass W.detach()")
    return followed_closure(W, semiring=semiring, return_predecessors=return_predecessors, sources=sources)
