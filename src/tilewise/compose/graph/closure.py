"""`closure`: the sum over all paths, which is the best of them if add is idempotent.

The algorithm is chosen here: blocks on the host, a card, a search from some nodes, or from every node if that is
expected to be faster, and `elimination` if add is not idempotent. The caller's matrix is never written."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS, find_semiring
from tilewise.algebra.dtypes import DTYPES, Array, DType, dtype_of
from tilewise.algebra.names import SemiringName
from tilewise.algebra.no_edge import absorbs
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.algebra.structured import Structured
from tilewise.arrays import find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand
from tilewise.compose.graph.blocks import close_by_tiles
from tilewise.compose.graph.elimination import eliminate, eliminate_fields, k_shortest_walks
from tilewise.compose.graph.laws import Progress, check_idempotent, check_no_edge, is_idempotent, nodes_of, one_of
from tilewise.compose.graph.predecessors import search_predecessors
from tilewise.compose.graph.search import (
    SMALL,
    cycle_error,
    find_cycle,
    search,
    search_is_faster,
    sparse_enough_to_search,
)
from tilewise.compose.graph.squares import close_by_squares, has_exact_steps
from tilewise.core.reproducible import check_reproducible
from tilewise.dispatch.route import is_structured
from tilewise.dispatch.sparse.arrays import Rows, is_sparse
from tilewise.dispatch.structured.product import structured_ring, value_of
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.scale.sources import is_dask
from tilewise.system.memory import check_room

if TYPE_CHECKING:
    from tilewise.compose.graph.card_closure import CardClosure

HOST = ("auto", "cpu")
HOPS = SEMIRINGS["min_plus"].over(DTYPES["float32"])  # predecessors over bool are those of fewest edges: no cycles


def closure(
    W: Any,
    /,
    *,
    semiring: SemiringName | Semiring | Structured = "min_plus",
    return_predecessors: bool = False,
    progress: Progress | None = None,
    device: str = "auto",
    sources: Any = None,
    reproducible: str | None = None,
) -> Any:
    """`tw.closure` of arrays that no framework traces."""
    if not isinstance(return_predecessors, int | np.bool_):
        raise UsageError(f"return_predecessors={return_predecessors!r} must be True or False")
    if progress is not None and not callable(progress):
        raise UsageError(f"progress={progress!r} must be a function of (blocks done, blocks in all)")
    if not isinstance(device, str):
        raise UsageError(f"device={device!r} must be one of 'auto', 'cpu', 'cuda' or 'cuda:1'")
    if check_reproducible(reproducible) is not None and (is_structured(semiring) or is_dask(W)):
        raise UsageError(f"reproducible={reproducible!r} closes one array of numbers: leave it out for fields and Dask")
    if is_structured(semiring):
        return _close_structured(W, cast(Any, semiring), return_predecessors, progress, device, sources)
    ring = find_semiring(cast(Any, semiring))
    if is_dask(W):
        return _close_dask(W, ring, return_predecessors, progress, device, sources)
    if is_sparse(W):
        return close_sparse(W, ring, return_predecessors, progress, device, sources, reproducible)
    operand = find_library(W).operand(W, "W")
    if len(operand.shape) > 2 and operand.shape[-1] == operand.shape[-2]:
        return _close_stack(operand, ring, return_predecessors, progress, device, sources, reproducible)
    _check_square(operand.shape)
    algebra = _algebra(operand.dtype, ring, return_predecessors)
    place = _device_for(operand, device)
    chosen = nodes_of(sources, operand.shape[0])
    if reproducible is not None and not has_exact_steps(algebra, reproducible, return_predecessors):
        return _by_squares(operand, algebra, reproducible, place, chosen, progress)
    if place != "cpu":
        if chosen is not None:
            raise DeviceError("sources= works on the host: copy W there, or take rows of the whole closure")
        check_idempotent(algebra)
        work = HOPS if return_predecessors and algebra.partial.kind == "b" else algebra
        return _on_a_card(operand, algebra, work, return_predecessors, place, progress)
    D, predecessors = _on_the_host(operand.memory, algebra, return_predecessors, progress, chosen)
    return _delivered(
        operand.library, [(D, algebra.result), *([] if predecessors is None else [(predecessors, DTYPES["int64"])])]
    )


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {shape}")


def _close_dask(W: Any, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any) -> Any:
    from tilewise.compose.graph.dask_closure import dask_closure

    keywords = {"return_predecessors=": tracks, "progress=": progress is not None, "device=": device not in HOST}
    if names := [name for name, given in keywords.items() if given]:
        raise UsageError(f"{', '.join(names)} does not go with a Dask array, which workers close: compute W first")
    return dask_closure(W, ring, sources)


def _close_structured(
    given: Any, semiring: Structured | str, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """The closure of values with fields, in the form they have: a tuple of arrays, or one structured array."""
    ring = structured_ring(semiring)
    value = value_of(given, "W", ring)
    for field in value.fields:
        if field.host is None or device not in HOST:
            raise DeviceError(f"{ring} is closed on the host: copy the fields of W there, and leave out device=")
    if tracks:
        raise UsageError(f"return_predecessors=True needs an add that picks a winner (min, max), unlike {ring}'s")
    _check_square(value.shape)
    chosen = nodes_of(sources, value.shape[0])
    algebra = ring.over([x.dtype for x in value.fields])
    kinds = [dtype.numpy for dtype in algebra.dtypes]
    W = [x.memory.astype(kind, copy=False) for x, kind in zip(value.fields, kinds, strict=True)]
    made = k_shortest_walks(W, algebra, chosen, progress)
    if made is None:
        made = eliminate_fields(W, algebra, progress)
        made = made if chosen is None else [x[chosen] for x in made]
    if not value.structured:
        return _delivered(value.fields[0].library, list(zip(made, algebra.dtypes, strict=True)), single=False)
    whole = np.empty(made[0].shape, [(name, x.dtype) for name, x in zip(given.dtype.names, made, strict=True)])
    for name, x in zip(given.dtype.names, made, strict=True):
        whole[name] = x
    return whole


@lru_cache(maxsize=256)
def _algebra(dtype: DType, ring: Semiring, tracks: bool) -> Algebra:
    """The semiring over W's dtype; an error if it has no closure."""
    algebra = ring.over(dtype)
    if is_idempotent(algebra):
        check_no_edge(algebra)
    one_of(algebra)
    if tracks and not ring.selective and algebra.partial.kind != "b":
        raise UsageError(f"return_predecessors=True needs an add that picks a winner (min, max), unlike {ring}'s")
    if algebra.partial.name not in DTYPES or algebra.partial.name.endswith("longdouble"):
        raise DtypeError(f"closure has no kernel for {dtype}: convert the weights to float64")
    return algebra


def _on_the_host(
    W: Array, algebra: Algebra, tracks: bool, progress: Progress | None, chosen: Array | None
) -> tuple[Array, Array | None]:
    """D and predecessors of a dense matrix, in the dtypes of the computation."""
    idempotent = is_idempotent(algebra)
    copies = 2 + 4 * tracks if chosen is None or not idempotent else 1
    if (needs := copies * W.size * algebra.element.numpy.itemsize) > SMALL:
        check_room(needs, f"a closure of {len(W):,} nodes")
    if algebra.semiring.boolean:
        W = W != 0
    W = W.astype(algebra.partial.numpy, copy=False)
    if not idempotent:
        D = eliminate(W, algebra, progress)
        return D if chosen is None else D[chosen], None
    if chosen is not None:
        return search(Rows.of_dense(W, algebra.zero, nan=False), algebra, tracks, chosen, progress)
    if tracks and algebra.partial.kind == "b":
        D, predecessors = close_by_tiles(np.where(W, np.float32(1), np.float32(np.inf)), HOPS, True, progress)
        return np.inf > D, predecessors
    if not absorbs(algebra):  # blocks would multiply the zero into an edge
        return search(Rows.of_dense(W, algebra.zero, nan=False), algebra, tracks, None, progress)
    if progress is None and (rows := sparse_enough_to_search(W, algebra)) is not None:
        return search(rows, algebra, tracks)
    return close_by_tiles(W, algebra, tracks, progress)


def _by_squares(
    operand: Operand, algebra: Algebra, level: str, device: str, chosen: Array | None, progress: Progress | None
) -> Any:
    """A closure of defined bits. Each product is taken from the host to the card and back, where W is on a card."""
    if operand.host is not None:
        D = close_by_squares(operand.memory, algebra, level, device, progress)
        return _delivered(operand.library, [(D if chosen is None else D[chosen], algebra.result)])
    from cuda.core import Stream

    from tilewise.compose.graph.card_closure import host_copy, put_rows

    stream = Stream.from_handle(operand.library.stream(device))
    D = close_by_squares(host_copy(operand, stream), algebra, level, device, progress)
    D = (D if chosen is None else D[chosen]).astype(algebra.result.numpy)
    made = operand.library.empty(D.shape, algebra.result, device)
    put_rows(made, np.arange(len(D)), D, stream)
    return operand.library.deliver(made)


def _delivered(library: Any, results: list[tuple[Array, DType]], single: bool = True) -> Any:
    """The results as arrays of W's library; a single one not in a tuple, if `single`."""
    arrays = []
    for values, dtype in results:
        if library is NUMPY and values.dtype == dtype.numpy:  # no copy: D shares no memory with W
            arrays.append(values)
            continue
        made = library.empty(values.shape, dtype, "cpu")
        np.copyto(made.memory, values, casting="unsafe")
        arrays.append(library.deliver(made))
    return arrays[0] if single and len(arrays) == 1 else tuple(arrays)


def close_sparse(
    W: Any,
    ring: Semiring,
    tracks: bool,
    progress: Progress | None,
    device: str,
    sources: Any,
    reproducible: str | None = None,
) -> Any:
    """The closure of a scipy.sparse matrix, as NumPy arrays: by search over its edges, or as a dense matrix."""
    algebra = _algebra(dtype_of(W.dtype), ring, tracks)
    rows = Rows.of(W, "W", algebra)
    _check_square(rows.shape)
    kept = rows.without(algebra.zero)
    chosen = nodes_of(sources, rows.shape[0])
    searches = device in HOST and reproducible is None and is_idempotent(algebra)
    if searches and (chosen is not None or search_is_faster(kept, algebra)):
        D, predecessors = search(kept, algebra, tracks, chosen, progress)
        D = D.astype(algebra.result.numpy, copy=False)
        return (D, predecessors) if tracks else D
    check_room(3 * rows.shape[0] ** 2 * rows.data.dtype.itemsize, f"a dense closure of {rows.shape[0]:,} nodes")
    dense = rows.dense(algebra.zero, rows.data.dtype)
    return closure(
        dense, semiring=ring, return_predecessors=tracks, progress=progress, device=device, sources=chosen,
        reproducible=reproducible,
    )  # fmt: skip


def _close_stack(
    operand: Operand,
    ring: Semiring,
    tracks: bool,
    progress: Progress | None,
    device: str,
    sources: Any,
    reproducible: str | None,
) -> Any:
    """The closure of each graph of a stack; with `sources`, the same rows of each."""
    if operand.host is None:
        raise DeviceError("a stack of graphs is closed on the host only: copy W there, or close one at a time")
    _device_for(operand, device)
    library, stack, nodes = operand.library, operand.shape[:-2], operand.shape[-1]
    algebra, chosen = _algebra(operand.dtype, ring, tracks), nodes_of(sources, nodes)
    shape = (*stack, nodes if chosen is None else len(chosen), nodes)
    made = library.empty(shape, algebra.result, "cpu")
    table = library.empty(shape, DTYPES["int64"], "cpu") if tracks else None
    for number, member in enumerate(np.ndindex(*stack)):
        report_progress = None if progress is None else _stack_progress(progress, number, math.prod(stack))
        closed = closure(
            operand.host[member],
            semiring=ring,
            return_predecessors=tracks,
            progress=report_progress,
            device=device,
            sources=chosen,
            reproducible=reproducible,
        )
        D, predecessors = closed if tracks else (closed, None)
        for target, part in ((made, D), (table, predecessors)):
            if target is not None:
                target.memory[member] = part
    return library.deliver(made) if table is None else (library.deliver(made), library.deliver(table))


def _stack_progress(progress: Progress, number: int, count: int) -> Progress:
    """A callback for one graph that reports the progress of its stack; all graphs have as many blocks."""
    return lambda done, total: progress(number * total + done, count * total)


def _device_for(operand: Operand, device: str) -> str:
    """The device that computes: W's, unless a host array is sent to a card."""
    if device == "auto" or device == operand.device:
        return operand.device
    if device == "cpu":
        raise DeviceError(f"W is on {operand.device} and device='cpu' was requested: copy it to the host first")
    requested = f"cuda:{card_number(device)}"
    if operand.device not in ("cpu", requested):
        raise DeviceError(f"W is on {operand.device} and device={device!r} was requested: copy W there first")
    return requested


def _on_a_card(
    operand: Operand, algebra: Algebra, work: Algebra, tracks: bool, device: str, progress: Progress | None
) -> Any:
    """The closure on a card; a host array is copied there and the result back."""
    from cuda.core import Stream

    from tilewise.arrays.card import open_card
    from tilewise.arrays.device_array import DEVICE_ARRAYS, to_device
    from tilewise.compose.graph.card_closure import close_on_card, host_copy

    open_card(device)
    library, given = operand.library, operand
    if operand.host is not None:
        library = DEVICE_ARRAYS
        given = library.operand(to_device(operand.host, device), "W")
    stream = Stream.from_handle(library.stream(device))
    made = library.empty(operand.shape, algebra.result, device)
    table = library.empty(operand.shape, DTYPES["int64"], device) if tracks else None
    closed = close_on_card(given, made, table, algebra, work, stream, progress)
    if closed.improves or closed.lost.size:
        _repair_on_host(host_copy(given, stream), closed, algebra, work, table, stream)
    results = [x for x in (made, table) if x is not None]
    if operand.host is not None:
        host_results = [operand.library.empty(x.shape, x.dtype, "cpu") for x in results]
        for host_result, x in zip(host_results, results, strict=True):
            host_result.memory[...] = x.array.numpy()
        results = host_results
    arrays = tuple(x.library.deliver(x) for x in results)
    return arrays if tracks else arrays[0]


def _repair_on_host(
    W: Array, closed: CardClosure, algebra: Algebra, work: Algebra, table: Operand | None, stream: Any
) -> None:
    """Raise an error that names the improving cycle, or replace predecessors that contain a cycle. `work`: HOPS for
    predecessors over bool, else the closure's own algebra (which may equal HOPS)."""
    from tilewise.compose.graph.card_closure import put_rows

    W = (
        np.where(W != 0, np.float32(1), np.float32(np.inf))
        if algebra.partial.kind == "b" != work.partial.kind
        else W.astype(work.element.numpy, copy=False)
    )
    if closed.improves:
        raise cycle_error(find_cycle(Rows.of_dense(W, work.zero, nan=False), work))
    assert table is not None
    put_rows(table, closed.lost, search_predecessors(closed.lost, W, work), stream)
