"""JAX arrays as they are, and values that jit, vmap and grad are tracing, on the CPU."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import tilewise as tw


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def values(*shape, seed=0, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32"])
def test_eager_arrays_go_in_and_out(dtype):
    M, N = (values(7, 5), values(3, 5, seed=1).T) if dtype != "int32" else (jnp.arange(35).reshape(7, 5),) * 2
    M, N = M.astype(dtype), (N if dtype != "int32" else N.T).astype(dtype)
    P = tw.matmul(M, N)
    assert isinstance(P, jax.Array)
    assert P.dtype == M.dtype
    np.testing.assert_allclose(np.asarray(P, np.float64), np.asarray(M, np.float64) @ np.asarray(N, np.float64),
                               rtol=2e-2, atol=3e-2)  # fmt: skip


SHAPES = [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 1, 4, 5), (3, 5, 2))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_jit(shapes):
    M, N = values(*shapes[0]), values(*shapes[1], seed=1)
    np.testing.assert_allclose(jax.jit(tw.matmul)(M, N), jnp.matmul(M, N), rtol=1e-5, atol=1e-5)
    shortest = jax.jit(lambda M, N: tw.matmul(M, N, semiring="min_plus"))(M, N)
    np.testing.assert_array_equal(shortest, tw.matmul(M, N, semiring="min_plus"))


def test_jit_of_a_large_product_does_not_hang():
    M = values(700, 900)
    step = jax.jit(lambda M: tw.matmul(M * 2, M.T).sum())
    for _ in range(3):
        np.testing.assert_allclose(step(M), (M * 2 @ M.T).sum(), rtol=1e-3)


def test_the_winning_k_under_jit():
    M, N = values(4, 5), values(5, 3, seed=1)
    P, k = jax.jit(lambda M, N: tw.matmul(M, N, semiring="min_plus", return_arg=True))(M, N)
    host, host_k = tw.matmul(np.asarray(M), np.asarray(N), semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(P, host)
    np.testing.assert_array_equal(k, host_k)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("shapes", [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,))], ids=str)
def test_vmap(axes, shapes):
    M, N = (values(*([6] if axis == 0 else []), *shape) for shape, axis in zip(shapes, axes, strict=True))
    np.testing.assert_allclose(jax.vmap(tw.matmul, axes)(M, N), jax.vmap(jnp.matmul, axes)(M, N), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients_are_jaxs_own(shapes):
    M, N = values(*shapes[0]), values(*shapes[1], seed=1)
    ours, theirs = (
        jax.grad(lambda M, N, f=f: (f(M, N) ** 2).sum(), argnums=(0, 1))(M, N) for f in (tw.matmul, jnp.matmul)
    )
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_what_is_not_there_says_so():
    M = values(3, 3)
    product = tw.Semiring("product", add=lambda x, y: x * y, mul=lambda x, y: x + y, zero=1, pad_m=1, pad_n=0)
    with pytest.raises(tw.UsageError, match="product has no gradient: its add is neither"):
        jax.grad(lambda M: tw.matmul(M, M, semiring=product).sum())(M)
    with pytest.raises(tw.UsageError, match="tile= have no meaning inside"):
        jax.jit(lambda M: tw.matmul(M, M, tile=4))(M)
    with pytest.raises(tw.ShapeError, match="3 columns of M"):
        jax.jit(tw.matmul)(M, values(4, 4))


def test_on_a_card_jit_is_asked_to_step_aside(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(tw.UsageError, match="call tilewise outside of jit"):
        jax.jit(tw.matmul)(values(3, 3), values(3, 3))


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_a_second_eager_call_is_a_prepared_one(shapes, monkeypatch):
    from tilewise import api

    for keywords in ({}, {"semiring": "max_plus"}, {"precision": "ieee"}):
        for dtype in ("float32", "bfloat16"):
            tw.matmul(*(values(*shape).astype(dtype) for shape in shapes), **keywords)
            M, N = (values(*shape, seed=7).astype(dtype) for shape in shapes)
            with monkeypatch.context() as never:
                never.setattr(api, "_first_call", lambda *_: pytest.fail("it was understood anew"))
                P = tw.matmul(M, N, **keywords)
            assert isinstance(P, jax.Array)
            assert P.dtype == M.dtype
            expected = tw.matmul(np.asarray(M), np.asarray(N), **keywords)
            np.testing.assert_array_equal(np.asarray(P, np.float32), np.asarray(expected, np.float32))
