"""The plain kernels on the card: every way, layout, edge and piece of k; few rows; the k that won; closures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, values, weighs, works
from oracle import assert_product
from tilewise.backends.cuda.device import describe
from tilewise.core.problem import problem_of_shape
from tilewise.planning.choose import make_plan

cupy = pytest.importorskip("cupy")

SHAPES = ((1, 1, 1), (129, 65, 257), (127, 16, 130), (5, 1000, 300), (300, 999, 7), (33, 5000, 20), (1, 4097, 3))
KNOWN_TO_CUPY = [d for d in CARD_DTYPES if d != "bfloat16"]


def lying(a, config):
    """The same matrix on the card, lying in memory in another way, NaN or the largest value around it."""
    rows, cols = a.shape
    if config == "rows":
        return cupy.asarray(a)
    if config == "columns":
        return cupy.asarray(np.ascontiguousarray(a.T)).T
    if config == "odd rows":
        memory = cupy.full((rows, cols + 3), cupy.asarray(a).ravel()[0], a.dtype)
        memory[:, 1 : cols + 1] = cupy.asarray(a)
        return memory[:, 1 : cols + 1]
    memory = cupy.zeros((2 * rows, 3 * cols), a.dtype)  # apart
    memory[::2, ::3] = cupy.asarray(a)
    return memory[::2, ::3]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("configs", list(itertools.product(("rows", "columns", "odd rows", "apart"), repeat=2)))
def test_layouts_and_edges(shape, configs):
    m, k, n = shape
    M, N = values((m, k), "float32", 1), values((k, n), "float32", 2)
    for kernel in ("plain", None):
        P = tw.matmul(lying(M, configs[0]), lying(N, configs[1]), kernel=kernel, precision="ieee")
        assert_product(P.get(), M, N, "plus_times")


@pytest.mark.parametrize("dtype", KNOWN_TO_CUPY)
@pytest.mark.parametrize("name", SEMIRINGS)
def test_every_dtype_and_semiring(dtype, name):
    if not works(name, dtype):
        pytest.skip("not an algebra")
    for m, k, n in ((70, 130, 90), (40, 3000, 33), (3, 700, 130)):
        M, N = (values(s, dtype, seed, True, weighs(name)) for s, seed in (((m, k), 5), ((k, n), 6)))
        assert_product(tw.matmul(cupy.asarray(M), cupy.asarray(N), semiring=name, kernel="plain").get(), M, N, name)
        assert_product(tw.matmul(cupy.asarray(M), cupy.asarray(N), semiring=name).get(), M, N, name)


@pytest.mark.parametrize("dtype", ["float32", "int16", "float16", "float64", "int64"])
@pytest.mark.parametrize("name", ["min_plus", "max_min", "max_plus"])
def test_the_k_that_won_is_the_cpus(dtype, name):
    for m, k, n in ((70, 301, 130), (4, 3000, 90), (90, 700, 2)):
        sums = name.endswith("_plus")  # integers under min and max stay within the range of weights
        M, N = (values(s, dtype, seed, True, weights=sums) for s, seed in (((m, k), 1), ((k, n), 2)))
        expected, won = tw.matmul(M, N, semiring=name, return_arg=True)
        for A, B in ((cupy.asarray(M), cupy.asarray(N)), (lying(M, "odd rows"), lying(N, "apart"))):
            P, where = tw.matmul(A, B, semiring=name, return_arg=True)
            np.testing.assert_array_equal(P.get(), expected)
            np.testing.assert_array_equal(where.get(), won)
    P, where = tw.matmul(M, N, semiring=name, return_arg=True, device="cuda")
    np.testing.assert_array_equal(where, won)


@pytest.mark.parametrize("name", ["min_plus", "max_plus", "min_times", "min_max", "max_min"])
def test_a_promise_changes_no_bit(name):
    M, N = (cupy.abs(cupy.asarray(values(s, "float32", 1))) for s in ((300, 511), (511, 257)))
    plain = tw.matmul(M, N, semiring=name, kernel="plain")
    np.testing.assert_array_equal(tw.matmul(M, N, semiring=name, nonnegative=True, kernel="plain").get(), plain.get())


@pytest.mark.parametrize("shape", [(2047, 2047, 2047), (4097, 4097, 4097), (5003, 3001, 7013)])
@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
def test_large_and_ragged(shape, name):
    """Thin edges while the last tiles run, rows of P that begin anywhere, last tiles in pieces of k."""
    m, k, n = shape
    M, N = values((m, k), "float32", 3), values((k, n), "float32", 4)
    P = tw.matmul(cupy.asarray(M), cupy.asarray(N), semiring=name, precision="ieee").get()
    rows = np.r_[0:9, m - 9 : m]
    assert_close = np.testing.assert_array_equal if name == "min_plus" else np.testing.assert_allclose
    how = {} if name == "min_plus" else {"rtol": 2e-3, "atol": 2e-3}
    assert_close(P[rows], tw.matmul(M[rows], N, semiring=name), **how)
    assert_close(P[:, -3:], tw.matmul(M, np.ascontiguousarray(N[:, -3:]), semiring=name), **how)


@pytest.mark.parametrize("name", ["min_plus", "max_times"])
@pytest.mark.parametrize("size", [2048, 2100])
def test_operands_are_looked_through_for_what_the_faster_config_cannot_have(name, size):
    """One element that is negative, NaN or infinite, in M or in N, on the way or back to none: no bit is another."""
    plain = make_plan(problem_of_shape(size, size, size, semiring=name), describe("cuda:0"))
    assert "found below 0" in plain.why
    M, N = (abs(values((size, size), "float32", seed)) for seed in (5, 6))
    rows = np.r_[0:3, size - 3 : size]
    for side, odd in ((0, 1.0), (0, -0.0), (1, -3.0), (0, np.nan), (1, np.inf), (1, 2.0)):
        (M if side == 0 else N)[size - 2, 7] = odd
        P = tw.matmul(cupy.asarray(M), cupy.asarray(N), semiring=name).get()
        np.testing.assert_array_equal(P[rows], tw.matmul(M[rows], N, semiring=name))
        np.testing.assert_array_equal(P[:, 5:9], tw.matmul(M, np.ascontiguousarray(N[:, 5:9]), semiring=name))
        (M if side == 0 else N)[size - 2, 7] = 1.0


@pytest.mark.parametrize("shape", [(1000, 777, 555), (16, 8000, 900), (40, 9000, 40), (5003, 1001, 7013)])
def test_the_same_bits_from_run_to_run(shape):
    m, k, n = shape
    M, N = cupy.asarray(values((m, k), "float32", 1)), cupy.asarray(values((k, n), "float32", 2))
    first = tw.matmul(M, N, precision="ieee").get()
    for _ in range(5):
        np.testing.assert_array_equal(tw.matmul(M, N, precision="ieee").get(), first)


def graph(n, seed, dtype="float32"):
    rng = np.random.default_rng(seed)
    there = rng.random((n, n)) < 4 / n
    if dtype == "bool":
        return there
    none = np.iinfo(dtype).max if np.dtype(dtype).kind == "i" else np.inf
    return np.where(there, rng.integers(1, 1000, (n, n)), none).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "float16"])
@pytest.mark.parametrize("n", [1, 63, 200, 700, 1300])
def test_closures_are_the_cpus(dtype, n):
    W = graph(n, n, dtype)
    name = "lor_land" if dtype == "bool" else "min_plus"
    expected = tw.closure(W, semiring=name)
    np.testing.assert_array_equal(tw.closure(cupy.asarray(W), semiring=name).get(), expected)
    np.testing.assert_array_equal(tw.closure(W, semiring=name, device="cuda"), expected)


@pytest.mark.parametrize("n", [100, 700])
def test_predecessors_rebuild_best_paths(n):
    W = graph(n, 1)
    D, before = (x.get() for x in tw.closure(cupy.asarray(W), return_predecessors=True))
    for source, target in itertools.product(range(0, n, 37), range(0, n, 41)):
        nodes = tw.path(before, source, target)
        if nodes:
            total = sum(W[a, b] for a, b in itertools.pairwise(nodes))
            assert total == D[source, target]
        else:
            assert np.isinf(D[source, target])


def test_a_negative_cycle_is_named():
    W = graph(300, 2)
    W[7, 9], W[9, 7] = -5, 2
    with pytest.raises(tw.CycleError, match="7 → 9 → 7"):
        tw.closure(cupy.asarray(W))
