"""`closure`: the sum over all paths, which is the best of them where add(x, x) is x.

The algorithm is chosen here: tiles on the host (`blocks`), a card, a search from some nodes, or from every node where
that is expected to be faster, and `elimination` for other semirings. The caller's matrix is never written."""

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
from tilewise.compose.graph.elimination import eliminate, eliminate_fields, walks
from tilewise.compose.graph.laws import Progress, check_idempotent, check_no_edge, is_idempotent, nodes_of, one_of
from tilewise.compose.graph.predecessors import found_anew
from tilewise.compose.graph.search import (
    SMALL,
    by_search,
    cycle_error,
    find_cycle,
    rows_worth_searching,
    search,
)
from tilewise.dispatch.route import is_structured
from tilewise.dispatch.sparse.arrays import Rows, is_sparse
from tilewise.dispatch.structured.product import structured_ring, value_of
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.scale.sources import is_dask
from tilewise.system.memory import check_room

if TYPE_CHECKING:
    from tilewise.compose.graph.card_closure import CardClosure

HOST = ("auto", "cpu")
HOPS = SEMIRINGS["min_plus"].over(DTYPES["float32"])  # for predecessors over bool: then no two nodes name each other


def closure(
    W: Any,
    /,
    *,
    semiring: SemiringName | Semiring | Structured = "min_plus",
    return_predecessors: bool = False,
    progress: Progress | None = None,
    device: str = "auto",
    sources: Any = None,
) -> Any:
    """`tw.closure` of arrays that no framework traces."""
    if not isinstance(return_predecessors, int | np.bool_):
        raise UsageError(f"return_predecessors={return_predecessors!r} must be True or False")
    if progress is not None and not callable(progress):
        raise UsageError(f"progress={progress!r} must be a function of (blocks done, blocks in all)")
    if not isinstance(device, str):
        raise UsageError(f"device={device!r} must be one of 'auto', 'cpu', 'cuda' or 'cuda:1'")
    if is_structured(semiring):
        return _of_fields(W, cast(Any, semiring), return_predecessors, progress, device, sources)
    ring = find_semiring(cast(Any, semiring))
    if is_dask(W):
        return _of_dask(W, ring, return_predecessors, progress, device, sources)
    if is_sparse(W):
        return closure_of_sparse(W, ring, return_predecessors, progress, device, sources)
    operand = find_library(W).operand(W, "W")
    if len(operand.shape) > 2 and operand.shape[-1] == operand.shape[-2]:
        return _of_each(operand, ring, return_predecessors, progress, device, sources)
    _check_square(operand.shape)
    algebra = _algebra(operand.dtype, ring, return_predecessors)
    place = _place(operand, device)
    chosen = nodes_of(sources, operand.shape[0])
    if place != "cpu":
        if chosen is not None:
            raise DeviceError("sources= works on the host: copy W there, or take rows of the whole closure")
        check_idempotent(algebra)
        work = HOPS if return_predecessors and algebra.partial.kind == "b" else algebra
        return _on_a_card(operand, algebra, work, return_predecessors, place, progress)
    D, before = _on_the_host(operand.memory, algebra, return_predecessors, progress, chosen)
    return _delivered(operand.library, [(D, algebra.result), *([] if before is None else [(before, DTYPES["int64"])])])


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {shape}")


def _of_dask(W: Any, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any) -> Any:
    from tilewise.compose.graph.dask_closure import dask_closure

    keywords = {"return_predecessors=": tracks, "progress=": progress is not None, "device=": device not in HOST}
    if names := [name for name, given in keywords.items() if given]:
        raise UsageError(f"{', '.join(names)} does not go with a Dask array, which workers close: compute W first")
    return dask_closure(W, ring, sources)


def _of_fields(
    given: Any, semiring: Structured | str, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """Of values with fields, which come back as they are given: a tuple of arrays, or one structured array."""
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
    made = walks(W, algebra, chosen, progress)
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
    """The semiring over W's numbers, where there are closures of it."""
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
    """D and predecessors of a dense matrix, in the dtypes they were computed in."""
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
        D, before = close_by_tiles(np.where(W, np.float32(1), np.float32(np.inf)), HOPS, True, progress)
        return np.inf > D, before
    if not absorbs(algebra):  # tiles would make edges where none are
        return search(Rows.of_dense(W, algebra.zero, nan=False), algebra, tracks, None, progress)
    if progress is None and (rows := rows_worth_searching(W, algebra)) is not None:
        return search(rows, algebra, tracks)
    return close_by_tiles(W, algebra, tracks, progress)


def _delivered(library: Any, results: list[tuple[Array, DType]], single: bool = True) -> Any:
    """Arrays of W's library; one alone without a tuple around it."""
    handed = []
    for values, dtype in results:
        if library is NUMPY and values.dtype == dtype.numpy:  # D shares no memory with W: no copy
            handed.append(values)
            continue
        made = library.empty(values.shape, dtype, "cpu")
        np.copyto(made.memory, values, casting="unsafe")
        handed.append(library.deliver(made))
    return handed[0] if single and len(handed) == 1 else tuple(handed)


def closure_of_sparse(
    W: Any, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """Of a scipy.sparse matrix, as NumPy arrays: by search without ever being dense, or as a dense matrix."""
    algebra = _algebra(dtype_of(W.dtype), ring, tracks)
    rows = Rows.of(W, "W", algebra)
    _check_square(rows.shape)
    kept = rows.without(algebra.zero)
    chosen = nodes_of(sources, rows.shape[0])
    if device in HOST and is_idempotent(algebra) and (chosen is not None or by_search(kept, algebra)):
        D, before = search(kept, algebra, tracks, chosen, progress)
        D = D.astype(algebra.result.numpy, copy=False)
        return (D, before) if tracks else D
    check_room(3 * rows.shape[0] ** 2 * rows.data.dtype.itemsize, f"a dense closure of {rows.shape[0]:,} nodes")
    dense = rows.dense(algebra.zero, rows.data.dtype)
    return closure(dense, semiring=ring, return_predecessors=tracks, progress=progress, device=device, sources=chosen)


def _of_each(
    operand: Operand, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """A stack of graphs: the closure of each, or the rows of the same sources in each."""
    if operand.host is None:
        raise DeviceError("a stack of graphs is closed on the host only: copy W there, or close one at a time")
    _place(operand, device)
    library, stack, nodes = operand.library, operand.shape[:-2], operand.shape[-1]
    algebra, chosen = _algebra(operand.dtype, ring, tracks), nodes_of(sources, nodes)
    shape = (*stack, nodes if chosen is None else len(chosen), nodes)
    made = library.empty(shape, algebra.result, "cpu")
    table = library.empty(shape, DTYPES["int64"], "cpu") if tracks else None
    for number, member in enumerate(np.ndindex(*stack)):
        heard = None if progress is None else _among(progress, number, math.prod(stack))
        closed = closure(
            operand.host[member],
            semiring=ring,
            return_predecessors=tracks,
            progress=heard,
            device=device,
            sources=chosen,
        )
        D, before = closed if tracks else (closed, None)
        for target, part in ((made, D), (table, before)):
            if target is not None:
                target.memory[member] = part
    return library.deliver(made) if table is None else (library.deliver(made), library.deliver(table))


def _among(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one graph of a stack, all of which have as many blocks, as that of the stack."""
    return lambda done, total: progress(number * total + done, count * total)


def _place(operand: Operand, device: str) -> str:
    """The device that works: where W is, unless a host array is sent to a card."""
    if device == "auto" or device == operand.device:
        return operand.device
    if device == "cpu":
        raise DeviceError(f"W is on {operand.device} and device='cpu' was requested: copy it to the host first")
    requested = f"cuda:{card_number(device)}"
    if operand.device not in ("cpu", requested):
        raise DeviceError(f"W is on {operand.device} and device={device!r} was requested: it does not travel by itself")
    return requested


def _on_a_card(
    operand: Operand, algebra: Algebra, work: Algebra, tracks: bool, device: str, progress: Progress | None
) -> Any:
    """The same on a card; a host array goes there and back."""
    from cuda.core import Stream

    from tilewise.arrays.card import open_card
    from tilewise.arrays.device_array import DEVICE_ARRAYS, to_device
    from tilewise.compose.graph.card_closure import at_home, close_on_card

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
        _repair_on_host(at_home(given, stream), closed, algebra, work, table, stream)
    results = [x for x in (made, table) if x is not None]
    if operand.host is not None:
        homes = [operand.library.empty(x.shape, x.dtype, "cpu") for x in results]
        for home, x in zip(homes, results, strict=True):
            home.memory[...] = x.array.numpy()
        results = homes
    handed = tuple(x.library.deliver(x) for x in results)
    return handed if tracks else handed[0]


def _repair_on_host(
    W: Array, closed: CardClosure, algebra: Algebra, work: Algebra, table: Operand | None, stream: Any
) -> None:
    """What is done on the host: naming a cycle that improves, and the predecessors of sources whose ties made a
    circle. `work` is HOPS for predecessors over bool; a closure of weights may have that very algebra as its own."""
    from tilewise.compose.graph.card_closure import put_rows

    W = (
        np.where(W != 0, np.float32(1), np.float32(np.inf))
        if algebra.partial.kind == "b" != work.partial.kind
        else W.astype(work.element.numpy, copy=False)
    )
    if closed.improves:
        raise cycle_error(find_cycle(Rows.of_dense(W, work.zero, nan=False), work))
    assert table is not None
    put_rows(table, closed.lost, found_anew(closed.lost, W, work), stream)
