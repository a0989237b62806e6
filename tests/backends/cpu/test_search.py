"""Searches from many sources, by the heap and by the queue, compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

import tilewise as tw
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_named
from tilewise.backends.cpu.kernels.search.run import search_from
from tilewise.backends.cpu.kernels.search.text import EVERYWHERE


@pytest.fixture
def rng():
    seed = next_seed() % 2**32
    print("seed", seed)
    return np.random.default_rng(seed)


def searched(S, sources, tracks, ordered=True):
    algebra = tw.semirings["min_plus"].over(dtype_named("float64"))
    cells = (S.indptr, S.indices, S.data)
    return search_from(cells, np.asarray(sources), algebra, 0, tracks=tracks, ordered=ordered)


def graph(rng, n, degree):
    S = sparse.random_array((n, n), density=min(1.0, degree / n), rng=rng, format="csr")
    S.data = rng.choice([0.25, 0.5, 1.0, 3.0], len(S.data)) if rng.random() < 0.5 else S.data + 0.01  # ties, or none
    return S


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("ordered", [True, False])
def test_lengths_are_scipys(rng, threads, ordered):
    tw.set_num_threads(threads)
    try:
        for n, degree in ((1, 1), (2, 1), (40, 0.5), (97, 2), (300, 9), (60, 60)):
            S = graph(rng, n, degree)
            sources = rng.integers(0, n, int(rng.integers(1, n + 1)))
            lengths, before, _ = searched(S, sources, True, ordered)
            np.testing.assert_allclose(lengths, dijkstra(S, indices=sources), rtol=1e-12)
            np.testing.assert_array_equal(lengths, searched(S, sources, False, ordered)[0])
            W = np.full((n, n), np.inf)
            W[S.nonzero()] = S.data
            for row, source in enumerate(sources):
                reached = np.isfinite(lengths[row])
                assert not reached[source] or before[row, source] == -1
                assert (before[row, ~reached] == -1).all()
                for node in np.flatnonzero(reached & (np.arange(n) != source)):
                    last = before[row, node]
                    assert lengths[row, last] + W[last, node] == lengths[row, node]
    finally:
        tw.set_num_threads(None)


@pytest.mark.parametrize("ordered", [True, False])
def test_edges_that_weigh_nothing(ordered):
    S = sparse.csr_array(([0.0, 0.0, 0.0], ([0, 1, 2], [1, 2, 0])), shape=(4, 4))
    lengths, before, _ = searched(S, np.arange(4), True, ordered)
    np.testing.assert_array_equal(lengths[:3, :3], np.zeros((3, 3)))
    assert np.isinf(lengths[:3, 3]).all()
    np.testing.assert_array_equal(before[0], [-1, 0, 1, -1])


def test_from_everywhere_at_once():
    S = sparse.csr_array(([-1.0, -2.0, 4.0], ([0, 1, 2], [1, 2, 0])), shape=(4, 4))
    lengths, before, ends = searched(S, [EVERYWHERE], True, ordered=False)
    np.testing.assert_array_equal(lengths, [[0, -1, -3, 0]])
    np.testing.assert_array_equal(before, [[-1, 0, 1, -1]])
    assert ends[0] == -1
    S.data[2] = 2.0
    assert -2 - searched(S, [EVERYWHERE], True, ordered=False)[2][0] in (0, 1, 2)


def test_no_nodes_and_no_sources():
    assert searched(sparse.csr_array((0, 0)), np.zeros(0, int), False)[0].shape == (0, 0)
    assert searched(sparse.csr_array((3, 3)), np.zeros(0, int), True)[1].shape == (0, 3)


def test_sources_that_are_no_nodes_are_refused():
    S = sparse.csr_array(np.eye(3))
    for sources in ([3], [-1], [0.5], [[0]]):
        with pytest.raises(tw.UsageError, match="must be numbers of nodes, from 0 to 2"):
            tw.closure(S, sources=sources)
