"""`reproducible=` of closures: bits that follow from W, by squares of I ⊕ W."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.errors import CycleError, UsageError

EVERYWHERE = {"reproducible": "everywhere"}


def weights(rng, nodes, dtype="float32", ring="min_plus"):
    """Edges that improve no empty path; some cells hold −0 or NaN."""
    W = rng.random((nodes, nodes)) * 8 + (1 if ring == "min_times" else 0)
    W[rng.random(W.shape) < 0.05] = np.nan
    W[rng.random(W.shape) < 0.5] = {"max_plus": -np.inf, "max_min": -np.inf}.get(ring, np.inf)
    if ring == "max_plus":
        W = np.where(W > 0, -W, W)
        W[rng.random(W.shape) < 0.02] = -0.0
    return W.astype(dtype)


def by_squares(W, ring, sums):
    """The definition, in NumPy."""
    add, mul, zero, one = {
        "min_plus": (np.fmin, np.add, np.inf, 0),
        "max_plus": (np.fmax, np.add, -np.inf, 0),
        "max_min": (np.fmax, np.fmin, -np.inf, np.inf),
        "min_times": (np.fmin, np.multiply, np.inf, 1),
    }[ring]
    D = add(W.astype(sums), np.where(np.eye(len(W)), one, zero).astype(sums)) + sums(0)
    reach = 1
    while reach < len(W):
        with np.errstate(invalid="ignore"):
            D = add.reduce(mul(D[:, :, None], D[None]), axis=1, initial=zero) + sums(0)
        reach *= 2
    return D.astype(W.dtype)


@pytest.mark.parametrize("ring", ["min_plus", "max_plus", "max_min", "min_times"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_closure_is_squares_of_w_with_its_empty_paths(ring, dtype):
    rng = np.random.default_rng(next_seed())
    for nodes in (0, 1, 2, *rng.integers(3, 40, sample_size(12)).tolist()):
        W = weights(rng, nodes, dtype, ring)
        D = tw.closure(W, semiring=ring, **EVERYWHERE)
        assert D.tobytes() == by_squares(W, ring, np.float64 if dtype == "float64" else np.float32).tobytes()
        np.testing.assert_allclose(D, tw.closure(W, semiring=ring), rtol=1e-2 if dtype == "float16" else 1e-5)


def test_layouts_threads_stacks_and_sources_change_no_bit():
    scipy = pytest.importorskip("scipy.sparse")
    W = weights(np.random.default_rng(3), 90)
    D, before = tw.closure(W, **EVERYWHERE), tw.get_num_threads()
    assert D.tobytes() != tw.closure(W).tobytes()  # blocks add up the steps of a path in another order
    try:
        for threads in (1, 2, 3):
            tw.set_num_threads(threads)
            assert tw.closure(np.asfortranarray(W), **EVERYWHERE).tobytes() == D.tobytes()
    finally:
        tw.set_num_threads(before)
    assert tw.closure(np.stack([W.T, W]), reproducible="batch")[1].tobytes() == D.tobytes()
    assert tw.closure(W, sources=[4, 2], **EVERYWHERE).tobytes() == D[[4, 2]].tobytes()
    stored = scipy.coo_array((W[W < 9], np.nonzero(W < 9)), W.shape)
    assert tw.closure(stored, **EVERYWHERE).tobytes() == D.tobytes()


def test_integers_have_it_in_every_algorithm():
    W = np.random.default_rng(4).integers(1, 99, (50, 50))
    assert np.array_equal(tw.closure(W, **EVERYWHERE), tw.closure(W))


def test_a_cycle_that_improves_is_named():
    W = np.full((60, 60), np.inf)
    nodes = np.arange(60)
    W[nodes, (nodes + 1) % 60] = 1.0  # one cycle through all of them
    W[59, 0] = -60.0
    with pytest.raises(CycleError, match=r"0 → 1 → 2 .* → 59 → 0"):
        tw.closure(W, **EVERYWHERE)
    W[59, 0] = -59.0
    assert tw.closure(W, **EVERYWHERE)[0, 59] == 59


def test_progress_is_reported_for_each_square():
    seen = []
    W = np.full((9, 9), np.inf)
    W[np.arange(8), np.arange(1, 9)] = 1.0
    tw.closure(W, progress=lambda *at: seen.append(at), **EVERYWHERE)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"return_predecessors": True}, "return_predecessors=True and reproducible='everywhere' exclude each other"),
        ({"semiring": "plus_times"}, "no closure over plus_times"),
        ({"semiring": "logaddexp_plus"}, "no closure over logaddexp_plus"),
        ({"semiring": tw.Semiring("far", add=tw.minimum, mul=lambda x, y: tw.sqrt(x * x + y * y), zero=np.inf)}, "far"),
    ],
)
def test_what_has_no_defined_bits_is_refused(how, message):
    with pytest.raises(UsageError, match=message):
        tw.closure(np.ones((3, 3), np.float32), **how, **EVERYWHERE)


def test_other_routes_refuse_it():
    W = np.ones((3, 3), np.float32)
    for given, how in (((W, W), {"semiring": "min_count"}), (pytest.importorskip("dask.array").from_array(W), {})):
        with pytest.raises(UsageError, match="closes one array of numbers"):
            tw.closure(given, **how, **EVERYWHERE)
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match="has no gradient"):
        tw.closure(torch.from_numpy(W).requires_grad_(), **EVERYWHERE)
    assert torch.equal(tw.closure(torch.from_numpy(W), **EVERYWHERE), torch.from_numpy(tw.closure(W, **EVERYWHERE)))
    with pytest.raises(UsageError, match="'batch', 'everywhere'"):
        tw.closure(W, reproducible="rows")
