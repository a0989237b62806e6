"""JAX: every function inside jit, grad and vmap, and every keyword of a product inside jit."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.test_util import check_grads

import tilewise as tw
from exported_programs import through_a_file

RNG = np.random.default_rng(5)
W = jnp.asarray(RNG.uniform(0.1, 1, (5, 5)))
STACK = jnp.asarray(RNG.uniform(0.1, 1, (3, 5, 5)))
GROUPS, ENDS = jnp.asarray(RNG.random((2, 5, 3))), jnp.asarray([2, 4])


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


CALLS = {
    "closure": lambda a: tw.closure(a),
    "widest paths": lambda a: tw.closure(a, semiring="max_min"),
    "from sources": lambda a: tw.closure(a, sources=[3, 1]),
    "predecessors": lambda a: tw.closure(a, return_predecessors=True)[0],
    "fields": lambda a: tw.matmul((a, jnp.ones((5, 5))), (a, jnp.ones((5, 5))), semiring="min_count")[0],
    "fields of a vector": lambda a: tw.matmul((a, a), (a[0], a[1]), semiring="dual")[1],
    "groups": lambda a: tw.grouped_matmul(a, GROUPS, ENDS),
    "groups along k": lambda a: tw.grouped_matmul(a, a * 2, ENDS, along="k"),
    "rows of groups": lambda a: tw.grouped_matmul(a, GROUPS, ENDS, rows=jnp.asarray([4, 3, 2, 1, 0])),
    "rows": lambda a: tw.scatter_rows(a, jnp.asarray([0, 1, 7, -1, 0]), 2, weights=a[0]),
    "tiles": lambda a: tw.block_sparse_matmul(a[:4, :4], a[:4], np.eye(2)),
    "epilogue": lambda a: tw.matmul(a, a, alpha=0.5, bias=a[0], activation="gelu_tanh"),
    "dtype": lambda a: tw.matmul(a.astype("float32"), a.astype("float32"), dtype="float64"),
    "power": lambda a: tw.power(a, 3, semiring="min_plus"),
    "einsum": lambda a: tw.einsum("ij,jk,kl->il", a, a, a, semiring="max_plus"),
}


@pytest.mark.drawn(4)  # 3 s each
@pytest.mark.parametrize("name", CALLS)
def test_jit_grad_and_vmap(name):
    def call(a):
        return CALLS[name](jnp.asarray(a))  # differences are taken of NumPy's arrays

    np.testing.assert_allclose(jax.jit(call)(W), call(W), rtol=1e-6)
    check_grads(call, (W,), order=1, modes=("fwd", "rev"), rtol=2e-2, atol=2e-2, eps=1e-5)
    made = jax.vmap(call)(STACK)
    np.testing.assert_allclose(made, jnp.stack([call(a) for a in STACK]), rtol=1e-6)
    slope = jax.grad(lambda a: call(a).sum())
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(STACK), jnp.stack([slope(a) for a in STACK]), rtol=1e-6)


@pytest.mark.drawn(3)  # 2 s each
@pytest.mark.parametrize("name", CALLS)
def test_exported_with_its_gradient(name):
    call = CALLS[name]
    read = through_a_file(call, W, vjp_order=1)
    np.testing.assert_allclose(read.call(W), call(W), rtol=1e-6)
    ours, theirs = (jax.grad(lambda a, f=f: f(a).sum())(W) for f in (call, read.call))
    np.testing.assert_allclose(theirs, ours, rtol=1e-6)


def test_gradients_of_gradients_of_a_closure():
    best = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    check_grads(lambda a: tw.closure(a, semiring=best), (W * 0.9,), order=2, modes=("rev",), rtol=2e-2, eps=1e-5)


def test_values_of_a_closure_are_those_of_numpy():
    D, before = jax.jit(lambda a: tw.closure(a, return_predecessors=True))(W)
    host, table = tw.closure(np.asarray(W), return_predecessors=True)
    np.testing.assert_array_equal(D, host)
    np.testing.assert_array_equal(before, table)
    reach = jax.jit(lambda a: tw.closure(a, semiring="lor_land"))(W > 0.5)
    np.testing.assert_array_equal(reach, tw.closure(np.asarray(W) > 0.5, semiring="lor_land"))


def test_what_cannot_be_traced_is_refused():
    def below(a):
        return tw.power(a, 3, semiring="min_times")

    for call, message in (
        (lambda a: tw.closure(a, device="cuda"), "device="),
        (lambda a: tw.closure(a, progress=print), "progress="),
        (lambda a: tw.grouped_matmul(a, GROUPS, ENDS, kernel="plain"), "kernel="),
        (lambda a: tw.matmul((a, a), (a, a), semiring="dual", device="cuda"), "device="),
        (lambda a: tw.matmul((a, a), (a, a), semiring="dual", dtype="float32"), "dtype="),
        (lambda a: tw.matmul(a, a, memory="1GB"), "memory="),
        (below, "cannot be looked at"),
    ):
        with pytest.raises(tw.TilewiseError, match=message):
            jax.jit(call)(W)
    with pytest.raises(tw.UsageError, match="lor_land has no gradient"):
        jax.grad(lambda a: tw.closure(a, semiring="lor_land").astype(float).sum())(W)
    with pytest.raises(tw.UsageError, match="groups over min_plus have no gradient"):
        jax.grad(lambda a: tw.grouped_matmul(a, GROUPS, ENDS, semiring="min_plus").sum())(W)
