"""Operands of two dtypes: P has the dtype that JAX promotes them to, in jit and outside, with 64 bits and without."""

from __future__ import annotations

from functools import partial
from itertools import product

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import tilewise as tw

KINDS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
WIDE = ["int64", "uint64", "float64", "complex128"]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def wide(request):
    with jax.enable_x64(request.param) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(request.param):
        yield request.param


def small(kind, *shape):
    return jnp.asarray(np.random.default_rng(len(kind)).integers(0, 4, shape)).astype(kind)


def test_pairs_of_dtypes_are_promoted_as_jax_does(wide):
    """Some of all pairs, drawn once: each is compiled."""
    pairs = [(m, n) for m, n in product(KINDS + WIDE * wide, repeat=2) if m != n]
    drawn = np.random.default_rng(3).choice(len(pairs), 5, replace=False)
    wrong = []
    for m, n in [("float32", "int32"), ("bfloat16", "int32"), ("int8", "uint32"), *(pairs[i] for i in drawn)]:
        M, N = small(m, 3, 4), small(n, 4, 2)
        want = jnp.matmul(M, N)
        for name, got in (("eager", tw.matmul(M, N)), ("jit", jax.jit(tw.matmul)(M, N))):
            if got.dtype != want.dtype or not (np.asarray(got) == np.asarray(want)).all():
                wrong.append((name, m, n, str(got.dtype), str(want.dtype)))
    assert not wrong


@pytest.mark.parametrize("call", [tw.matmul, jax.jit(tw.matmul)], ids=["eager", "jit"])
def test_8_bit_floats_count_as_float32(call):
    for other, want in (("float8_e5m2", "float32"), ("int32", "float32"), ("float16", "float32"), ("bool", "float32")):
        M, N = small("float8_e4m3fn", 3, 4), small(other, 4, 2)
        assert call(M, N).dtype == want
        assert call(N.T, M.T).dtype == want


@pytest.mark.drawn(2)
@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "lor_land"])
def test_other_semirings_are_promoted_alike(semiring, wide):
    for m, n in (("float32", "int32"), ("bfloat16", "int16"), ("int8", "uint32"), ("float16", "bfloat16")):
        M, N = small(m, 3, 4), small(n, 4, 2)
        eager = tw.matmul(M, N, semiring=semiring)
        traced = jax.jit(lambda M, N: tw.matmul(M, N, semiring=semiring))(M, N)
        want = jnp.bool_ if semiring == "lor_land" else jnp.promote_types(m, n)
        assert eager.dtype == traced.dtype == want
        np.testing.assert_array_equal(eager, traced)


def test_the_winning_k_of_two_dtypes(wide):
    M, N = small("float32", 3, 4), small("int32", 4, 2)
    best = partial(tw.matmul, semiring="min_plus", return_arg=True)
    (P, k), (Q, l) = best(M, N), jax.jit(best)(M, N)
    assert P.dtype == Q.dtype == "float32"
    np.testing.assert_array_equal(P, Q)
    np.testing.assert_array_equal(k, l)


def test_arrays_of_numpy_inside_jit_are_taken_as_jax_takes_them(wide):
    M, N = small("float32", 3, 4), np.arange(8.0).reshape(4, 2)
    got, want = jax.jit(lambda M: tw.matmul(M, N))(M), jax.jit(lambda M: jnp.matmul(M, N))(M)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_gradients_of_two_dtypes_come_back_in_their_own(wide):
    M, N = small("float16", 3, 4), small("float32", 4, 2)
    ours, theirs = (jax.grad(lambda M, N, f=f: f(M, N).sum(), argnums=(0, 1))(M, N) for f in (tw.matmul, jnp.matmul))
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.dtype == its.dtype
        np.testing.assert_allclose(np.asarray(mine, float), np.asarray(its, float), rtol=1e-3)


def test_einsum_chain_and_power_have_no_wide_results_without_x64():
    M, N = small("float32", 3, 3), small("int32", 3, 3)
    for call in (lambda: tw.einsum("ij,jk->ik", M, N), lambda: tw.einsum("ij,jk,kl->il", M, N, M),
                 lambda: tw.chain([N, M, N]), lambda: jax.jit(lambda M, N: tw.einsum("ij,jk->ik", M, N))(M, N),
                 lambda: jax.jit(lambda M, N: tw.chain([N, M, N]))(M, N), lambda: tw.matvec(M, N[0])):  # fmt: skip
        assert call().dtype == "float32"


def test_the_requested_dtype_is_returned(wide):
    M, N = small("float16", 3, 4), small("int32", 4, 2)
    assert tw.matmul(M, N, dtype="float32").dtype == "float32"
