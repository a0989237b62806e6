"""closure(sources=…): the rows of the whole closure, for every kind of input and every idempotent semiring."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from tilewise.algebra.dtypes import dtype_named

RINGS = ["min_plus", "max_min", "min_max", "lor_land"]
DTYPES = ["float64", "float32", "float16", "int32"]


def weights(shape: tuple[int, ...], ring: str, dtype: str, seed: int, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if ring == "lor_land":
        return rng.random(shape) < share
    zero = tw.semirings[ring].over(dtype_named(dtype)).zero
    W = rng.integers(0, 9, shape).astype(dtype)
    W[rng.random(shape) >= share] = zero
    return W


def check_steps(before: np.ndarray, D: np.ndarray, W: np.ndarray, ring: str, sources: list[int]) -> None:
    """Every path leads from its source to its target, over edges that combine to what D says."""
    combine = {"min_plus": sum, "max_min": min, "min_max": max, "lor_land": all}[ring]
    zero = False if ring == "lor_land" else tw.semirings[ring].over(dtype_named(D.dtype.name)).zero
    for row, source in enumerate(sources):
        for target in range(W.shape[-1]):
            nodes = tw.path(before, source, target, sources=sources)
            assert bool(nodes) == (target == source or D[row, target] != zero)
            if nodes and target != source:
                assert (nodes[0], nodes[-1]) == (source, target)
                assert combine([W[a, b] for a, b in pairwise(nodes)]) == D[row, target]


@given(st.sampled_from(RINGS), st.sampled_from(DTYPES), st.integers(1, 12), st.integers(0, 2**32 - 1), st.data())
def test_the_rows_are_those_of_the_whole_closure(ring: str, dtype: str, n: int, seed: int, data: st.DataObject) -> None:
    stack = data.draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)]))
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=n + 2))
    W = weights((*stack, n, n), ring, dtype, seed)
    whole = tw.closure(W, semiring=ring)
    rows = tw.closure(W, semiring=ring, sources=sources)
    D, before = tw.closure(W, semiring=ring, sources=sources, return_predecessors=True)
    assert rows.shape == before.shape == (*stack, len(sources), n)
    assert rows.dtype == whole.dtype
    np.testing.assert_array_equal(rows, whole[..., sources, :])
    np.testing.assert_array_equal(D, rows)
    for member in np.ndindex(*stack):
        check_steps(before[member], D[member], W[member], ring, sources)


@pytest.mark.parametrize("stack", [(), (2,)])
@pytest.mark.parametrize("given", [3, np.int32(3), [3], (3,), range(3, 4), np.array([3], np.uint8)])
def test_sources_may_be_any_sequence_of_numbers_or_one(given: object, stack: tuple[int, ...]) -> None:
    W = weights((*stack, 6, 6), "min_plus", "float64", 1)
    np.testing.assert_array_equal(tw.closure(W, sources=given), tw.closure(W)[..., [3], :])


@pytest.mark.parametrize("kind", ["matrix", "stack", "empty stack", "dask", "sparse"])
@pytest.mark.parametrize("given", [[-1], [6], [0.0], [True] * 6, [[1]], ["a"], [2**70], [None]])
def test_what_is_no_number_of_a_node_is_refused_everywhere(kind: str, given: object) -> None:
    W = weights((6, 6), "min_plus", "float64", 1)
    if kind == "dask":
        W = pytest.importorskip("dask.array").from_array(W, chunks=3)
    elif kind == "sparse":
        W = pytest.importorskip("scipy.sparse").csr_array(np.where(np.isinf(W), 0, W))
    elif kind != "matrix":
        W = np.stack([W] * (2 if kind == "stack" else 0) or [W])[: 0 if kind == "empty stack" else None]
    with pytest.raises(tw.UsageError, match=r"sources=.*numbers of nodes, from 0 to 5"):
        tw.closure(W, sources=given)


@pytest.mark.parametrize("ring", ["min_plus", "max_min", "lor_land"])
def test_dask_arrays_have_rows_too(ring: str) -> None:
    da = pytest.importorskip("dask.array")
    W = weights((20, 20), ring, "float64", 2)
    for sources in ([3], [19, 0, 3, 3], [], 7):
        rows = tw.closure(da.from_array(W, chunks=(7, 9)), semiring=ring, sources=sources)
        assert isinstance(rows, da.Array)
        assert rows.shape == (np.size(sources), 20)
        whole = tw.closure(W, semiring=ring)
        np.testing.assert_array_equal(rows.compute(), whole[np.atleast_1d(sources).astype(int)])


@pytest.mark.parametrize("how", [{"progress": print}, {"device": "cuda"}, {"return_predecessors": True}])
def test_dask_arrays_refuse_what_workers_do_not_do(how: dict[str, object]) -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(tw.UsageError, match=f"{next(iter(how))}="):
        tw.closure(da.ones((4, 4), chunks=2), **how)


@pytest.mark.parametrize("ring", RINGS)
def test_sparse_graphs_have_rows_too(ring: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    W = weights((15, 15), ring, "float64", 3)
    zero = False if ring == "lor_land" else tw.semirings[ring].over(dtype_named("float64")).zero
    rows, cols = np.nonzero(zero != W)
    S = sparse.csr_array((W[rows, cols], (rows.astype(np.int32), cols.astype(np.int32))), shape=W.shape)
    for sources in ([3], [14, 0, 3, 3], []):
        np.testing.assert_array_equal(
            tw.closure(S, semiring=ring, sources=sources), tw.closure(W, semiring=ring)[sources or slice(0)]
        )


def test_an_add_that_is_not_known_to_pick_a_winner_has_rows() -> None:
    lower = tw.Semiring("lower", add=lambda x, y: tw.where(x < y, x, y), mul=lambda x, y: x + y, zero=tw.largest)
    assert not lower.selective
    W = weights((9, 9), "min_plus", "float64", 4)
    np.testing.assert_array_equal(tw.closure(W, semiring=lower, sources=[2, 0]), tw.closure(W)[[2, 0]])
    with pytest.raises(tw.UsageError, match="picks a winner"):
        tw.closure(W, semiring=lower, sources=[2], return_predecessors=True)


def test_weights_below_zero_and_a_cycle_that_improves() -> None:
    W = np.array([[np.inf, -2, np.inf], [np.inf, np.inf, 1], [np.inf, np.inf, np.inf]])
    np.testing.assert_array_equal(tw.closure(np.stack([W, W]), sources=[0])[:, 0], [[0, -2, -1]] * 2)
    W[2, 0] = 0.5
    with pytest.raises(tw.CycleError, match="0 → 1 → 2 → 0"):
        tw.closure(np.stack([W, W]), sources=[0])


@pytest.mark.parametrize(("shape", "sources"), [((5, 5), None), ((5, 5), [1]), ((3, 5, 5), None), ((3, 100, 100), [0])])
def test_progress_is_reported_for_any_number_and_size_of_graphs(shape: tuple[int, ...], sources: object) -> None:
    reported: list[tuple[int, int]] = []
    tw.closure(weights(shape, "min_plus", "float64", 5), progress=lambda *at: reported.append(at), sources=sources)
    assert reported
    assert reported[-1][0] == reported[-1][1]
    assert [done for done, _ in reported] == list(range(1, reported[-1][1] + 1))
    assert len({total for _, total in reported}) == 1


def test_progress_of_a_stack_counts_all_its_blocks() -> None:
    reported: list[tuple[int, int]] = []
    tw.closure(weights((2, 150, 150), "min_plus", "float64", 5), progress=lambda *at: reported.append(at))
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_laws_hold_for_no_graph_at_all() -> None:
    no_one = tw.Semiring("no_one", add=tw.minimum, mul=lambda x, y: x + y + 1, zero=tw.largest)
    with pytest.raises(tw.AlgebraError, match="one"):
        tw.closure(np.ones((0, 3, 3)), semiring=no_one)


# paths from the rows of a few sources


def test_a_path_is_found_in_the_rows_of_a_few_sources() -> None:
    W = np.array([[np.inf, 4, 9], [4, np.inf, 2], [9, 2, np.inf]])
    _, before = tw.closure(W, sources=[2], return_predecessors=True)
    assert tw.path(before, 2, 0) == [2, 1, 0]
    assert tw.path(before, 2, 2) == [2]
    _, before = tw.closure(W, sources=[2, 0], return_predecessors=True)
    assert tw.path(before, 0, 2) == [0, 1, 2]
    assert tw.path(before, 2, 0) == [2, 1, 0]
    with pytest.raises(tw.UsageError, match=r"source=1 .*sources="):
        tw.path(before, 1, 0)


def test_a_square_table_of_reordered_sources_is_read_by_its_sources() -> None:
    """Row 0 belongs to node 2 here: by its number alone it would give paths of another source."""
    W = np.full((3, 3), np.inf)
    W[0, 1] = W[1, 2] = W[2, 0] = 1
    order = [2, 0, 1]
    _, before = tw.closure(W, sources=order, return_predecessors=True)
    _, whole = tw.closure(W, return_predecessors=True)
    for source, target in np.ndindex(3, 3):
        assert tw.path(before, source, target, sources=order) == tw.path(whole, source, target)
        assert tw.path(before, source, target) == tw.path(whole, source, target)


def test_a_source_that_reaches_nothing_needs_sources() -> None:
    W = np.full((3, 3), np.inf)
    W[0, 1] = 1
    _, before = tw.closure(W, sources=[2, 0], return_predecessors=True)
    assert tw.path(before, 2, 1, sources=[2, 0]) == []
    assert tw.path(before, 0, 1) == [0, 1]
    assert tw.path(before, 0, 2) == []
    with pytest.raises(tw.UsageError, match="sources="):
        tw.path(before, 2, 1)
    with pytest.raises(tw.UsageError, match="source=1 is not among sources="):
        tw.path(before, 1, 0, sources=[2, 0])
    with pytest.raises(tw.ShapeError, match=r"2 rows.*3 sources"):
        tw.path(before, 2, 0, sources=[2, 0, 1])


@pytest.mark.parametrize(("source", "target"), [(1.5, 0), (0, "1"), (True, 0)])
def test_ends_of_a_path_are_numbers_of_nodes(source: object, target: object) -> None:
    with pytest.raises(tw.UsageError, match="is not a node"):
        tw.path(np.array([[-1, 0], [1, -1]]), source, target)


def test_path_refuses_a_stack_of_tables() -> None:
    _, before = tw.closure(np.ones((2, 3, 3)), return_predecessors=True)
    with pytest.raises(tw.ShapeError, match=r"predecessors\[0\]"):
        tw.path(before, 0, 1)
