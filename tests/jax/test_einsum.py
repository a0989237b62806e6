"""einsum of JAX arrays, under jit and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewise as tw


@pytest.mark.drawn(2)
@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bjk->bik", "ij,jk,kl->il", "ij->j", "bi,bi->b"])
def test_values_and_gradients_are_jaxs(equation):
    sizes = {"i": 3, "j": 4, "k": 5, "l": 2, "b": 3}
    rng = np.random.default_rng(0)
    given = [jnp.asarray(rng.random([sizes[c] for c in w])) for w in equation.split("->")[0].split(",")]
    for run in (lambda f: f, jax.jit):
        made = run(lambda *x: tw.einsum(equation, *x))(*given)
        np.testing.assert_allclose(made, jnp.einsum(equation, *given), rtol=1e-5)
    mine, theirs = (
        jax.grad(lambda x, f=f: f(equation, x, *given[1:]).sum())(given[0]) for f in (tw.einsum, jnp.einsum)
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)
