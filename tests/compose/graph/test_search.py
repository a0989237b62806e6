"""The best paths from some nodes over stored edges: by the definition, for every algebra and order; and the choice
between searches and tiles."""

from __future__ import annotations

import itertools
import time
import tracemalloc

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_named
from tilewise.compose.graph import search
from tilewise.compose.graph.laws import one_of
from tilewise.dispatch.sparse.arrays import Rows

sp = pytest.importorskip("scipy.sparse")

ALGEBRA = tw.semirings["min_plus"].over(dtype_named("float64"))
OWN = tw.Semiring("lower", add=lambda x, y: tw.where(x < y, x, y), mul=lambda x, y: x + y, zero=tw.largest)


def by_definition(rows, algebra, source):
    """Every edge again until none improves; None where that does not end."""
    values = np.full(rows.shape[0], algebra.zero, algebra.partial.numpy)
    values[source] = one_of(algebra)
    tails = np.repeat(np.arange(rows.shape[0]), np.diff(rows.starts))
    with np.errstate(all="ignore"):
        for _ in range(rows.shape[0] + 1):
            before = values.copy()
            for u, v, w in zip(tails, rows.indices, rows.data.astype(values.dtype), strict=True):
                if values[u] != algebra.zero:
                    made = algebra.mul(values[u : u + 1], np.full(1, w, values.dtype))
                    values[v] = algebra.add(values[v : v + 1], made)[0]
            if np.array_equal(values, before):
                return values
    return None


CASES = [
    *((ring, dtype, -3, 9) for ring in ("max_min", "min_max") for dtype in ("float64", "float32", "float16", "int32")),
    *(("min_plus", dtype, 0, 9) for dtype in ("float64", "int64", "int16", "bfloat16")),
    ("min_plus", "float64", -1, 30), ("min_plus", "int32", -1, 30), ("min_plus", "float64", -30, 3),
    ("max_plus", "float64", -30, 1), ("max_plus", "float32", -9, 0), ("max_plus", "float64", -3, 9),
    ("max_times", "float64", 0, 2), ("min_times", "float64", 1, 5), ("max_times", "float64", 0, 5),
    ("lor_land", "bool", 0, 2), ("lor_land", "float64", 0, 3), (OWN, "float64", -1, 30), (OWN, "float64", -9, 3),
]  # fmt: skip


@pytest.mark.parametrize(("ring", "dtype", "low", "high"), CASES, ids=str)
def test_every_algebra_and_order_by_the_definition(ring, dtype, low, high):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    algebra = (ring if isinstance(ring, tw.Semiring) else tw.semirings[ring]).over(dtype_named(dtype))
    ends = []
    for n, m in ((1, 1), (5, 9), (12, 30), (30, 45)):
        cells = np.unique(rng.integers(0, n * n, m))
        data = rng.integers(low, high, len(cells)).astype(algebra.element.numpy)
        rows = Rows((n, n), np.searchsorted(cells // n, np.arange(n + 1)), cells % n, data).without(algebra.zero)
        wanted = [by_definition(rows, algebra, source) for source in range(n)]
        ends += [x is None for x in wanted]
        W = rows.dense(algebra.zero, algebra.element.numpy)
        for source, want in enumerate(wanted):
            if want is None:
                with pytest.raises(tw.CycleError) as raised:
                    tw.closure(W, semiring=algebra.semiring, sources=[source])
                check_improves(raised.value.nodes, rows, algebra)
                continue
            D = tw.closure(W, semiring=algebra.semiring, sources=[source])
            np.testing.assert_array_equal(D[0], want.astype(algebra.result.numpy))
            if not (algebra.semiring.selective or algebra.partial.kind == "b"):
                continue
            D, before = tw.closure(W, semiring=algebra.semiring, sources=[source], return_predecessors=True)
            np.testing.assert_array_equal(D[0], want.astype(algebra.result.numpy))
            for target in np.flatnonzero(before[0] >= 0):
                assert tw.path(before, source, int(target), sources=[source])[-1] == target
    assert not all(ends)


def check_improves(nodes, rows, algebra):
    """Around the named cycle the one of mul gets better."""
    W = rows.dense(algebra.zero, algebra.partial.numpy)
    one = total = np.full(1, one_of(algebra), algebra.partial.numpy)
    for u, v in itertools.pairwise((*nodes, nodes[0])):
        assert W[u, v] != algebra.zero
        total = algebra.mul(total, W[u, v, None])
    assert algebra.add(one, total)[0] != one[0]


def test_the_heap_is_taken_only_where_no_weight_improves_on_one():
    def order(ring, *weights):
        algebra = tw.semirings[ring].over(dtype_named("float64"))
        rows = Rows((9, 9), np.arange(10), np.zeros(9, int), np.resize(weights, 9).astype(float))
        return search.allows_dijkstra(rows, algebra, one_of(algebra))

    assert order("min_plus", 0, 3)
    assert not order("min_plus", 0, -3)
    assert order("max_plus", 0, -3)
    assert not order("max_plus", 3)
    assert order("max_min", -3, 3)
    assert order("max_times", 0.5, 0)
    assert not order("max_times", 0.5, -2)
    assert not order("max_times", 2)
    assert order("min_times", 2)


@pytest.mark.parametrize(
    ("ring", "low"), [("min_plus", 0.0), ("max_min", -1.0), ("min_plus", -0.01), ("lor_land", 0.0)]
)
def test_one_source_takes_the_memory_of_the_edges(ring, low):
    """A dense matrix would have 80 GB. Weights below 0 are on edges to nodes of higher numbers alone."""
    n, m = 100_000, 1_000_000
    rng = np.random.default_rng(3)
    u, v = rng.integers(0, n, (2, m)).astype(np.int32)
    data = rng.random(m) + 0.01
    data[u < v] += low
    S = sp.csr_array((data, (u, v)), shape=(n, n))
    S.sum_duplicates()
    if ring == "min_plus" and low < 0:
        S = sp.triu(S, 1, format="csr")
    tracemalloc.start()
    D = tw.closure(S, semiring=ring, sources=[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * (S.data.nbytes + S.indices.nbytes)
    assert D.shape == (1, n)
    assert np.isfinite(D).sum() > n / 100


def test_a_cycle_that_improves_is_named_soon_among_many_nodes():
    """n rounds over all edges would take minutes."""
    n = 30_000
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, n, (2, 10 * n))
    S = sp.coo_array((rng.random(10 * n) + 0.1, (u, v)), shape=(n, n)).tolil()
    S[7, 11], S[11, 7] = 0.25, -0.5
    with pytest.raises(tw.CycleError, match="7 → 11 → 7") as raised:
        tw.closure(S, sources=[0])
    assert raised.value.nodes == (7, 11)


def processor_seconds(work):
    """The least of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def dense_of(S, semiring, dtype=float):
    algebra = (semiring if isinstance(semiring, tw.Semiring) else tw.semirings[semiring]).over(
        dtype_named(np.dtype(dtype).name)
    )
    made = np.full(S.shape, algebra.zero, dtype)
    c = S.tocoo()
    made[c.coords] = c.data
    return made


def graph(rng, n, degree, low=1.0):
    S = sp.random_array((n, n), density=min(1.0, degree / n), rng=rng, format="csr")
    S.data += low
    return S


@pytest.mark.parametrize("degree", [0.7, 2, 20])
def test_closures_by_search_and_by_tiles_agree(degree, monkeypatch):
    rng = np.random.default_rng(next_seed() % 2**32)
    S = graph(rng, 300, degree)
    W = dense_of(S, "min_plus")
    expected = {}
    for least in (0, 10**9):
        monkeypatch.setattr(search, "LEAST", least)
        monkeypatch.setattr(search, "STEP", {4: 1e9, 8: 1e9})  # so that only LEAST keeps from searching
        for given in (S, W, W.astype(np.float32)):
            D, before = tw.closure(given, return_predecessors=True)
            np.testing.assert_allclose(tw.closure(given), D, rtol=1e-6)
            expected.setdefault("D", D)
            np.testing.assert_allclose(D, expected["D"], rtol=1e-5)
            for i, j in rng.integers(0, 300, (50, 2)):
                nodes = tw.path(before, i, j)
                assert bool(nodes) == bool(np.isfinite(D[i, j]))
                total = sum(W[u, v] for u, v in itertools.pairwise(nodes))
                if nodes and i != j:
                    assert total == pytest.approx(D[i, j], rel=1e-5)


def test_the_choice_is_by_counts():
    rng = np.random.default_rng(0)
    float64 = tw.semirings["min_plus"].over(dtype_named("float64"))

    def rows(S):
        return Rows.of(S, "W", ALGEBRA)

    assert search.search_is_faster(rows(graph(rng, 3000, 0.8)), float64)
    assert search.search_is_faster(rows(graph(rng, 2000, 10)), float64)
    assert not search.search_is_faster(rows(graph(rng, 2000, 400)), float64)
    assert not search.search_is_faster(rows(graph(rng, 300, 200)), float64)
    assert not search.search_is_faster(rows(graph(rng, 100, 1)), float64)
    assert not search.search_is_faster(rows(graph(rng, 3000, 0.8, low=-2.0)), float64)


@pytest.mark.slow
def test_the_chosen_algorithm_is_seldom_the_slower_one():
    """30 drawn graphs near the break-even: processor seconds of one thread, over those of the faster algorithm."""
    seed = next_seed() % 2**32
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    float64 = tw.semirings["min_plus"].over(dtype_named("float64"))
    threads = tw.get_num_threads()
    tw.set_num_threads(1)
    try:
        tw.closure(np.zeros((300, 300)))
        lost = [loss_of_the_choice(graph(rng, int(n), degree), float64) for n, degree in drawn_graphs(rng, 30)]
    finally:
        tw.set_num_threads(threads)
    print(f"mean {np.mean(lost):.2f}, largest {max(lost):.2f}")
    assert np.mean(lost) < 1.1
    assert max(lost) < 1.5


def drawn_graphs(rng, count):
    return zip(rng.integers(500, 2001, count), 2 ** rng.uniform(0, 6, count), strict=True)


def loss_of_the_choice(S, algebra):
    rows = Rows.of(S, "W", ALGEBRA)
    W = rows.dense(np.inf, float)
    seconds = {True: processor_seconds(lambda: search.search(rows, ALGEBRA, False))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "LEAST", len(W) + 1)
        seconds[False] = processor_seconds(lambda: tw.closure(W))
    return seconds[search.search_is_faster(rows, algebra)] / min(seconds.values())


@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "min_max"])
def test_a_few_sources(semiring):
    rng = np.random.default_rng(0)
    for low in (1.0, -0.05):
        S = graph(rng, 80, 3, low)
        if low < 0:
            S = sp.csr_array(np.triu(S.toarray(), 1))  # no cycles
        W = dense_of(S, semiring)
        D, before = tw.closure(W, semiring=semiring, return_predecessors=True)
        rows, steps = tw.closure(W, semiring=semiring, sources=[3, 41], return_predecessors=True)
        np.testing.assert_allclose(rows, D[[3, 41]])
        assert steps.shape == before[[3, 41]].shape
        np.testing.assert_allclose(tw.closure(S, semiring=semiring, sources=7), D[[7]])
    with pytest.raises(tw.UsageError, match="must be numbers of nodes, from 0 to 79"):
        tw.closure(W, sources=[80])
    loop = np.array([[np.inf, 1.0], [-2.0, np.inf]])
    with pytest.raises(tw.CycleError, match="0 → 1 → 0"):
        tw.closure(loop, sources=[0])
