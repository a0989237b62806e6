"""Suite `semirings` on a CPU: every semiring beside the port limit, and min_plus beside other implementations."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import Array, dtype_named
from tilewise.api import matmul
from tilewise.backends.cpu.peak import peak_work
from tilewise.backends.cpu.runtime.pool import set_num_threads
from tilewise.bench.suites import Piece, Request, Row, Shape, peer_row
from tilewise.bench.timing import Work, bursts
from tilewise.compose.graph.closure import closure

CASES = (
    *((ring, dtype) for ring in ("min_plus", "max_plus", "max_times", "max_min") for dtype in ("float32", "float64")),
    ("min_plus", "int32"),
    ("min_plus", "int16"),
    ("plus_times", "int32"),
)  # fmt: skip


def pieces(request: Request) -> Iterator[Piece]:
    how: dict[str, Any] = {"threads": request.threads, "rounds": request.rounds(2, 5)}
    sizes = request.sizes or (1024,)
    yield from (partial(limit, *case, size, **how) for size, case in product(sizes, CASES))
    yield partial(min_plus_peers, **how)
    yield from (partial(closures, size, **how) for size in sizes)
    yield partial(reachability, **how)


def limit(ring: str, dtype: str, size: int, threads: int, rounds: int) -> list[Row]:
    """Steps a second, and their share of the port limit of the same run."""
    set_num_threads(threads)
    M, N = operands((size, size, size), dtype)
    peak, steps = peak_work(find_semiring(ring).over(dtype_named(dtype)), threads)
    ours = partial(matmul, M, N, semiring=ring, out=np.empty((size, size), dtype))
    seconds = bursts({"tilewise": ours, "peak": peak}, rounds, threads)
    rate, most = size**3 / seconds["tilewise"], steps / seconds["peak"]
    return [
        {"semiring": ring, "dtype": dtype, "shape": [size] * 3, "threads": threads, "steps_per_second": rate,
         "port_limit": most, "share_of_limit": rate / most}
    ]  # fmt: skip


def min_plus_peers(threads: int, rounds: int, size: int = 1024) -> list[Row]:
    """min_plus in float32 beside NumPy row by row, torch broadcasting, python-graphblas and Numba's best loop."""
    set_num_threads(threads)
    M, N = operands((size, size, size), "float32")
    P = np.empty((size, size), np.float32)
    right = matmul(M, N, semiring="min_plus")
    works: dict[str, Work] = {"tilewise": lambda: matmul(M, N, semiring="min_plus", out=P)}
    peers = {"numpy rows": _numpy, "torch": _torch, "graphblas": _graphblas, "numba": _numba}
    for name, make in peers.items():
        if importlib.util.find_spec(name.split()[0]):
            works[name] = make(M, N, threads)
            np.testing.assert_allclose(np.asarray(works[name]()), right, rtol=1e-6)
    seconds = bursts(works, rounds, threads)
    return [_row("min_plus", name, size, threads, seconds) for name in seconds if name != "tilewise"]


def closures(size: int, threads: int, rounds: int) -> list[Row]:
    """closure in float64 beside SciPy's floyd_warshall, which takes about 2 s at 1024, and at 4096, where it runs
    once, 64 times that."""
    from scipy.sparse.csgraph import floyd_warshall

    set_num_threads(threads)
    W, _ = operands((size, size, 1), "float64")
    np.testing.assert_allclose(closure(W[:300, :300]), floyd_warshall(W[:300, :300]))
    works = {"tilewise": partial(closure, W), "scipy": partial(floyd_warshall, W)}
    return [_row("closure", "scipy", size, threads, bursts(works, rounds, threads))]


def reachability(threads: int, rounds: int, size: int = 4096) -> list[Row]:
    """lor_land on bits beside OpenBLAS's float32 product of the same size."""
    set_num_threads(threads)
    (M, N), (A, B) = (operands((size, size, size), dtype) for dtype in ("bool", "float32"))
    works = {
        "tilewise": partial(matmul, M, N, semiring="lor_land", out=np.empty((size, size), bool)),
        "openblas float32": partial(np.matmul, A, B, out=np.empty((size, size), np.float32)),
    }
    return [_row("lor_land", "openblas float32", size, threads, bursts(works, rounds, threads))]


def _row(what: str, peer: str, size: int, threads: int, seconds: dict[str, float]) -> Row:
    return peer_row(what, peer, size, seconds["tilewise"], seconds[peer], threads=threads)


def operands(shape: Shape, dtype: str, *, signed: bool = False) -> tuple[Array, Array]:
    """Random, never all zeros: weights from 0.1 to 1 (half of them negative, if signed), small whole numbers, True for
    one in a hundred."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    number = dtype_named(dtype).numpy

    def matrix(rows: int, cols: int) -> Array:
        if dtype == "bool":
            return rng.random((rows, cols), np.float32) < 0.01
        if number.kind in "iu":
            return rng.integers(0, 100, (rows, cols)).astype(number)
        real = rng.random((rows, cols), np.float32) * 0.9 + 0.1
        if signed:
            real *= rng.integers(0, 2, (rows, cols), np.int8) * 2 - 1
        if number.kind == "c":
            return (real + 1j * rng.random((rows, cols), np.float32)).astype(number)
        return real.astype(number)

    return matrix(m, k), matrix(k, n)


def _numpy(M: Any, N: Any, threads: int) -> Work:
    def rows() -> Any:
        P = np.empty((len(M), N.shape[1]), M.dtype)
        transposed = np.ascontiguousarray(N.T)
        for i, row in enumerate(M):
            P[i] = (transposed + row).min(1)
        return P

    return rows


def _torch(M: Any, N: Any, threads: int) -> Work:
    import torch

    torch.set_num_threads(threads)
    tM, transposed = torch.from_numpy(M), torch.from_numpy(np.ascontiguousarray(N.T))

    def broadcast() -> Any:
        return torch.cat([(tM[i : i + 8, None, :] + transposed[None]).amin(2) for i in range(0, len(M), 8)])

    return broadcast


def _graphblas(M: Any, N: Any, threads: int) -> Work:
    import graphblas

    A, B = graphblas.Matrix.from_dense(M), graphblas.Matrix.from_dense(N)
    return lambda: graphblas.semiring.min_plus(A @ B).new().to_dense()


def _numba(M: Any, N: Any, threads: int) -> Work:
    import numba

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def by_rows(M: Any, N: Any) -> Any:
        P = np.full((M.shape[0], N.shape[1]), np.inf, np.float32)
        for i in numba.prange(M.shape[0]):
            for k in range(M.shape[1]):
                x = M[i, k]
                for j in range(N.shape[1]):
                    P[i, j] = min(P[i, j], x + N[k, j])
        return P

    return lambda: by_rows(M, N)
