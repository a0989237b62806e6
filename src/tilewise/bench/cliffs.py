"""Suite `cliffs` on a CPU: walks along m, k and n by factors; lists neighbours whose times do not match their work.

A walk varies one extent and keeps the other two, in one dtype and one layout of the operands. Two kinds of neighbours
are cliffs if CONFIRMED further timings agree: the larger takes less than FALLS of the smaller's time, or its time grows
GROWS times as much as its work. NumPy's times are listed too, because the end of a cache is a step for every library.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, pairwise, product

import numpy as np

from tilewise.api import matmul, plan
from tilewise.backends.cpu.runtime.pool import set_num_threads
from tilewise.bench.blas_threads import set_blas_threads
from tilewise.bench.suites import Piece, Request, Row, Shape
from tilewise.bench.timing import Work, host_seconds

FACTOR = 1.5  # from neighbour to neighbour
KEPT = (1, 2, 8, 64, 512, 10_000)  # the two extents that a walk does not vary
LARGEST, CELLS, STEPS = 10**7, 2**22, 2**27  # limits: an extent; cells of M, N and P together; steps of a product
FALLS, GROWS, CONFIRMED = 0.7, 2.5, 3
DTYPES = ("float32", "float64", "int64", "complex128")
LAYOUTS = ("NN", "TT")
CALL = 3e-6  # seconds of call overhead
SECONDS = 0.02  # time budget of a candidate


def pieces(request: Request) -> Iterator[Piece]:
    """One piece per walk; `--quick` takes every third walk."""
    walks = [walk for walk in product(DTYPES, LAYOUTS, range(3), product(KEPT, KEPT)) if len(shapes(*walk[2:])) > 1]
    for dtype, layouts, axis, kept in walks[:: 3 if request.quick else 1]:
        yield partial(cliffs, dtype, layouts, shapes(axis, kept), request.threads)


def shapes(axis: int, kept: tuple[int, int]) -> list[Shape]:
    """The shapes of a walk: the extent at `axis` grows from 1 by FACTOR within the limits."""
    found, extent = list[Shape](), 1
    while extent <= LARGEST:
        extents = [*kept]
        extents.insert(axis, extent)
        m, k, n = extents
        if m * k + k * n + m * n > CELLS or m * k * n > STEPS:
            break
        found.append((m, k, n))
        extent = max(extent + 1, round(extent * FACTOR))
    return found


def cliffs(dtype: str, layouts: str, walk: list[Shape], threads: int) -> list[Row]:
    """The cliffs of a walk."""
    set_num_threads(threads)
    set_blas_threads(threads)
    times, rows = {shape: seconds(shape, dtype, layouts) for shape in walk}, []
    for pair in pairwise(walk):
        first = [times[shape] for shape in pair]
        again = ([seconds(shape, dtype, layouts) for shape in pair] for _ in range(CONFIRMED))
        if all(is_cliff(pair, short, long) for (short, _), (long, _) in chain([first], again)):
            rows.append(_row(dtype, layouts, pair, first))
    return rows


def is_cliff(pair: tuple[Shape, Shape], short: float, long: float) -> bool:
    """Whether two times do not match the work of their products, apart from call overhead."""
    before, after = (work(shape) for shape in pair)
    if long < FALLS * short:
        return True
    return (long + CALL) / (short + CALL) > GROWS * max(1.0, after / before)


def work(shape: Shape) -> int:
    """Steps plus cells read and written."""
    m, k, n = shape
    return m * k * n + m * k + k * n + m * n


def seconds(shape: Shape, dtype: str, layouts: str) -> tuple[float, float]:
    """The least of our times and of NumPy's, interleaved."""
    M, N = operands(shape, dtype, layouts)
    works: tuple[Work, Work] = (lambda: matmul(M, N)), (lambda: M @ N)
    for run in works:
        run()
        run()
    rounds = [max(1, min(50, int(SECONDS / 3 / max(1e-7, host_seconds(run))))) for run in works]
    least = [float("inf"), float("inf")]
    for _ in range(3):
        for i, run in enumerate(works):
            least[i] = min(least[i], *(host_seconds(run) for _ in range(rounds[i])))
    return least[0], least[1]


def operands(shape: Shape, dtype: str, layouts: str) -> tuple[np.ndarray, np.ndarray]:
    """Random numbers; T: column-major."""
    (m, k, n), rng = shape, np.random.default_rng(0)
    made = [(9 * rng.standard_normal(extents)).astype(dtype) for extents in ((m, k), (k, n))]
    M, N = (np.asfortranarray(x) if how == "T" else x for x, how in zip(made, layouts, strict=True))
    return M, N


def _row(dtype: str, layouts: str, pair: tuple[Shape, Shape], times: list[tuple[float, float]]) -> Row:
    return {
        "case": f"{dtype} {layouts} " + " → ".join("×".join(map(str, shape)) for shape in pair),
        "dtype": dtype,
        "shape": list(pair[1]),
        "kernels": [plan(*operands(shape, dtype, layouts)).kernel for shape in pair],
        "seconds": [ours for ours, _ in times],
        "numpy_seconds": [theirs for _, theirs in times],
    }
