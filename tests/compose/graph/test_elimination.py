"""Closures where add(x, x) is not x: sums over all paths, counts of shortest ones, the k shortest, held against their
definitions; and refused, with the reason, where they have no limit."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_of
from tilewise.backends.cpu.kernels.search import run as search
from tilewise.compose.graph import elimination
from tilewise.compose.graph.elimination import eliminate_fields

SIZES = (1, 2, 7, 40, 130)  # one block, and several


@pytest.fixture
def rng():
    seed = next_seed() % 2**32
    print("seed", seed)
    return np.random.default_rng(seed)


def edges(rng, n, degree=3.0):
    return rng.random((n, n)) < min(1.0, degree / n)


def lengths_and_counts(rng, n, low=1, degree=3.0):
    held = edges(rng, n, degree)
    return np.where(held, rng.integers(low, 5, (n, n)), np.inf), held.astype(np.int64)


def count_shortest(length, paths):
    """Dijkstra from each node, paths counted in the order of lengths, which are above 0."""
    n = len(length)
    D, counts = np.full((n, n), np.inf), np.zeros((n, n), np.int64)
    for source in range(n):
        D[source, source], counts[source, source], done = 0, 1, set()
        heap = [(0.0, source)]
        while heap:
            far, u = heapq.heappop(heap)
            if u in done:
                continue
            done.add(u)
            for v in np.flatnonzero(paths[u]):
                new = far + length[u, v]
                if new < D[source, v]:
                    D[source, v], counts[source, v] = new, 0
                    heapq.heappush(heap, (new, v))
                if new == D[source, v]:
                    counts[source, v] += counts[source, u] * paths[u, v]
    return D, counts


def shortest_walks(length, source, k):
    """The k least lengths of walks to each node, ∞ where there are fewer."""
    found = [[] for _ in length]
    heap = [(0.0, source)]
    while heap:
        far, u = heapq.heappop(heap)
        if len(found[u]) == k:
            continue
        found[u].append(far)
        for v in np.flatnonzero(np.isfinite(length[u])):
            heapq.heappush(heap, (far + length[u, v], v))
    return np.array([x + [np.inf] * (k - len(x)) for x in found])


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_sums_of_products_are_a_geometric_series(rng, signs, dtype):
    for n in SIZES:
        W = rng.random((n, n)) * edges(rng, n) * (rng.choice([-1, 1], (n, n)) if signs else 1)
        W = (W * 0.9 / max(1e-9, abs(np.linalg.eigvals(W)).max())).astype(dtype)
        D = tw.closure(W, semiring="plus_times")
        assert D.dtype == W.dtype
        expected = np.linalg.inv(np.eye(n) - W.astype("complex128" if dtype[0] == "c" else "float64"))
        np.testing.assert_allclose(D, expected, rtol=2e-3 if dtype == "float32" else 1e-9, atol=1e-5)
        if not signs and dtype != "complex128":
            reached = tw.closure(W != 0, semiring="lor_land")
            np.testing.assert_array_equal(D == 0, ~reached)  # where no path is, nothing is


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64"])
def test_paths_of_a_graph_without_cycles_are_counted(rng, dtype):
    for n in SIZES:
        W = np.triu(edges(rng, n, 2.0), 1).astype(dtype)
        order = rng.permutation(n)
        W = W[np.ix_(order, order)]
        expected, power = np.eye(n, dtype=dtype), W
        while power.any():
            expected, power = expected + power, power @ W
        np.testing.assert_array_equal(tw.closure(W, semiring="plus_times"), expected)


def test_sums_of_logarithms(rng):
    for n in SIZES:
        chances = rng.random((n, n)) * edges(rng, n)
        chances *= 0.8 / max(1e-9, abs(np.linalg.eigvals(chances)).max())
        with np.errstate(divide="ignore"):
            W = np.log(chances)
            expected = np.log(tw.closure(chances, semiring="plus_times"))
        np.testing.assert_allclose(tw.closure(W, semiring="logaddexp_plus"), expected, rtol=1e-8, atol=1e-8)


def test_shortest_paths_are_counted(rng):
    for n in SIZES:
        W = lengths_and_counts(rng, n)
        length, paths = tw.closure(W, semiring=tw.min_count)
        expected = count_shortest(*W)
        np.testing.assert_array_equal(length, expected[0])
        np.testing.assert_array_equal(paths, expected[1])
        assert (length.dtype, paths.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("low", [0, 1])
def test_the_k_shortest_walks(rng, k, low):
    """Cycles of length 0 included: of walks of equal length there may be any number, and k of them are kept."""
    for n in (1, 2, 9, 30) if k < 8 else (9, 98):
        length = np.where(edges(rng, n), rng.integers(low, 6, (n, n)), np.inf)
        W = (length, *(np.full((n, n), np.inf) for _ in range(k - 1)))
        D = tw.closure(W, semiring=tw.k_best(k))
        for source in rng.integers(0, n, 4):
            expected = shortest_walks(length, int(source), k)
            np.testing.assert_array_equal(np.stack([field[source] for field in D], 1), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_searches_and_elimination_find_the_same_walks(rng, dtype, share, monkeypatch):
    """In rows of all nodes, along stored edges, and with parallel ones; some rows, and progress by blocks."""
    n, k, done = 45, 4, []
    monkeypatch.setattr(search, "BETWEEN", 1.0)
    W = [np.where(rng.random((n, n)) < share, rng.integers(0, 30, (n, n)), np.inf).astype(dtype)]
    W += [np.full((n, n), np.inf, dtype) for _ in range(k - 1)]
    if share < 1:
        W[1][3, 5], W[0][3, 5] = 8, 7
    expected = eliminate_fields(W, tw.k_best(k).over([dtype_of(x.dtype) for x in W]), None)
    made = tw.closure(tuple(W), semiring=tw.k_best(k), progress=lambda *at: done.append(at))
    some = tw.closure(tuple(W), semiring=tw.k_best(k), sources=[7, 3])
    assert done == [(at, len(done)) for at in range(1, len(done) + 1)]
    assert len(done) > 1
    for one, two, rows in zip(made, expected, some, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(rows, two[[7, 3]])


@pytest.mark.parametrize("weights", ["drawn", "alike", "one far away", "few"])
def test_edges_that_no_walk_needs_are_not_searched(rng, weights, monkeypatch):
    """The same walks as over all edges, whichever are left."""
    n, k = 150, 3
    length = rng.integers(0, 1000, (n, n)).astype(float)
    if weights == "alike":
        length[...] = 1
    if weights == "few":
        length = rng.integers(0, 3, (n, n)).astype(float)
    if weights == "one far away":
        length[:, 7] += 10**6
    W = (length, *[np.full((n, n), np.inf)] * (k - 1))
    made = tw.closure(W, semiring=tw.k_best(k))
    monkeypatch.setattr(elimination, "MANY", n + 1)
    for one, two in zip(made, tw.closure(W, semiring=tw.k_best(k)), strict=True):
        np.testing.assert_array_equal(one, two)
    left = elimination._possible_edges(length, k).mean()
    assert (left < 0.3) == (weights in ("drawn", "one far away"))


@pytest.mark.parametrize("signs", [False, True])
def test_derivatives_of_a_sum_over_all_paths(rng, signs):
    for n in SIZES[:4]:
        value = rng.random((n, n)) * (rng.choice([-1, 1], (n, n)) if signs else 1)
        value *= 0.7 / abs(np.linalg.eigvals(value)).max()
        slope = rng.normal(0, 1, (n, n))
        D, dD = tw.closure((value, slope), semiring="dual")
        inverse = np.linalg.inv(np.eye(n) - value)
        np.testing.assert_allclose(D, inverse, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(dD, inverse @ slope @ inverse, rtol=1e-7, atol=1e-9)


def test_the_origin_of_the_best_path(rng):
    value = np.where(edges(rng, 30), -rng.random((30, 30)), -np.inf)
    tag = rng.integers(0, 9, (30, 30))
    D, _ = tw.closure((value, tag), semiring="max_arg")
    np.testing.assert_allclose(D, tw.closure(value, semiring="max_plus"))


def test_a_structured_array_comes_back_as_one_and_sources_are_rows(rng):
    length, paths = lengths_and_counts(rng, 20)
    W = np.zeros((20, 20), [("a", "f8"), ("b", "i8")])
    W["a"], W["b"] = length, paths
    D = tw.closure(W, semiring="min_count")
    assert D.dtype == W.dtype
    np.testing.assert_array_equal(D["b"], tw.closure((length, paths), semiring="min_count")[1])
    np.testing.assert_array_equal(tw.closure(W, semiring="min_count", sources=[3, 0]), D[[3, 0]])


def test_progress_stacks_and_sources_of_numbers(rng):
    reported = []
    W = rng.random((2, 150, 150)) / 200
    D = tw.closure(W, semiring="plus_times", progress=lambda *at: reported.append(at))
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]
    np.testing.assert_array_equal(tw.closure(W, semiring="plus_times", sources=[5, 1]), D[:, [5, 1]])
    sparse = pytest.importorskip("scipy.sparse")
    np.testing.assert_array_equal(tw.closure(sparse.csr_array(W[0]), semiring="plus_times"), D[0])


INF = np.inf
ONE, NONE = np.ones((2, 2), np.int64), np.full((2, 2), INF)
ROUND = np.array([[INF, 1.0], [-1.0, INF]])
SHRINKS = np.array([[INF, 1.0], [-2.0, INF]])


@pytest.mark.parametrize(
    ("W", "ring", "error", "message"),
    [
        (np.ones((2, 2)), "plus_times", tw.CycleError, "node 0 have weight 1.0; a geometric series"),
        (np.array([[0, 0.5], [2.0, 0]]), "plus_times", tw.CycleError, "node 1 have weight 1.0"),
        (np.array([[0, 1], [1, 0]]), "plus_times", tw.CycleError, "integers only graphs without cycles"),
        (np.array([[0, -1.5], [1.0, 0]]), "plus_times", tw.CycleError, "spectral radius of W is 1.22"),
        (np.array([[0, -1], [0, 0]]), "plus_times", tw.DtypeError, "float64"),
        (np.array([[0.0]]), "logaddexp_plus", tw.CycleError, "below 0"),
        ((ROUND, ONE), "min_count", tw.CycleError, "node 1 have length 0.0, paths 1; .*without number"),
        ((SHRINKS, ONE), "min_count", tw.CycleError, "node 1 have length -1.0, paths 1; .*improves"),
        ((SHRINKS, NONE), "2_best", tw.CycleError, "best0 -1.0"),
        (np.array([[3]]), tw.modular(7), tw.CycleError, "do not settle"),
        ((ROUND, ONE, ONE), "min_count", tw.ShapeError, "3 fields"),
        ((np.ones((2, 3)), np.ones((2, 3), int)), "min_count", tw.ShapeError, "square"),
    ],
)
def test_what_has_no_limit_is_refused_with_the_reason(W, ring, error, message):
    with pytest.raises(error, match=message):
        tw.closure(W, semiring=ring)


@pytest.mark.parametrize(
    "how", [{"return_predecessors": True}, {"device": "cuda"}, {"sources": [2]}, {"sources": [0.5]}], ids=str
)
def test_keywords_that_do_not_go_with_fields_are_refused(how):
    with pytest.raises(tw.TilewiseError, match=next(iter(how))):
        tw.closure((ROUND, ONE), semiring="min_count", **how)


def test_a_cycle_of_length_0_among_paths_that_are_not_shortest_is_refused_all_the_same():
    """From node 0 to itself there are as many shortest paths as rounds."""
    length = np.array([[INF, 0.0, 5.0], [0.0, INF, 1.0], [INF, INF, INF]])
    with pytest.raises(tw.CycleError, match="length 0"):
        tw.closure((length, np.isfinite(length).astype(np.int64)), semiring=tw.min_count)


def test_lengths_below_0_are_taken_where_no_cycle_is(rng):
    length, paths = lengths_and_counts(rng, 30, low=-4)
    length[np.tril_indices(30)], paths[np.tril_indices(30)] = INF, 0
    D, counts = tw.closure((length, paths), semiring=tw.min_count)
    np.testing.assert_array_equal(D, tw.closure(length))
    assert (counts[np.isfinite(D)] > 0).all()
