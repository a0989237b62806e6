"""JAX: grad, jvp, vmap and their compositions over every semiring with gradients, beside products of JAX's own."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.test_util import check_grads

import tilewise as tw
from seeds import next_seed

MULS = {"plus": jnp.add, "times": jnp.multiply, "min": jnp.minimum, "max": jnp.maximum}
RINGS = [
    "plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "logaddexp_plus",
    tw.Semiring("distance", add=lambda x, y: x + y, mul=lambda x, y: tw.absolute(x - y), zero=0, pad_m=0, pad_n=0),
    tw.Semiring("steep", add=tw.maximum, mul=lambda x, y: tw.where(x > y, 2 * x + y, x + y), zero=tw.smallest),
    tw.Semiring("soft", add=tw.logaddexp, mul=lambda x, y: x * y, zero=float("-inf"), pad_m=float("-inf"), pad_n=1),
]  # fmt: skip
SHAPES = [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 1, 4, 5), (3, 5, 2)), ((3, 1), (1, 2))]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


def own(ring):
    """The same product of JAX's own operations: all terms, then reduced."""
    muls = {
        "distance": lambda x, y: abs(x - y), "soft": jnp.multiply,
        "steep": lambda x, y: jnp.where(x > y, 2 * x + y, x + y),
    }  # fmt: skip
    name = str(ring)
    mul = muls.get(name) or MULS[name.split("_")[1]]
    add = (
        "plus"
        if name == "distance"
        else "max"
        if name == "steep"
        else "logaddexp"
        if name == "soft"
        else name.split("_")[0]
    )
    reduce = {"plus": jnp.sum, "min": jnp.min, "max": jnp.max, "logaddexp": jax.nn.logsumexp}[add]

    def product(M, N):
        rows, cols = (M[None] if M.ndim == 1 else M), (N[:, None] if N.ndim == 1 else N)
        P = reduce(mul(rows[..., :, :, None], cols[..., None, :, :]), axis=-2)
        P = P[..., 0] if N.ndim == 1 else P
        return P[..., 0, :] if M.ndim == 1 and N.ndim > 1 else P[0] if M.ndim == 1 else P

    return product


def drawn(*shapes):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.standard_normal(shape)) for shape in shapes]


EVERY = ("plus_times", "min_plus", "logaddexp_plus")  # one of each kind meets every shape; the others two of them
CASES = [
    pytest.param(
        ring, shapes, id=f"{ring}-{shapes}", marks=() if str(ring) in EVERY or i % 5 == j else pytest.mark.slow
    )
    for i, ring in enumerate(RINGS)
    for j, shapes in enumerate(SHAPES)
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("ring", "shapes"), CASES)
def test_grad_and_jvp_are_jaxs(ring, shapes):
    M, N, tM, tN = drawn(*shapes, *shapes)

    def loss(product):
        return lambda M, N: (jnp.sin(product(M, N)) * 3).sum()

    ours, theirs = (lambda M, N: tw.matmul(M, N, semiring=ring)), own(ring)
    for made, right in zip(jax.grad(loss(ours), (0, 1))(M, N), jax.grad(loss(theirs), (0, 1))(M, N), strict=True):
        np.testing.assert_allclose(made, right, rtol=1e-9, atol=1e-9)
    for made, right in zip(jax.jvp(ours, (M, N), (tM, tN)), jax.jvp(theirs, (M, N), (tM, tN)), strict=True):
        np.testing.assert_allclose(made, right, rtol=1e-9, atol=1e-9)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_second_order_vmap_and_jit_of_them(ring):
    M, N, batch = drawn((3, 4), (4, 2), (5, 3, 4))

    def loss(product):
        return lambda M: (product(M, N) ** 2).sum()

    ours, theirs = loss(lambda M, N: tw.matmul(M, N, semiring=ring)), loss(own(ring))
    np.testing.assert_allclose(jax.hessian(ours)(M), jax.hessian(theirs)(M), rtol=1e-8, atol=1e-8)
    for wrap in (lambda f: jax.vmap(jax.grad(f)), lambda f: jax.jit(jax.vmap(jax.grad(f)))):
        np.testing.assert_allclose(wrap(ours)(batch), wrap(theirs)(batch), rtol=1e-9, atol=1e-9)


def test_jaxs_own_check_of_gradients():
    M, N = drawn((3, 4), (4, 2))
    for ring in ("plus_times", "logaddexp_plus"):
        check_grads(lambda M, N, ring=ring: tw.matmul(M, N, semiring=ring), (M, N), order=2, modes=("fwd", "rev"))


def test_no_edge_has_no_tangent():
    M = jnp.asarray([[0.0, jnp.inf], [jnp.inf, jnp.inf]])
    slope = jax.grad(lambda M: jnp.where(jnp.isinf(P := tw.matmul(M, M, semiring="min_plus")), 0, P).sum())(M)
    np.testing.assert_array_equal(slope, [[2, 0], [0, 0]])
    far = jnp.full((2, 2), -jnp.inf)
    soft = jax.grad(lambda M: jnp.exp(tw.matmul(M, M, semiring="logaddexp_plus")).sum())(far)
    np.testing.assert_array_equal(soft, np.zeros((2, 2)))


def test_the_winning_k_stays_beside_a_gradient():
    M, N = drawn((4, 5), (5, 3))

    def loss(M):
        P, k = tw.matmul(M, N, semiring="max_plus", return_arg=True)
        return (P * k).sum()

    _, k = tw.matmul(np.asarray(M), np.asarray(N), semiring="max_plus", return_arg=True)
    expected = np.zeros((4, 5))
    for i, j in np.ndindex(4, 3):
        expected[i, k[i, j]] += k[i, j]
    np.testing.assert_allclose(jax.grad(loss)(M), expected)
