"""closure against SciPy and NetworkX, the weights of paths, and error messages."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from tilewise.algebra.dtypes import dtype_named
from tilewise.compose.graph import blocks
from tilewise.compose.graph.laws import one_of
from tilewise.errors import CycleError, DtypeError, ShapeError, UsageError

graphs = st.tuples(st.integers(1, 150), st.floats(0, 1), st.integers(0, 2**32 - 1))


def weights(n: int, share: float, seed: int, low: int = 0, high: int = 20) -> np.ndarray:
    """Whole weights, many of them equal (and 0), on a share of the edges."""
    rng = np.random.default_rng(seed)
    W = rng.integers(low, high, (n, n)).astype(float)
    W[rng.random((n, n)) >= share * 8 / max(n, 8)] = np.inf
    return W


def squared_until_still(W: np.ndarray, ring: str) -> np.ndarray:
    """The closure by its meaning: I ⊕ W, multiplied by itself until nothing changes, in the reference engine."""
    algebra = tw.semirings[ring].over(dtype_named(W.dtype.name))
    D = W.copy()
    diagonal = np.einsum("ii->i", D)
    diagonal[...] = algebra.add(diagonal, np.full(len(W), one_of(algebra), W.dtype))
    while True:
        E = tw.matmul(D, D, semiring=ring, kernel="reference")
        if np.array_equal(D, E):
            return D
        D = E


@given(graphs)
def test_shortest_paths_are_scipys(graph: tuple[int, float, int]) -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    W = weights(*graph)
    kept = W.copy()
    np.testing.assert_array_equal(tw.closure(W), _scipys(csgraph, W))
    np.testing.assert_array_equal(W, kept)


def _scipys(csgraph: object, W: np.ndarray, method: str = "D") -> np.ndarray:
    """SciPy's answer; its sparse form keeps edges of weight 0, its dense form does not."""
    from scipy.sparse import csr_array

    rows, cols = np.nonzero(np.isfinite(W))
    at = rows.astype(np.int32), cols.astype(np.int32)  # SciPy 1.13 takes no longer ones
    sparse = csr_array((W[rows, cols], at), shape=W.shape)
    return csgraph.shortest_path(sparse, method=method)  # type: ignore[attr-defined]


@given(graphs, st.booleans())
def test_paths_weigh_what_the_closure_holds(graph: tuple[int, float, int], transposed: bool) -> None:
    W = weights(*graph)
    W = W.T if transposed else W
    D, before = tw.closure(W, return_predecessors=True)
    np.testing.assert_array_equal(D, tw.closure(W))
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, len(W), (40, 2)):
        nodes = tw.path(before, i, j)
        if not nodes:
            assert np.isinf(D[i, j])
            continue
        assert nodes[0] == i
        assert nodes[-1] == j
        assert len(set(nodes)) == len(nodes)
        assert sum(W[a, b] for a, b in pairwise(nodes)) == D[i, j]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("ring", ["min_plus", "max_min", "min_max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 7, 64, 65, 200])
def test_any_idempotent_semiring_by_its_meaning(ring: str, dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    W = rng.integers(1, 50, (n, n)).astype(dtype)
    if ring != "min_plus" or dtype.startswith("float"):
        zero = tw.semirings[ring].over(dtype_named(dtype)).zero
        W[rng.random((n, n)) < 0.7] = zero
    np.testing.assert_array_equal(tw.closure(W, semiring=ring), squared_until_still(W, ring))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("n", [2, 70])
def test_min_max_over_negative_weights(n: int, dtype: str) -> None:
    """0 is neutral for max only among values of 0 or more, so the one of min_max is −∞ here."""
    W = np.random.default_rng(n).integers(-50, 50, (n, n)).astype(dtype)
    D = tw.closure(W, semiring="min_max")
    want = W.copy()
    for k in range(n):
        want = np.minimum(want, np.maximum(want[:, k : k + 1], want[k : k + 1]))
    off = ~np.eye(n, dtype=bool)
    np.testing.assert_array_equal(D[off], want[off])
    least = -np.inf if dtype.startswith("float") else np.iinfo(dtype).min
    assert (np.diagonal(D) == least).all()
    assert (np.diagonal(tw.power(W, 0, semiring="min_max")) == least).all()


@pytest.mark.parametrize("ring", ["max_plus", "min_times"])
def test_bools_without_a_value_for_no_edge_are_refused(ring: str) -> None:
    with pytest.raises(tw.DtypeError, match="use lor_land"):
        tw.closure(np.array([[False, True], [False, False]]), semiring=ring)
    assert tw.closure(np.array([[False, True], [False, False]]), semiring="max_min").tolist() == [[1, 1], [0, 1]]


def test_reachability_is_networkxs() -> None:
    nx = pytest.importorskip("networkx")
    for n, share in ((30, 0.05), (130, 0.01), (300, 0.004)):
        graph = nx.gnp_random_graph(n, share, seed=n, directed=True)
        W = nx.to_numpy_array(graph, nodelist=range(n)) != 0
        reach = tw.closure(W, semiring="lor_land")
        assert reach.dtype == bool
        right = nx.to_numpy_array(nx.transitive_closure(graph, reflexive=True), nodelist=range(n)) != 0
        np.testing.assert_array_equal(reach, right)
        D, before = tw.closure(W, semiring="lor_land", return_predecessors=True)
        np.testing.assert_array_equal(D, right)
        for i, j in np.argwhere(right)[:200]:
            nodes = tw.path(before, i, j)
            assert nodes[0] == i
            assert nodes[-1] == j
            assert all(W[a, b] for a, b in pairwise(nodes))


@pytest.mark.parametrize("ring", ["min_plus", "min_max", "max_min"])
def test_ties_never_close_a_cycle_of_predecessors(ring: str) -> None:
    """Weights 0 and 1 only, so that most cycles have weight 0."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        zero = float(tw.semirings[ring].over(dtype_named("float64")).zero.real)
        W = rng.integers(0, 2, (120, 120)).astype(float)
        W[rng.random((120, 120)) > 0.03] = zero
        D, before = tw.closure(W, semiring=ring, return_predecessors=True)
        for i in range(0, 120, 7):
            for j in range(120):
                nodes = tw.path(before, i, j)
                assert bool(nodes) == (D[i, j] != zero)
                edges = [W[a, b] for a, b in pairwise(nodes)]
                if edges and i != j:
                    assert D[i, j] == {"min_plus": sum, "min_max": max, "max_min": min}[ring](edges)


def test_negative_edges_without_a_negative_cycle() -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    rng = np.random.default_rng(3)
    height = rng.integers(0, 100, 150)
    W = weights(150, 1.0, 3, 1) + height[:, None] - height[None]  # the heights cancel around every cycle
    assert (W < 0).any()
    np.testing.assert_array_equal(tw.closure(W), _scipys(csgraph, W, "J"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16"])
def test_a_negative_cycle_is_named(dtype: str) -> None:
    zero = tw.semirings["min_plus"].over(dtype_named(dtype)).zero
    W = np.full((90, 90), zero).astype(dtype)
    for i in range(89):
        W[i, i + 1] = 2
    W[70, 3], W[3, 80], W[80, 70] = 1, 1, -3
    with pytest.raises(CycleError, match="3 → 80 → 70 → 3") as caught:
        tw.closure(W)
    assert caught.value.nodes == (3, 80, 70)
    with pytest.raises(CycleError):
        tw.closure(W, return_predecessors=True)
    W[80, 70] = -2  # a cycle of weight 0 is harmless
    assert tw.closure(W)[3, 70] == -1


def test_integers_that_mean_no_edge_never_wrap() -> None:
    top = np.iinfo(np.int32).max
    W = np.array([[top, 5, top], [top, top, -3], [top, top, top]], np.int32)
    D = tw.closure(W)
    np.testing.assert_array_equal(D, [[0, 5, 2], [top, 0, -3], [top, top, 0]])


def test_half_precision_adds_up_in_float32() -> None:
    W = np.full((300, 300), np.inf, np.float16)
    for i in range(299):
        W[i, i + 1] = 1.001953125  # 1 + 2⁻⁹
    D = tw.closure(W)
    assert D.dtype == np.float16
    assert D[0, 299] == np.float16(299 * 1.001953125)


def test_nan_is_no_edge() -> None:
    W = np.array([[np.nan, 1.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(tw.closure(W), [[0, 1], [np.inf, 0]])


def test_progress_counts_blocks_and_an_interruption_leaves_w_alone() -> None:
    W = weights(150, 1.0, 1)
    kept, calls = W.copy(), []
    tw.closure(W, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 2), (2, 2)]

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tw.closure(W, progress=interrupt)
    np.testing.assert_array_equal(W, kept)


def test_blocks_of_few_nodes_make_few_cells_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 256 made 2.6 times the steps that 400 nodes need."""
    module, steps = sys.modules["tilewise.compose.graph.blocks"], []
    real = module.matmul

    def counted(M: np.ndarray, N: np.ndarray, **how: object) -> np.ndarray:
        steps.append(M.shape[0] * M.shape[1] * N.shape[1])
        return real(M, N, **how)

    monkeypatch.setattr(module, "matmul", counted)
    W = np.random.default_rng(1).uniform(0.1, 1, (400, 400))
    D = tw.closure(W)
    assert sum(steps) <= 1.4 * 400**3
    assert (np.triu(D, 1) <= np.triu(W, 1)).all()


def test_an_own_semiring_has_a_closure() -> None:
    """The most reliable path: chances multiply, the best is kept."""
    ring = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    rng = np.random.default_rng(5)
    W = rng.uniform(0, 1, (100, 100)) * (rng.random((100, 100)) < 0.05)
    right = np.exp(-tw.closure(-np.log(np.where(W > 0, W, 1e-300))))
    found = tw.closure(W, semiring=ring)
    np.testing.assert_allclose(found[right > 1e-200], right[right > 1e-200], rtol=1e-9)


def test_empty_graph() -> None:
    assert tw.closure(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize(
    ("W", "options", "error", "message"),
    [
        (np.ones((2, 3)), {}, ShapeError, "square matrix"),
        (np.ones((2, 2, 3)), {}, ShapeError, "square matrix"),
        (np.ones((2, 2), np.int32), {"semiring": "max_times"}, DtypeError, "convert the weights to float64"),
        (np.full((9, 9), 30, np.int8), {}, DtypeError, "leave the range of int8"),
        (np.ones((2, 2), np.uint8), {}, DtypeError, "convert the weights"),
        (np.ones((2, 2), np.longdouble), {}, DtypeError, "float64"),
    ],
)
def test_what_cannot_be_closed_is_refused(W: np.ndarray, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        tw.closure(W, **options)


def test_path_refuses_what_is_no_table_of_predecessors() -> None:
    table = np.array([[-1, 0], [-1, -1]])
    assert tw.path(table, 0, 1) == [0, 1]
    assert tw.path(table, 1, 0) == []
    assert tw.path(table, 1, 1) == [1]
    with pytest.raises(UsageError, match="not a node"):
        tw.path(table, 0, 2)
    with pytest.raises(ShapeError, match="the table that closure"):
        tw.path([1.0], 0, 0)
    with pytest.raises(UsageError, match="cycle"):
        tw.path(np.array([[1, 2, 1], [0, 0, 0], [0, 0, 0]]), 0, 1)


def test_a_stack_of_graphs_is_closed_one_by_one():
    rng = np.random.default_rng(0)
    W = np.where(rng.random((2, 3, 20, 20)) < 0.2, rng.random((2, 3, 20, 20)), np.inf)
    D, before = tw.closure(W, return_predecessors=True)
    for member in np.ndindex(2, 3):
        one, steps = tw.closure(W[member], return_predecessors=True)
        np.testing.assert_array_equal(D[member], one)
        np.testing.assert_array_equal(before[member], steps)
    assert tw.closure(np.zeros((0, 4, 4))).shape == (0, 4, 4)
    with pytest.raises(tw.ShapeError, match="square"):
        tw.closure(np.zeros((2, 3, 4)))


@pytest.mark.parametrize("nodes", [47, 71, 72, 200, 400, 433, 961])
def test_no_cell_is_made_twice_in_a_round(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All products together have n³ steps."""
    taken = []
    matmul, close_small = blocks.matmul, blocks.Graph.close_small

    def counted(M: np.ndarray, N: np.ndarray, **how: object) -> object:
        taken.append(M.shape[0] * M.shape[1] * N.shape[1])
        return matmul(M, N, **how)

    def square(graph: blocks.Graph, start: int, stop: int) -> None:
        taken.append((stop - start) ** 3)
        close_small(graph, start, stop)

    monkeypatch.setattr(blocks, "matmul", counted)
    monkeypatch.setattr(blocks.Graph, "close_small", square)
    tw.closure(np.random.default_rng(nodes).random((nodes, nodes)))
    assert sum(taken) == nodes**3


def test_the_result_shares_no_memory() -> None:
    W = np.random.default_rng(0).random((5, 5))
    D = tw.closure(W)
    D[...] = 7
    assert not (W == 7).any()
    assert not (tw.closure(W) == 7).any()
