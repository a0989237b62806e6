"""`closure`: the best over all paths, by Floyd–Warshall in blocks, over any idempotent semiring.

For each diagonal block K: close it; carry it along its row and its column of blocks; then every cell may go by way of
K: D ⊕= D[:, K] ⊗ D[K, :], one product. All the work is in those products, so it runs at their speed. The caller's
matrix is copied first and never written; a call that is interrupted leaves nothing behind."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack, overload

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.expression import Number
from tilewise.algebra.names import SemiringName
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.api import matmul
from tilewise.arrays import find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.operand import Operand
from tilewise.arrays.torch_library import followed
from tilewise.engines.cpu.kernels.floyd.run import close_square
from tilewise.errors import CycleError, DeviceError, DtypeError, ShapeError, UsageError
from tilewise.graph.cycles import find_cycle
from tilewise.graph.keywords import ClosureKeywords, Progress
from tilewise.graph.laws import check_idempotent, check_sources, kept_apart, one_of, stand_in_for_zero
from tilewise.graph.paths import NONE
from tilewise.graph.predecessors import found_anew, reached_from, repair
from tilewise.graph.sparse_closure import by_search, rows_of_dense, rows_worth_searching, search, searchable
from tilewise.scale.sources import is_dask
from tilewise.sparse.arrays import Rows, is_sparse
from tilewise.system.memory import check_room

if TYPE_CHECKING:
    from torch import Tensor

    from tilewise.graph.card_closure import CardClosure

Array = np.ndarray[Any, np.dtype[Any]]
SIDE = 64  # of a square that one kernel closes
SIDES = ((1536, SIDE), (4096, 128))  # to so many nodes blocks have that side: wide ones make more cells twice
WIDEST = 256  # beyond
BAND = 1024  # rows whose predecessors are updated at a time


@overload
def closure(
    W: Array, /, *, return_predecessors: Literal[True], **how: Unpack[ClosureKeywords]
) -> tuple[Array, Array]: ...
@overload
def closure(W: Array, /, *, return_predecessors: Literal[False] = False, **how: Unpack[ClosureKeywords]) -> Array: ...
@overload
def closure(
    W: Tensor, /, *, return_predecessors: Literal[True], **how: Unpack[ClosureKeywords]
) -> tuple[Tensor, Tensor]: ...
@overload
def closure(W: Tensor, /, *, return_predecessors: Literal[False] = False, **how: Unpack[ClosureKeywords]) -> Tensor: ...
@overload
def closure(W: Any, /, *, return_predecessors: bool = False, **how: Unpack[ClosureKeywords]) -> Any: ...
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
    """The best over all paths between every two nodes: D = I ⊕ W ⊕ W⊗W ⊕ …

    W: a square matrix of weights from row to column, or a stack of them; the semiring's zero (∞ for min_plus, the
    dtype's largest value for integers, False for lor_land) means there is no edge. NaN counts as no edge.
    semiring: min_plus gives shortest paths, max_min widest, min_max those with the lowest top, lor_land reachability.
    return_predecessors: also the node before each target on its path, −1 for none; `tw.path` rebuilds paths from them.
    progress: called with (blocks done, blocks in all) after each block.
    device: "auto" works where W is; "cuda" or "cuda:1" takes a host array to a card and back.
    sources: numbers of nodes: only their rows of D, without the work of the others.

    Sparse graphs of weights that are not below 0 are searched from every node, by SciPy, where that is expected to be
    sooner done than tiles; W may be a scipy.sparse matrix, whose cells that are not stored are no edges.
    A cycle that gets better every time it is walked (a negative one, for min_plus) raises `CycleError` and is named.

    >>> roads = np.array([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]])
    >>> tw.closure(roads)
    array([[0., 4., 6.],
           [4., 0., 2.],
           [6., 2., 0.]])
    """
    if is_dask(W):
        from tilewise.graph.dask_closure import dask_closure

        if return_predecessors:
            raise UsageError("closures of Dask arrays come without predecessors: compute W first")
        return dask_closure(W, semiring)
    if is_sparse(W):
        return closure_of_sparse(W, find_semiring(semiring), return_predecessors, progress, device, sources)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(W, torch.Tensor) and followed(W, W):
        import tilewise  # what torch follows stands above this room

        if device not in ("auto", W.device.type, str(W.device)) or progress is not None:
            raise UsageError("device= and progress= take no part in what torch follows: pass W.detach()")
        return tilewise.torch.closure(W, semiring=semiring, return_predecessors=return_predecessors)
    operand = find_library(W).operand(W, "W")
    if len(operand.shape) > 2 and operand.shape[-1] == operand.shape[-2]:
        return _of_each(operand, semiring, return_predecessors, device)
    if len(operand.shape) != 2 or operand.shape[0] != operand.shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {operand.shape}")
    algebra = _algebra(operand, find_semiring(semiring), return_predecessors)
    work = algebra
    if return_predecessors and algebra.partial.kind == "b":  # the fewest hops: then no two nodes name each other
        work = find_semiring("min_plus").over(DTYPES["float32"])
    place = _place(operand, device)
    if place != "cpu":
        if sources is not None:
            raise DeviceError("sources= works on the host: copy W there, or take rows of the whole closure")
        return _on_a_card(operand, algebra, work, return_predecessors, place, progress)
    return _on_the_host(operand, algebra, work, return_predecessors, progress, sources)


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
    operand: Operand, algebra: Algebra, work: Algebra, tracks: bool, progress: Progress | None, sources: Any
) -> Any:
    library, host = operand.library, operand.host
    assert host is not None
    copies = 2 + 4 * tracks if sources is None else 1
    check_room(copies * host.size * work.element.numpy.itemsize, f"a closure of {len(host):,} nodes")
    if work is not algebra:
        host = np.where(host != 0, np.float32(1), np.float32(np.inf))
    host = host.astype(work.element.numpy, copy=False)
    chosen = None if sources is None else np.atleast_1d(np.asarray(sources))
    if chosen is not None:
        D, before = closed_from(host, chosen, work, tracks)
    elif progress is None and (rows := rows_worth_searching(host, work)) is not None:
        D, before = search(rows, tracks)
    else:
        D, before = _by_tiles(host, work, tracks, progress)
    results = [(np.inf > D if algebra.result.kind == "b" != D.dtype.kind else D, algebra.result)]
    results += [] if before is None else [(before, DTYPES["int64"])]
    handed = []
    for values, dtype in results:
        made = library.empty(values.shape, dtype, "cpu")
        assert made.host is not None
        np.copyto(made.host, values, casting="unsafe")
        handed.append(library.deliver(made))
    return tuple(handed) if tracks else handed[0]


def _by_tiles(W: Array, work: Algebra, tracks: bool, progress: Progress | None) -> tuple[Array, Array | None]:
    graph = _Graph.of(W, work, tracks)
    edges = graph.D.copy() if tracks else None
    _close(graph, 0, len(graph.D), progress)
    if graph.before is not None and edges is not None:
        repair(graph.before, edges, graph.algebra, graph.one, graph.absent)
    return graph.finished(), graph.before


def closed_from(W: Array, sources: Array, algebra: Algebra, tracks: bool) -> tuple[Array, Array | None]:
    """Rows of the closure: by search where it takes such weights, else by rounds of products."""
    check_sources(sources, len(W))
    rows = rows_of_dense(W, algebra.zero)
    if searchable(rows, algebra):
        return search(rows, tracks, sources)
    graph = _Graph.of(W, algebra, False)
    best, found = reached_from(sources, graph.D, graph.algebra, graph.one, graph.absent)
    if best is None:
        graph.raise_cycle()
    graph.D = best
    return graph.finished(), found if tracks else None


def closure_of_sparse(
    W: Any, ring: Semiring, tracks: bool, progress: Progress | None, device: str, sources: Any
) -> Any:
    """Of a scipy.sparse matrix, as NumPy arrays: by search without ever being dense, or as a dense matrix."""
    rows = Rows.of(W, "W")
    if rows.shape[0] != rows.shape[1]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {rows.shape}")
    algebra = ring.over(rows.dtype)
    kept = rows.without(algebra.zero)
    if device in ("auto", "cpu") and progress is None and searchable(kept, algebra):
        chosen = None if sources is None else np.atleast_1d(np.asarray(sources))
        check_sources(chosen, rows.shape[0])
        if chosen is not None or by_search(kept, algebra):
            D, before = search(kept, tracks, chosen)
            D = D.astype(algebra.result.numpy, copy=False)
            return (D, before) if tracks else D
    check_room(3 * rows.shape[0] ** 2 * rows.data.dtype.itemsize, f"a dense closure of {rows.shape[0]:,} nodes")
    dense = rows.dense(algebra.zero, rows.data.dtype)
    return closure(dense, semiring=ring, return_predecessors=tracks, progress=progress, device=device, sources=sources)


def _of_each(operand: Operand, semiring: SemiringName | Semiring, tracks: bool, device: str) -> Any:
    """A stack of graphs: the closure of each."""
    if operand.host is None:
        raise DeviceError("a stack of graphs is closed on the host only: copy W there, or close one at a time")
    library, stack = operand.library, operand.shape[:-2]
    algebra = find_semiring(semiring).over(operand.dtype)
    made = library.empty(operand.shape, algebra.result, "cpu")
    table = library.empty(operand.shape, DTYPES["int64"], "cpu") if tracks else None
    for member in np.ndindex(*stack):
        closed = closure(operand.host[member], semiring=semiring, return_predecessors=tracks, device=device)
        D, before = closed if tracks else (closed, None)
        for target, part in ((made, D), (table, before)):
            if target is not None and target.host is not None:
                target.host[member] = part
    return library.deliver(made) if table is None else (library.deliver(made), library.deliver(table))


def _place(operand: Operand, device: str) -> str:
    """The device that works: where W is, unless a host array is sent to a card."""
    if device == "auto" or device == operand.device:
        return operand.device
    if device == "cpu":
        raise DeviceError(f"W is on {operand.device} and device='cpu' was asked for: copy it to the host first")
    asked = f"cuda:{card_number(device)}"
    if operand.device not in ("cpu", asked):
        raise DeviceError(f"W is on {operand.device} and device={device!r} was asked for: it does not travel by itself")
    return asked


def _on_a_card(
    operand: Operand, algebra: Algebra, work: Algebra, tracks: bool, device: str, progress: Progress | None
) -> Any:
    """The same on a card; a host array goes there and back."""
    from cuda.core import Stream

    from tilewise.arrays.card import open_card
    from tilewise.arrays.device_array import DEVICE_ARRAYS, to_device
    from tilewise.graph.card_closure import at_home, close_on_card

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
        _mend(at_home(given, stream), closed, work, table, stream)
    results = [x for x in (made, table) if x is not None]
    if operand.host is not None:
        homes = [operand.library.empty(x.shape, x.dtype, "cpu") for x in results]
        for home, x in zip(homes, results, strict=True):
            assert home.host is not None
            home.host[...] = x.array.numpy()
        results = homes
    handed = tuple(x.library.deliver(x) for x in results)
    return handed if tracks else handed[0]


def _mend(W: Array, closed: CardClosure, work: Algebra, table: Operand | None, stream: Any) -> None:
    """What is done on the host: naming a cycle that improves, and the predecessors of sources whose ties led in a
    circle."""
    from tilewise.graph.card_closure import put_rows

    graph = _Graph.of(W.astype(work.element.numpy, copy=False), work, False)
    if closed.improves:
        graph.raise_cycle()
    assert table is not None
    put_rows(table, closed.lost, found_anew(closed.lost, graph.D, graph.algebra, graph.one, graph.absent), stream)


def close_block(D: Array, algebra: Algebra, one: Number, first: int = 0) -> None:
    """Close a square of a larger closure in place; its nodes are numbered from `first` there."""
    assert not isinstance(algebra.zero, complex)
    try:
        _close(_Graph(D.copy(), D, None, algebra, one, algebra.zero, algebra), 0, len(D))
    except CycleError as error:
        nodes = tuple(node + first for node in error.nodes)
        named = (
            " → ".join(map(str, (*nodes, nodes[0]))) if nodes else f"one among nodes {first} to {first + len(D) - 1}"
        )
        raise CycleError(f"no best paths exist: a cycle gets better every time it is walked: {named}", nodes) from None


@dataclass
class _Graph:
    """The closure while it is made: distances in what sums are kept in, and who comes before whom."""

    W: Array
    D: Array
    before: Array | None
    algebra: Algebra
    one: Number
    absent: bool | int | float  # stands for "no edge", and is the zero of `algebra`
    given: Algebra  # the same with the zero that people write

    @classmethod
    def of(cls, W: Array, algebra: Algebra, tracks: bool) -> _Graph:
        partial = algebra.partial.numpy
        one, absent = one_of(algebra), stand_in_for_zero(W, algebra)
        D = np.empty(W.shape, partial)
        np.copyto(D, W != 0 if algebra.partial.kind == "b" and W.dtype.kind != "b" else W, casting="unsafe")
        with np.errstate(all="ignore"):
            algebra.add(D, np.full(1, algebra.zero, partial), out=D)  # NaN is no edge
        if absent != algebra.zero:
            D[algebra.zero == D] = absent
        before: Array | None = None
        if tracks:
            before = np.where(absent == D, NONE, np.arange(len(D))[:, None])
            np.fill_diagonal(before, NONE)
        diagonal = D.ravel()[:: len(D) + 1] if len(D) else D.ravel()
        with np.errstate(all="ignore"):
            diagonal[...] = algebra.add(diagonal, np.full(1, one, partial))
        return cls(W, D, before, kept_apart(algebra, absent), one, absent, algebra)

    def finished(self) -> Array:
        """The closure, with "no path" spelled as the semiring's zero again."""
        D, zero = self.D, self.given.zero
        if self.absent != zero:  # half the range stood for it, and negative weights may have nibbled at that
            far = self.absent // 2 < D if self.absent > 0 else -(-self.absent // 2) > D
            D = np.where(far, np.asarray(zero, D.dtype), D)
        return D

    def check_diagonal(self, start: int, stop: int) -> None:
        """A node that reaches itself better than by staying is on an improving cycle."""
        diagonal = self.D[np.arange(start, stop), np.arange(start, stop)]
        worse = np.flatnonzero(diagonal != self.one)
        if not worse.size:
            return
        self.raise_cycle(f"one through node {start + int(worse[0])}")

    def raise_cycle(self, otherwise: str = "its nodes could not be named") -> NoReturn:
        nodes = find_cycle(self.W, self.given, self.one)
        named = " → ".join(map(str, (*nodes, nodes[0]))) if nodes else otherwise
        raise CycleError(f"no best paths exist: a cycle gets better every time it is walked: {named}", nodes)


def _close(graph: _Graph, start: int, stop: int, progress: Progress | None = None) -> None:
    """Close the square of nodes start to stop, block by block."""
    n = stop - start
    if n <= SIDE:
        _close_small(graph, start, stop)
        return
    side = next((side for most, side in SIDES if n <= most), WIDEST)
    for number, k in enumerate(range(start, stop, side)):
        K = slice(k, min(k + side, stop))
        _close(graph, K.start, K.stop)
        graph.check_diagonal(K.start, K.stop)
        square = slice(start, stop)
        _by_way_of(graph, K, K, square)  # the block's row: first along K itself, then on
        _by_way_of(graph, square, K, K)
        _by_way_of(graph, square, K, square)
        if progress is not None:
            progress(number + 1, -(-n // side))


def _close_small(graph: _Graph, start: int, stop: int) -> None:
    D = graph.D[start:stop, start:stop]
    if graph.before is None:
        close_square(D, graph.algebra)
    else:
        before = graph.before[start:stop, start:stop]
        with np.errstate(all="ignore"):
            for k in range(stop - start):
                _improve(graph, D, before, graph.algebra.mul(D[:, k, None], D[None, k, :]), before[k][None])
    graph.check_diagonal(start, stop)


def _by_way_of(graph: _Graph, rows: slice, K: slice, cols: slice) -> None:
    """D[rows, cols] ⊕= D[rows, K] ⊗ D[K, cols]."""
    D, ring = graph.D, graph.algebra.semiring
    left, right = D[rows, K].copy(), D[K, cols].copy()
    if graph.before is None:
        matmul(left, right, semiring=ring, out=D[rows, cols], accumulate=True)
        return
    before, steps = graph.before, graph.before[K, cols].copy()
    for top in range(rows.start, rows.stop, BAND):
        band = slice(top, min(top + BAND, rows.stop))
        part = left[top - rows.start : band.stop - rows.start]
        made, arg = matmul(part, right, semiring=ring, return_arg=True)
        came = np.take_along_axis(steps, np.maximum(arg, 0), 0)
        _improve(graph, D[band, cols], before[band, cols], made, came)


def _improve(graph: _Graph, D: Array, before: Array, made: Array, came: Array) -> None:
    """Take over what is better, and who comes before it."""
    total = graph.algebra.add(D, made)
    changed = total != D
    np.copyto(D, total)
    np.copyto(before, np.broadcast_to(came, before.shape), where=changed)
