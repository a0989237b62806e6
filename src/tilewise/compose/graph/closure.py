"""`closure`: the best over all paths, over any idempotent semiring.

The algorithm is chosen here: tiles on the host (`blocks`), a card, or a search from every node where that is expected
to be faster. The caller's matrix is copied first and never written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.algebra.names import SemiringName
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.arrays import find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand
from tilewise.compose.graph.blocks import Graph, close_by_tiles
from tilewise.compose.graph.keywords import ClosureKeywords, Progress
from tilewise.compose.graph.laws import check_idempotent, nodes_of
from tilewise.compose.graph.predecessors import found_anew, reached_from
from tilewise.compose.graph.sparse_closure import by_search, rows_worth_searching, search, searchable
from tilewise.dispatch.sparse.arrays import Rows, is_sparse
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.scale.sources import is_dask
from tilewise.system.memory import check_room

if TYPE_CHECKING:
    from tilewise.compose.graph.card_closure import CardClosure

Array = np.ndarray[Any, np.dtype[Any]]
HOST = ("auto", "cpu")
SMALL = 4 * 1024 * 1024  # bytes; above, free memory is checked first, which takes 0.2 ms


def closure(
    W: Any,
    /,
    *,
    semiring: SemiringName | Semiring = "min_plus",
    return_predecessors: bool = False,
    progress: Progress | None = None,
    device: str = "auto",
    sources: Any = None,
) -> Any:
    """`tw.closure` of arrays that no framework traces."""
    if is_dask(W):
        return _of_dask(W, semiring, return_predecessors, progress, device, sources)
    if is_sparse(W):
        return closure_of_sparse(W, find_semiring(semiring), return_predecessors, progress, device, sources)
    operand = find_library(W).operand(W, "W")
    if len(operand.shape) > 2 and operand.shape[-1] == operand.shape[-2]:
        return _of_each(operand, find_semiring(semiring), return_predecessors, progress, device, sources)
    if len(operand.shape) != 2 or operand.shape[0] != operand.shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {operand.shape}")
    algebra = _algebra(operand, find_semiring(semiring), return_predecessors)
    work = algebra
    if return_predecessors and algebra.partial.kind == "b":  # the fewest hops: then no two nodes name each other
        work = find_semiring("min_plus").over(DTYPES["float32"])
    place = _place(operand, device)
    chosen = nodes_of(sources, operand.shape[0])
    if place != "cpu":
        if chosen is not None:
            raise DeviceError("sources= works on the host: copy W there, or take rows of the whole closure")
        return _on_a_card(operand, algebra, work, return_predecessors, place, progress)
    return _on_the_host(operand, algebra, work, return_predecessors, progress, chosen)


def _of_dask(
    W: Any, semiring: SemiringName | Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    from tilewise.compose.graph.dask_closure import dask_closure

    keywords = {"return_predecessors=": tracks, "progress=": progress is not None, "device=": device not in HOST}
    if names := [name for name, given in keywords.items() if given]:
        raise UsageError(f"{', '.join(names)} does not go with a Dask array, which workers close: compute W first")
    return dask_closure(W, semiring, sources)


def _algebra(operand: Operand, ring: Semiring, tracks: bool) -> Algebra:
    """The semiring over W's numbers, where there are closures of it."""
    algebra = ring.over(operand.dtype)
    check_idempotent(algebra)
    if tracks and not ring.selective and algebra.partial.kind != "b":
        raise UsageError(f"return_predecessors=True needs an add that picks a winner (min, max), unlike {ring}'s")
    if algebra.partial.name not in DTYPES or algebra.partial.name.endswith("longdouble"):
        raise DtypeError(f"closure has no kernel for {operand.dtype}: convert the weights to float64")
    return algebra


def _on_the_host(
    operand: Operand, algebra: Algebra, work: Algebra, tracks: bool, progress: Progress | None, chosen: Array | None
) -> Any:
    library, host = operand.library, operand.host
    assert host is not None
    copies = 2 + 4 * tracks if chosen is None else 1
    if (needs := copies * host.size * work.element.numpy.itemsize) > SMALL:
        check_room(needs, f"a closure of {len(host):,} nodes")
    if work is not algebra:
        host = np.where(host != 0, np.float32(1), np.float32(np.inf))
    host = host.astype(work.element.numpy, copy=False)
    if chosen is not None:
        D, before = closed_from(host, chosen, work, tracks)
        if progress is not None:
            progress(1, 1)
    elif progress is None and (rows := rows_worth_searching(host, work)) is not None:
        D, before = search(rows, tracks)
    else:
        D, before = close_by_tiles(host, work, tracks, progress)
    results = [(np.inf > D if algebra.result.kind == "b" != D.dtype.kind else D, algebra.result)]
    results += [] if before is None else [(before, DTYPES["int64"])]
    handed = []
    for values, dtype in results:
        if library is NUMPY and values.dtype == dtype.numpy:  # D shares no memory with W: no copy
            handed.append(values)
            continue
        made = library.empty(values.shape, dtype, "cpu")
        assert made.host is not None
        np.copyto(made.host, values, casting="unsafe")
        handed.append(library.deliver(made))
    return tuple(handed) if tracks else handed[0]


def closed_from(W: Array, sources: Array, algebra: Algebra, tracks: bool) -> tuple[Array, Array | None]:
    """Rows of the closure: by search where it takes such weights, else by rounds of products."""
    rows = Rows.of_dense(W, algebra.zero, nan=False)
    if searchable(rows, algebra):
        return search(rows, tracks, sources)
    graph = Graph.of(W, algebra, False)
    best, found = reached_from(sources, graph.D, graph.algebra, graph.one, graph.absent, tracks)
    if best is None:
        graph.raise_cycle()
    graph.D = best
    return graph.finished(), found


def closure_of_sparse(
    W: Any, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """Of a scipy.sparse matrix, as NumPy arrays: by search without ever being dense, or as a dense matrix."""
    algebra = ring.over(dtype_of(W.dtype))
    rows = Rows.of(W, "W", algebra)
    if rows.shape[0] != rows.shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {rows.shape}")
    kept = rows.without(algebra.zero)
    chosen = nodes_of(sources, rows.shape[0])
    may_search = device in HOST and progress is None and searchable(kept, algebra)
    if may_search and (chosen is not None or by_search(kept, algebra)):
        D, before = search(kept, tracks, chosen)
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
    algebra, chosen = _algebra(operand, ring, tracks), nodes_of(sources, nodes)
    shape = (*stack, nodes if chosen is None else len(chosen), nodes)
    made = library.empty(shape, algebra.result, "cpu")
    table = library.empty(shape, DTYPES["int64"], "cpu") if tracks else None
    for number, member in enumerate(np.ndindex(*stack)):
        heard = None if progress is None else _among(progress, number, math.prod(stack))
        how: ClosureKeywords = {"semiring": ring, "progress": heard, "device": device, "sources": chosen}
        closed = closure(operand.host[member], return_predecessors=tracks, **how)
        D, before = closed if tracks else (closed, None)
        for target, part in ((made, D), (table, before)):
            if target is not None and target.host is not None:
                target.host[member] = part
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
        _repair_on_host(at_home(given, stream), closed, work, table, stream)
    results = [x for x in (made, table) if x is not None]
    if operand.host is not None:
        homes = [operand.library.empty(x.shape, x.dtype, "cpu") for x in results]
        for home, x in zip(homes, results, strict=True):
            assert home.host is not None
            home.host[...] = x.array.numpy()
        results = homes
    handed = tuple(x.library.deliver(x) for x in results)
    return handed if tracks else handed[0]


def _repair_on_host(W: Array, closed: CardClosure, work: Algebra, table: Operand | None, stream: Any) -> None:
    """What is done on the host: naming a cycle that improves, and the predecessors of sources whose ties made a
    circle."""
    from tilewise.compose.graph.card_closure import put_rows

    graph = Graph.of(W.astype(work.element.numpy, copy=False), work, False)
    if closed.improves:
        graph.raise_cycle()
    assert table is not None
    put_rows(table, closed.lost, found_anew(closed.lost, graph.D, graph.algebra, graph.one, graph.absent), stream)
