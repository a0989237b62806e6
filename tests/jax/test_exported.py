"""Programs that jax.export writes: the same numbers, in XLA's own operations alone."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import tilewise as tw
from exported_programs import through_a_file
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES as NUMBERS

SEMIRINGS = ("plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "lor_land")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "complex64")
RNG = np.random.default_rng(next_seed())
STACK = np.where(RNG.random((2, 9, 9)) < 0.4, RNG.integers(1, 9, (2, 9, 9)), np.inf)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("semiring", [*SEMIRINGS, "logaddexp_plus"])
def test_products(semiring, dtype):
    M, N = (jnp.asarray(RNG.integers(0, 3, shape)).astype(dtype) for shape in ((2, 6, 7), (7, 5)))
    if dtype == "int32" and semiring in ("min_plus", "max_plus"):
        M = M.at[:, 1].set(tw.semirings[semiring].over(NUMBERS[dtype]).zero)  # no edge
    try:
        want = tw.matmul(M, N, semiring=semiring)
    except tw.TilewiseError:
        pytest.skip("refused for arrays")
    made = through_a_file(lambda M, N: tw.matmul(M, N, semiring=semiring), M, N).call(M, N)
    assert made.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(made, complex), np.asarray(want, complex), rtol=1e-2, atol=1e-6)
    if semiring.startswith(("min", "max")) and dtype not in ("bool",):
        both = through_a_file(lambda M, N: tw.matmul(M, N, semiring=semiring, return_arg=True), M, N).call(M, N)
        for one, two in zip(both, tw.matmul(M, N, semiring=semiring, return_arg=True), strict=True):
            np.testing.assert_array_equal(np.asarray(one, float), np.asarray(two, float))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "min_max", "lor_land", "max_times"])
def test_closures_and_their_predecessors(semiring, dtype):
    edges, lengths = np.isfinite(STACK), np.where(np.isinf(STACK), 1, STACK)
    weights = (lengths / 9 if dtype[0] == "f" else lengths).astype(dtype)
    weights[~edges] = tw.semirings[semiring].over(NUMBERS[dtype]).zero
    try:
        want = tw.closure(weights, semiring=semiring, sources=[3, 1, 8])
    except tw.TilewiseError:
        pytest.skip("refused for arrays")
    given = jnp.asarray(weights)
    made = through_a_file(lambda a: tw.closure(a, semiring=semiring, sources=[3, 1, 8]), given).call(given)
    np.testing.assert_allclose(made, want, rtol=1e-6)
    if semiring == "max_times":
        return
    D, before = through_a_file(lambda a: tw.closure(a, semiring=semiring, return_predecessors=True), given).call(given)
    kept = tw.semirings[semiring].over(NUMBERS[dtype])
    given = weights != 0 if semiring == "lor_land" else weights
    for graph, lengths, table in zip(given, np.asarray(D), np.asarray(before), strict=True):
        for source, target in np.argwhere(lengths != kept.zero):
            walk = tw.path(table, int(source), int(target))
            assert walk, "every node that is reached has a path"
            if source != target:
                steps = [graph[i, j] for i, j in pairwise(walk)]
                total = steps[0]
                for step in steps[1:]:
                    total = kept.mul(total, step)
                np.testing.assert_allclose(total, lengths[source, target], rtol=1e-6)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("along", ["rows", "k"])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_times"])
def test_groups_over_any_semiring(along, semiring):
    x, ends = jnp.asarray(RNG.random((7, 4))), jnp.asarray([2, 2, 5])
    w = jnp.asarray(RNG.random((3, 4, 5) if along == "rows" else (7, 5)))

    def call(x, w, ends):
        return tw.grouped_matmul(x, w, ends, along=along, semiring=semiring)

    made = through_a_file(call, x, w, ends).call(x, w, ends)
    np.testing.assert_allclose(made, tw.grouped_matmul(x, w, ends, along=along, semiring=semiring), rtol=1e-6)


def test_an_improving_cycle_is_nan():
    given = jnp.asarray([[0.0, 1.0], [-2.0, 0.0]])
    made = through_a_file(tw.closure, given).call(given)
    assert np.isnan(made).all()


def test_what_has_no_such_form_is_refused():
    with pytest.raises(tw.UsageError, match="cannot be exported"):
        through_a_file(lambda a: tw.closure(a, semiring="plus_times"), jnp.eye(3) / 9)
